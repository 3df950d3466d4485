//! Integer bounds on `2^shift * exp(-p/q)`, as tight as one asks for.

use super::wide;

/// floor(2^63 / ln 2).
pub(crate) const INVERSE_LN_2: u64 = 0xb8aa_3b29_5c17_f0bb;

/// floor(2^1024 ln 2), least significant limb first. A test computes it again.
const LN_2: [u64; 16] = [
    0xda2d_97c5_0f3f_d5c6,
    0x655f_a187_2f20_e3a2,
    0xf5df_a6bd_3830_3248,
    0x72ce_87b1_9d65_48ca,
    0x256f_a0ec_7657_f74b,
    0xb9ea_9bc3_b136_603b,
    0x1acb_da11_317c_387e,
    0x3e96_ca16_224a_e8c5,
    0x2757_3b29_1169_b825,
    0xed2e_ae35_c138_2144,
    0x5595_52fb_4afa_1b10,
    0xe7b8_7620_6deb_ac98,
    0x8a0d_175b_8baa_fa2b,
    0x40f3_4326_7298_b62d,
    0xc9e3_b398_03f2_f6af,
    0xb172_17f7_d1cf_79ab,
];

/// The number `2^shift * exp(-numerator / (product of divisors))`.
///
/// The caller promises that it lies in (0, 1), that the numerator is not zero (so that the number is
/// irrational), and that with a `shift` above zero the exponent is below 2^62.
pub(crate) struct ScaledExp {
    /// Least significant limb first.
    pub(crate) numerator: Vec<u64>,
    /// A product, because 2 sigma^2 t^2 of the Gaussian needs 162 bits and each factor fits a limb.
    pub(crate) divisors: Vec<u64>,
    /// The power of two.
    pub(crate) shift: u64,
}

impl ScaledExp {
    /// exp(-numerator/divisor) * 2^shift.
    pub(crate) fn new(numerator: u64, divisor: u64, shift: u64) -> Self {
        ScaledExp { numerator: vec![numerator], divisors: vec![divisor], shift }
    }

    /// exp(-(root^2) / (product of divisors)).
    pub(crate) fn of_square(root: u128, divisors: [u64; 4]) -> Self {
        ScaledExp { numerator: wide::square(root).to_vec(), divisors: divisors.to_vec(), shift: 0 }
    }

    /// Bounds on 2^63 times the number, in units of 2^(-64 `limbs`): `limbs + 1` limbs, least significant
    /// first.
    ///
    /// With G = `limbs` + 1, an ulp is 2^(-64 `limbs`) and a fine ulp 2^(-64 G):
    /// 1. `x` is p/q rounded down to a fine ulp (repeated floor division by factors is floor division by
    ///    the product).
    /// 2. `halvings` exceeds x/ln 2 by more than 0.4 and at most 3: the two products lose less than 2 in
    ///    rounding and less than 0.5 from the constant (x < 2^62), and 3 is added. So r = halvings ln 2 - p/q
    ///    lies in (0.2, 2.1).
    /// 3. r, from an ln 2 short by at most 2 fine ulps, one fine ulp for `x`, and dropping a limb, is short
    ///    by at most (2 halvings + 1) fine ulps + 1 ulp < 3 ulps, since halvings < 2^63.
    /// 4. Each term of the series for exp(r) is short by at most 4 ulps (the loss is
    ///    e_n <= e_(n-1) r/n + 1/n + 1, which peaks at n = 3), there are at most 64 (`limbs` + 1) before one
    ///    rounds to zero, and what follows that is below 8 ulps. The 3 ulps of r cost at most
    ///    3 * 2 * exp(r) < 50. Together less than 2^10 (`limbs` + 1) ulps, which `upper` adds.
    /// 5. exp(-p/q) = 2^(-halvings) exp(r); shifting right rounds down, so the upper bound gets one more ulp.
    pub(super) fn bounds(&self, limbs: usize) -> (Vec<u64>, Vec<u64>) {
        let fine = limbs + 1;
        let mut x = vec![0; fine];
        x.extend_from_slice(&self.numerator);
        for &divisor in &self.divisors {
            wide::divide(&mut x, divisor);
        }
        if x[fine + 1..].iter().any(|&limb| limb != 0) || x[fine] >= 1 << 62 {
            // exp(-2^62) is below one ulp of any number that fits in memory.
            debug_assert_eq!(self.shift, 0);
            return (vec![0; limbs + 1], one_ulp(limbs + 1));
        }
        x.truncate(fine + 1);

        let times_inverse_ln_2 = |limb: u64| u128::from(limb) * u128::from(INVERSE_LN_2);
        let halvings =
            (times_inverse_ln_2(x[fine]) >> 63) as u64 + (times_inverse_ln_2(x[fine - 1]) >> 127) as u64 + 3;
        let mut r = ln_2(fine);
        r.push(0);
        wide::scale(&mut r, halvings);
        wide::subtract(&mut r, &x);
        wide::subtract(&mut r, &[1]);
        r.remove(0);

        let mut lower = exp_series(&r, limbs);
        let mut upper = lower.clone();
        wide::add(&mut upper, &[(limbs as u64 + 1) << 10]);
        // halvings < 2^63 and shift < 2^63, so this can't wrap.
        let exponent = 63 + self.shift as i64 - halvings as i64;
        // A left shift could push the top of the loose upper bound out; 2^63 bounds the number in any case.
        upper.push(0);
        wide::shift(&mut lower, exponent);
        wide::shift(&mut upper, exponent);
        wide::add(&mut upper, &[1]);
        if upper.pop() != Some(0) || upper[limbs] >= 1 << 63 {
            upper.fill(0);
            upper[limbs] = 1 << 63;
        }
        (lower, upper)
    }
}

