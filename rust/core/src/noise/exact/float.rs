//! Float logarithm and exponential with error bounds that are proven, not measured.
//!
//! The platform's own come without a promise. These use only +, -, *, / of IEEE 754, each within u = 2^-53
//! of the exact result, so their bounds hold on every machine. They only ever decide what lies outside the
//! band of their error; see [`super`].

use std::f64::consts::LN_2;

/// Heads below this leave too few significant bits for [`negative_log`].
pub(super) const SMALLEST_HEAD: f64 = (1u64 << 48) as f64;

/// Error of [`negative_log`] against -ln of any number in the cell of `head`, absolute.
pub(super) const NEGATIVE_LOG_ERROR: f64 = 1.0 / (1u64 << 46) as f64;

/// -ln(head / 2^63) for `SMALLEST_HEAD <= head < 2^63`, as a float of `head`, within [`NEGATIVE_LOG_ERROR`].
///
/// With head = 2^e m, m in (0.707, 1.415), and s = (m-1)/(m+1), |s| < 0.1717: ln m = 2 (s + s^3/3 + s^5/5 +
/// ...). Errors in units of u: conversion of `head` 1.1; m - 1 is exact, m + 1 and the quotient 2.1
/// relative, the series 1.2 (its first term is 1, the rest below 0.011), its tail below 2^-60, the product
/// 1: 4.3 * |ln m| < 1.5; the multiple of ln 2 (at most 15, so below 10.4) 21; the last sum, below 10.8,
/// 11. Together below 35. The numbers that share `head` differ from it by a relative 2^-48 = 32u. In all
/// 67u < 2^-46.
#[inline(always)]
pub(super) fn negative_log(head: f64) -> f64 {
    /// Just below the bits of sqrt(1/2): subtracting it makes the exponent field that of m.
    const ROOT_HALF: u64 = 0x3fe6_a09e_0000_0000;
    /// Or-ing an integer below 2^52 into 2^52 makes it a float.
    const TWO_52: u64 = 0x4330_0000_0000_0000;
    let bits = head.to_bits();
    let exponent = bits.wrapping_sub(ROOT_HALF) >> 52;
    let m = f64::from_bits(bits.wrapping_sub(exponent << 52));
    let exponent = f64::from_bits(TWO_52 | exponent) - f64::from_bits(TWO_52);
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut series = 1.0 / 21.0;
    for denominator in [19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        series = series * z + 1.0 / denominator;
    }
    (63.0 - exponent) * LN_2 - 2.0 * s * series
}

/// 1/k! for k = 13 down to 0.
pub(super) const EXP_SERIES: [f64; 14] = {
    let mut coefficients = [1.0; 14];
    let mut k = 1;
    while k < 14 {
        // Factorials up to 13! are exact, so each coefficient is within u of its value.
        coefficients[13 - k] = 1.0 / factorial(k);
        k += 1;
    }
    coefficients
};

const fn factorial(k: usize) -> f64 {
    if k == 0 { 1.0 } else { k as f64 * factorial(k - 1) }
}

/// Error of [`negative_exp`], absolute, for an exact argument.
pub(super) const NEGATIVE_EXP_ERROR: f64 = 1.0 / (1u64 << 49) as f64;

/// exp(-x) for x >= 0, within [`NEGATIVE_EXP_ERROR`].
///
/// With x = n ln 2 + f, |f| < 0.3467: n times the leading part of ln 2 is exact (its last 21 bits are zero
/// and n < 2^11), the subtraction loses at most u (1 + |f|), the rest of ln 2 under u; so f is within 3u,
/// and the series of degree 13 (tail below 2^-57, coefficients and Horner's rule below 3u relative) is
/// within 8u of exp(-f) < 1.42. Above x = 700 the result is 0: exp(-700) is below 2^-1000.
///
/// Branch-free, so that the compiler can do several at once.
#[inline(always)]
pub(crate) fn negative_exp(x: f64) -> f64 {
    /// Adding 1.5 * 2^52 to a small float rounds it to an integer, which its low bits then hold.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN_2_LEAD: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    /// ln 2 - LN_2_LEAD.
    const LN_2_REST: f64 = 1.908_214_929_270_587_7e-10;
    let within = if x < 700.0 { x } else { 700.0 };
    let rounded = within * (1.0 / LN_2) + ROUND;
    let n = rounded - ROUND;
    let f = (within - n * LN_2_LEAD) - n * LN_2_REST;
    let mut series = 0.0;
    for coefficient in EXP_SERIES {
        series = coefficient - series * f;
    }
    // n <= 1010, so the exponent stays above 0.
    let power = f64::from_bits((1023 - (rounded.to_bits() - ROUND.to_bits())) << 52);
    if x > 700.0 { 0.0 } else { series * power }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The platform's functions are good to a few u, which is enough to catch a wrong coefficient.
    #[test]
    fn both_agree_with_the_platform_far_inside_their_bounds() {
        let mut head = 1u64 << 48;
        while head < 1 << 63 {
            let expected = -(head as f64 / (1u64 << 63) as f64).ln();
            assert!((negative_log(head as f64) - expected).abs() < NEGATIVE_LOG_ERROR / 2.0, "{head}");
            head += head / 1009 + 1;
        }
        for step in 0..200_000 {
            let x = f64::from(step) * 0.000_37;
            assert!((negative_exp(x) - (-x).exp()).abs() < NEGATIVE_EXP_ERROR / 2.0, "{x}");
        }
        assert_eq!(negative_exp(701.0), 0.0);
        assert_eq!(negative_exp(f64::INFINITY), 0.0);
    }

    #[test]
    fn the_two_parts_of_ln_2_sum_to_it() {
        let lead = f64::from_bits(0x3fe6_2e42_fee0_0000);
        assert_eq!(lead + 1.908_214_929_270_587_7e-10, LN_2);
        assert_eq!(negative_log(9_223_372_036_854_775_807u64 as f64), 0.0);
    }
}
