//! The two floating-point types rows are stored in, and the rounding to integers they share.

use crate::runtime::memory::Number;
#[cfg(target_arch = "x86_64")]
use crate::runtime::simd::rows::{AvxProof, GROUP, add_rows_f32, add_rows_f64};

/// Integers are sums of `q` in `-LIMIT..=LIMIT`: one row's contribution to one coordinate.
pub const LIMIT: i64 = 1 << 15;

/// Rows of an `i32` block that can't overflow it: `65_535 * 2^15 < 2^31`.
pub const BLOCK_ROWS: usize = (1 << 16) - 1;

/// `f32` or `f64`: what the row map needs of a stored value.
///
/// `rounded_bits` is the fast rounding. For `|p| <= 2^15` the sum `p + 1.5 * 2^m` (m = 23 or 52) lies where
/// floats are one apart, so the addition itself rounds `p` to the nearest integer, ties to even, and the bits
/// of the sum are `BIAS` plus that integer. One addition; no conversion instruction, whose treatment of NaN
/// differs between processors.
pub trait Real: Copy + Default + PartialEq + Send + Sync + 'static {
    /// Integer of the same width: lanes match, so that sums need no conversion.
    type Sum: Number + Default + Send;
    /// Zero.
    const ZERO: Self;
    /// Most rows whose biased sum can be told apart in `Sum`.
    const MOST_ROWS: usize;

    /// Nearest value of this type; beyond its range, infinity.
    fn from_f64(value: f64) -> Self;
    /// The same value in f64, exactly.
    fn to_f64(self) -> f64;
    /// Neither NaN nor infinite.
    fn is_finite(self) -> bool;
    /// The largest finite number instead of infinity.
    fn finite(self) -> Self;
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
    /// `self - other`.
    fn less(self, other: Self) -> Self;
    /// `self * other`.
    fn times(self, other: Self) -> Self;
    /// `rint(clamp(self * k, -2^15, 2^15))` for any inputs; NaN gives 0.
    fn quantise(self, k: Self) -> i32;
    /// The same for finite inputs, without asking for NaN.
    fn quantise_finite(self, k: Self) -> i32;
    /// `sum + BIAS + quantise(self, k)` for finite inputs, wrapping; garbage but harmless otherwise.
    fn add_biased(self, k: Self, sum: Self::Sum) -> Self::Sum;
    /// A word whose top bit is set if `self` is not finite; words may be joined with `|`.
    fn probe(self) -> Self::Sum;
    /// Join two probes.
    fn join(a: Self::Sum, b: Self::Sum) -> Self::Sum;
    /// Whether any joined value was not finite.
    fn tripped(probe: Self::Sum) -> bool;
    /// The integer sum, once the bias of `rows` additions is taken off.
    fn unbiased(sum: Self::Sum, rows: usize) -> i64;
    /// [`add_rows`](crate::runtime::simd::rows::add_rows) with wide registers.
    #[cfg(target_arch = "x86_64")]
    fn add_rows_wide(
        proof: AvxProof,
        rows: [&[Self]; GROUP],
        factors: &[Self; GROUP],
        ahead: usize,
        sums: &mut [Self::Sum],
    ) -> bool;
}

macro_rules! real {
    ($float:ty, $signed:ty, $bits:ty, $magic:expr, $exponent_step:expr, $most_rows:expr, $add_rows:ident) => {
        impl Real for $float {
            type Sum = $signed;
            const ZERO: Self = 0.0;
            const MOST_ROWS: usize = $most_rows;

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $float
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                <$float>::is_finite(self)
            }
            #[inline(always)]
            fn finite(self) -> Self {
                let below = if self > <$float>::MAX { <$float>::MAX } else { self };
                if below < <$float>::MIN { <$float>::MIN } else { below }
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn less(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn quantise(self, k: Self) -> i32 {
                if (self * k).is_nan() {
                    return 0;
                }
                self.quantise_finite(k)
            }
            #[inline(always)]
            fn quantise_finite(self, k: Self) -> i32 {
                (self.add_biased(k, 0) as $bits).wrapping_sub($magic.to_bits()) as i32
            }
            #[inline(always)]
            fn add_biased(self, k: Self, sum: $signed) -> $signed {
                let limit = LIMIT as $float;
                let product = self * k;
                // Written as comparisons so that each is one instruction; NaN is excluded by the caller.
                let below = if product > limit { limit } else { product };
                let clamped = if below < -limit { -limit } else { below };
                sum.wrapping_add((clamped + $magic).to_bits() as $signed)
            }
            #[inline(always)]
            fn probe(self) -> $signed {
                // An all-ones exponent carries into the sign bit.
                ((self.to_bits() & !(1 << (<$bits>::BITS - 1))).wrapping_add($exponent_step)) as $signed
            }
            #[inline(always)]
            fn join(a: $signed, b: $signed) -> $signed {
                a | b
            }
            #[inline(always)]
            fn tripped(probe: $signed) -> bool {
                probe < 0
            }
            #[inline(always)]
            fn unbiased(sum: $signed, rows: usize) -> i64 {
                let bias = ($magic.to_bits() as $signed).wrapping_mul(rows as $signed);
                i64::from(sum.wrapping_sub(bias))
            }
            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            fn add_rows_wide(
                proof: AvxProof,
                rows: [&[$float]; GROUP],
                factors: &[$float; GROUP],
                ahead: usize,
                sums: &mut [$signed],
            ) -> bool {
                $add_rows(proof, rows, factors, ahead, sums)
            }
        }
    };
}

real!(f32, i32, u32, 12_582_912.0_f32, 1 << 23, BLOCK_ROWS, add_rows_f32);
// 2^40 rows of 2^15 stay far inside an i64; the bias wraps and is taken off modulo 2^64.
real!(f64, i64, u64, 6_755_399_441_055_744.0_f64, 1 << 52, 1 << 40, add_rows_f64);

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(product: f64) -> i32 {
        if product.is_nan() { 0 } else { product.clamp(-32768.0, 32768.0).round_ties_even() as i32 }
    }

    #[test]
    fn quantise_is_clamp_then_round_half_even() {
        let mut values = vec![0.0f32, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, 1e-45];
        values.extend((-70_000..70_000).map(|i| i as f32 * 0.5));
        for &x in &values {
            for k in [1.0f32, -1.0, 0.0, f32::INFINITY, f32::NAN, 1e30, 0.5] {
                assert_eq!(x.quantise(k), slow(f64::from(x * k)), "{x} {k}");
                let (wide, wide_k) = (f64::from(x), f64::from(k));
                assert_eq!(wide.quantise(wide_k), slow(wide * wide_k), "{x} {k}");
            }
        }
    }

    #[test]
    fn biased_sums_equal_plain_ones_up_to_the_last_row() {
        let rows = f32::MOST_ROWS;
        for x in [f32::MAX, -f32::MAX, 0.5, 1.5, -2.5] {
            let mut sum = 0;
            for _ in 0..rows {
                sum = x.add_biased(1.0, sum);
            }
            assert_eq!(f32::unbiased(sum, rows), rows as i64 * i64::from(x.quantise(1.0)));
        }
    }

    #[test]
    fn the_probe_sees_exactly_the_values_that_are_not_finite() {
        for x in [0.0, -0.0, f32::MAX, f32::MIN, 1e-45, f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY]
        {
            assert_eq!(f32::tripped(x.probe()), !x.is_finite(), "{x}");
        }
        for x in [0.0, f64::MAX, f64::MIN, 5e-324, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(f64::tripped(x.probe()), !x.is_finite(), "{x}");
        }
    }
}