fn one_ulp(length: usize) -> Vec<u64> {
    let mut value = vec![0; length];
    value[0] = 1;
    value
}

/// Sum of r^n/n! rounded down, for r with `limbs` limbs after the point and one before.
fn exp_series(r: &[u64], limbs: usize) -> Vec<u64> {
    let mut term = vec![0; limbs + 1];
    term[limbs] = 1;
    let mut sum = term.clone();
    for n in 1u64.. {
        term = wide::multiply(&term, r, limbs);
        wide::divide(&mut term, n);
        if term.iter().all(|&limb| limb == 0) {
            break;
        }
        wide::add(&mut sum, &term);
    }
    sum
}

/// ln 2 in units of 2^(-64 `limbs`), short by at most 2 of them.
fn ln_2(limbs: usize) -> Vec<u64> {
    match LN_2.len().checked_sub(limbs) {
        Some(dropped) => LN_2[dropped..].to_vec(),
        None => ln_2_series(limbs),
    }
}

/// ln 2 = sum of 1/(n 2^n), each term rounded down with one limb to spare.
fn ln_2_series(limbs: usize) -> Vec<u64> {
    let mut sum = vec![0; limbs + 1];
    for n in 1..=64 * (limbs as u64 + 1) {
        let mut term = vec![0; limbs + 1];
        let bit = 64 * (limbs as u64 + 1) - n;
        term[(bit / 64) as usize] = 1 << (bit % 64);
        wide::divide(&mut term, n);
        wide::add(&mut sum, &term);
    }
    sum.remove(0);
    sum
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    #[test]
    fn the_constant_is_ln_2_and_the_series_takes_over_beyond_it() {
        let mut ceiling = ln_2_series(16);
        assert_ne!(wide::compare(&ceiling, &LN_2), Ordering::Greater);
        wide::add(&mut ceiling, &[2]);
        assert_ne!(wide::compare(&ceiling, &LN_2), Ordering::Less);
        let longer = ln_2(20);
        assert_eq!(longer.len(), 20);
        assert_eq!(longer[5..], LN_2[1..]);
    }

    fn check(number: &ScaledExp, times_2_to_191: [u64; 3]) {
        for limbs in [2, 3, 5, 9, 17] {
            let (lower, upper) = number.bounds(limbs);
            assert_eq!(wide::compare(&lower, &upper), Ordering::Less);
            // 2^63 * number has its point below the top limb; 2^191 * number floored is its top three limbs.
            let top = |value: &[u64]| [value[limbs - 2], value[limbs - 1], value[limbs]];
            assert_ne!(wide::compare(&top(&lower), &times_2_to_191), Ordering::Greater, "{limbs}");
            assert_ne!(wide::compare(&top(&upper), &times_2_to_191), Ordering::Less, "{limbs}");
            if limbs > 3 {
                assert_eq!(top(&lower), times_2_to_191, "tight enough to agree in 191 bits");
            }
        }
    }

    #[test]
    fn bounds_enclose_values_computed_elsewhere_to_200_digits() {
        check(
            &ScaledExp::new(1, 1, 0),
            [0xed4c_02d5_5ab6_3b99, 0x5d6f_63c1_482a_7c86, 0x2f16_ac6c_59de_6f8d],
        );
        check(
            &ScaledExp::new(1, 3, 0),
            [0xd435_0ff5_cb07_3109, 0xe2cc_264e_2875_f264, 0x5bb7_4c48_bcba_9344],
        );
        check(
            &ScaledExp::new(40, 1, 57),
            [0x8e5f_9e40_10a9_5cd5, 0x5285_20d6_f4fa_1115, 0x4e5e_4926_6c68_90a5],
        );
        // The same number three ways: as a square over four divisors, scaled, plain.
        check(
            &ScaledExp::of_square(1 << 80, [1 << 40, 1 << 40, 1 << 40, 3 << 40]),
            [0xd435_0ff5_cb07_3109, 0xe2cc_264e_2875_f264, 0x5bb7_4c48_bcba_9344],
        );
    }

    #[test]
    fn exponents_beyond_reach_are_positive_and_below_one_ulp() {
        let (lower, upper) = ScaledExp::of_square(u128::MAX, [1; 4]).bounds(2);
        assert_eq!((lower, upper), (vec![0, 0, 0], vec![1, 0, 0]));
        let (lower, upper) = ScaledExp::new(u64::MAX >> 3, 1, 0).bounds(2);
        assert_eq!((lower, upper), (vec![0, 0, 0], vec![1, 0, 0]));
    }

    #[test]
    fn a_number_just_below_one_keeps_an_upper_bound_that_fits() {
        let (lower, upper) = ScaledExp::new(1, u64::MAX, 0).bounds(2);
        assert_eq!(lower[2], (1 << 63) - 1);
        assert!(upper[2] <= 1 << 63);
    }
}
