//! Exponential and normal tail from the four IEEE operations alone, with error bounds.
//!
//! The platform's own come without a promise, and differ between platforms. With these, a price is the same
//! number everywhere. u = 2^-53.

const LN_2_LEAD: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
/// ln 2 - LN_2_LEAD.
const LN_2_REST: f64 = 1.908_214_929_270_587_7e-10;

/// exp(x), within 16u relative for -700 <= x <= 700; 0 below, infinite above.
///
/// With x = n ln 2 + f, |f| < 0.3467: n times the leading part of ln 2 is exact (its last 21 bits are zero,
/// |n| < 2^11), f is within 3u, and the series of degree 14 (tail below 2^-60, Horner's rule below 4u
/// relative) is within 8u of exp(f), relative.
pub(super) fn exp(x: f64) -> f64 {
    if x < -700.0 {
        return 0.0;
    }
    if x > 700.0 {
        return f64::INFINITY;
    }
    let n = (x * std::f64::consts::LOG2_E).round();
    let f = (x - n * LN_2_LEAD) - n * LN_2_REST;
    let mut series = 1.0;
    for k in (1..=14).rev() {
        series = 1.0 + series * f / f64::from(k);
    }
    series * f64::from_bits(((1023 + n as i64) as u64) << 52)
}

/// exp(x) - 1, within 48u relative for |x| <= 700.
///
/// Below 1/2 the series x (1 + x/2 (1 + x/3 (...))), whose tail is below 2^-70: under 8u. Above it the
/// subtraction enlarges the 16u of [`exp`] at most 2.6 times.
pub(super) fn exp_m1(x: f64) -> f64 {
    if x.abs() > 0.5 {
        return exp(x) - 1.0;
    }
    let mut series = 1.0;
    for k in (2..=18).rev() {
        series = 1.0 + series * x / f64::from(k);
    }
    series * x
}

/// P(N(0, 1) > z) = density(z) * [`mills`] for z >= 0; within 1200u relative, for an exact z up to 37.
pub(super) fn upper_tail(z: f64) -> f64 {
    if z < 0.0 { 1.0 - upper_tail(-z) } else { density(z) * mills(z) }
}

/// The standard normal density, within (20 + z^2) u relative.
pub(super) fn density(z: f64) -> f64 {
    const INVERSE_ROOT_2_PI: f64 = 0.398_942_280_401_432_7;
    exp(-0.5 * z * z) * INVERSE_ROOT_2_PI
}

/// P(N(0, 1) > z) / density(z) for z >= 0, within 1100u relative.
///
/// From 2 on the continued fraction z + 1/(z + 2/(z + 3/(z + ...))), whose convergents lie on alternating
/// sides: after 30 + 440/z^2 terms neighbours differ by a few u (a test compares them). Its terms are
/// positive, so its rounding stays below 4u.
/// Below 2, half the mass over the density (at most 9.3, within 24u) minus z + z^3/3 + z^5/15 + ... (at most 8.9,
/// within 24u); their difference is at least 0.42.
pub(super) fn mills(z: f64) -> f64 {
    if z >= 2.0 {
        return mills_convergent(z, terms(z));
    }
    let (mut term, mut sum) = (z, 0.0);
    for k in 1..=40 {
        sum += term;
        term *= z * z / f64::from(2 * k + 1);
    }
    0.5 / density(z) - sum
}

fn terms(z: f64) -> u32 {
    (30.0 + 440.0 / (z * z)) as u32
}

fn mills_convergent(z: f64, terms: u32) -> f64 {
    let mut fraction = z;
    for k in (1..=terms).rev() {
        fraction = z + f64::from(k) / fraction;
    }
    1.0 / fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_agree_with_the_platform_far_inside_their_bounds() {
        for step in -200_000..200_000 {
            let x = f64::from(step) * 0.000_37;
            assert!((exp(x) / x.exp() - 1.0).abs() < 6e-16, "{x}");
            let expected = x.exp_m1();
            assert!((exp_m1(x) - expected).abs() <= 2e-15 * expected.abs(), "{x}");
        }
        assert_eq!((exp(-701.0), exp(701.0)), (0.0, f64::INFINITY));
    }

    #[test]
    fn convergents_of_the_normal_tail_have_met() {
        for step in 0..4000 {
            let z = 2.0 + f64::from(step) * 0.01;
            let (even, odd) = (mills_convergent(z, terms(z)), mills_convergent(z, terms(z) + 1));
            assert!((even / odd - 1.0).abs() <= 1e-15, "{z}");
        }
    }

    #[test]
    fn the_normal_tail_has_its_known_values_and_no_step_where_methods_change() {
        // To 17 digits, from tables.
        for (z, expected) in [
            (0.0, 0.5),
            (0.5, 0.308_537_538_725_986_9),
            (1.0, 0.158_655_253_931_457_05),
            (2.0, 0.022_750_131_948_179_21),
            (-2.0, 0.977_249_868_051_820_8),
            (5.0, 2.866_515_718_791_939e-7),
            (10.0, 7.619_853_024_160_527e-24),
        ] {
            assert!((upper_tail(z) / expected - 1.0).abs() < 3e-14, "{z}: {}", upper_tail(z));
        }
        assert!((mills(2.0) / mills(2.0 - 1e-15) - 1.0).abs() < 5e-14);
    }
}
