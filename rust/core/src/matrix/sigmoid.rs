//! The logistic function from the four IEEE operations alone.
//!
//! The C library's `exp` differs between machines in the last bit. This one does not, and the NumPy twin
//! repeats it operation by operation, so that logistic residuals are the same bits everywhere.

/// Below this exponent `exp` is taken as 0: its size, 1e-304, is nothing beside 1.
const SMALLEST_EXPONENT: f64 = -700.0;
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// Reciprocals of 13!, 12!, ..., 2!: the Taylor series of exp, truncated where |r| <= ln(2)/2 leaves 4e-18.
const TAYLOR: [f64; 12] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    1.0 / 2.0,
];

/// `1 / (1 + exp(-z))`, within 2 units in the last place; NaN gives NaN.
pub fn sigmoid(z: f64) -> f64 {
    let small = exp_of_nonpositive(-z.abs());
    let numerator = if z < 0.0 { small } else { 1.0 };
    numerator / (1.0 + small)
}

fn exp_of_nonpositive(x: f64) -> f64 {
    if x < SMALLEST_EXPONENT {
        return 0.0;
    }
    let twos = (x * std::f64::consts::LOG2_E).round_ties_even();
    let rest = (x - twos * LN2_HIGH) - twos * LN2_LOW;
    let mut series = TAYLOR[0];
    for coefficient in &TAYLOR[1..] {
        series = series * rest + coefficient;
    }
    let series = (series * rest + 1.0) * rest + 1.0;
    // NaN passes through: the cast gives 0, and NaN times 1 is NaN.
    series * f64::from_bits(((1023 + twos as i64) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_library_to_two_units_in_the_last_place() {
        for i in -700_000..=700_000 {
            let z = f64::from(i) * 1e-3 * 0.999_7;
            let expected = if z < 0.0 { z.exp() / (1.0 + z.exp()) } else { 1.0 / (1.0 + (-z).exp()) };
            assert!((sigmoid(z) - expected).abs() <= 4.0 * f64::EPSILON * expected, "{z}");
        }
    }

    #[test]
    fn ends_are_exact() {
        assert_eq!(sigmoid(0.0), 0.5);
        assert_eq!(sigmoid(f64::INFINITY), 1.0);
        assert_eq!(sigmoid(f64::NEG_INFINITY), 0.0);
        assert_eq!(sigmoid(-701.0), 0.0);
        assert!(sigmoid(f64::NAN).is_nan());
    }
}
