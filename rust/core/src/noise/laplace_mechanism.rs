//! The Laplace mechanism on a lattice of floats.
//!
//! A float plus float noise leaks: which floats can come out depends on the value (Mironov 2012). Here
//! values are rounded to multiples of a power of two `spacing` <= scale * 2^-20, discrete Laplace noise is
//! added to the multiple in integers, and the sum times `spacing` is a float exactly. The outputs that can
//! occur are {k * spacing : |k| <= 2^53}, for every value.
//!
//! Cost. Let |x - x'| <= D. Rounding half up commutes with whole steps, so the multiples differ by at most
//! ceil(D/spacing), and the release is (ceil(D/spacing) / noise_scale)-DP, at most (D + spacing)/scale:
//! rounding adds at most `spacing`, a millionth of the scale, to the sensitivity. Clamping is 1-Lipschitz
//! before the noise and post-processing after it.

use crate::noise::entropy::NoiseSource;
use crate::noise::exact::laplace::DiscreteLaplace;
use crate::runtime::error::{Error, Result};

/// Scales are 2^-900 to 2^900, so that no multiple of the spacing overflows or loses bits.
const SCALE_EXPONENT: i32 = 900;

/// Steps below the scale's own power of two.
const SPACING_BITS: i32 = 20;

/// Values are clamped to this many steps, about 2^32 scales.
const VALUE_LIMIT: f64 = (1u64 << 52) as f64;

/// Released multiples are clamped to this, so that each is a float exactly.
const RELEASE_LIMIT: f64 = (1u64 << 53) as f64;

/// Samples made at a time between the integer sampler and the floats.
const BLOCK: usize = 256;

/// Releases x as `spacing * (round(x/spacing) + Z)`, P(Z = z) proportional to exp(-|z|/noise_scale) exactly.
pub struct LaplaceMechanism {
    spacing: f64,
    inverse_spacing: f64,
    noise: DiscreteLaplace,
}

impl LaplaceMechanism {
    /// Noise of scale at least `scale` and at most `scale` (1 + 2^-20).
    ///
    /// # Errors
    /// If `scale` is not from 2^-900 to 2^900.
    pub fn new(scale: f64) -> Result<Self> {
        if !(power_of_two(-SCALE_EXPONENT)..=power_of_two(SCALE_EXPONENT)).contains(&scale) {
            return Err(Error::invalid(format!(
                "scale must be a number from 2**-900 to 2**900, got {scale}"
            )));
        }
        // The range keeps `scale` normal, so its exponent field is its power of two.
        let exponent = (scale.to_bits() >> 52) as i32 - 1023 - SPACING_BITS;
        let inverse_spacing = power_of_two(-exponent);
        // Exact product, in [2^20, 2^21); rounded up so that the noise is never short.
        let noise_scale = (scale * inverse_spacing).ceil() as u64;
        Ok(LaplaceMechanism {
            spacing: power_of_two(exponent),
            inverse_spacing,
            noise: DiscreteLaplace::new("scale", noise_scale)?,
        })
    }

    /// The distance between possible outputs.
    pub fn spacing(&self) -> f64 {
        self.spacing
    }

    /// Fills `out` with noise alone: what zeros would be released as.
    pub fn fill(&self, out: &mut [f64], noise: &mut impl NoiseSource) {
        let mut draws = [0i64; BLOCK];
        for chunk in out.chunks_mut(BLOCK) {
            let draws = &mut draws[..chunk.len()];
            self.noise.fill(draws, noise);
            for (slot, &draw) in chunk.iter_mut().zip(draws.iter()) {
                *slot = self.released(draw);
            }
        }
    }

    /// Replaces each value by its release.
    ///
    /// # Errors
    /// If a value is not finite; then no value was touched.
    pub fn release(&self, values: &mut [f64], noise: &mut impl NoiseSource) -> Result<()> {
        if !values.iter().all(|value| value.is_finite()) {
            return Err(Error::invalid("values must be finite"));
        }
        let mut draws = [0i64; BLOCK];
        for chunk in values.chunks_mut(BLOCK) {
            let draws = &mut draws[..chunk.len()];
            self.noise.fill(draws, noise);
            for (value, &draw) in chunk.iter_mut().zip(draws.iter()) {
                *value = self.released(self.steps(*value).saturating_add(draw));
            }
        }
        Ok(())
    }

    /// The nearest multiple, halves up: exact, because scaling by a power of two is (beyond 2^1024 it
    /// clamps anyway, and what underflows rounds to 0 as it should).
    fn steps(&self, value: f64) -> i64 {
        let scaled = (value * self.inverse_spacing).clamp(-VALUE_LIMIT, VALUE_LIMIT);
        let floor = scaled.floor();
        floor as i64 + i64::from(scaled - floor >= 0.5)
    }

    #[inline]
    fn released(&self, multiple: i64) -> f64 {
        // Conversion rounds only beyond the limit, and never back inside it.
        (multiple as f64).clamp(-RELEASE_LIMIT, RELEASE_LIMIT) * self.spacing
    }
}

/// 2^exponent for exponents of normal floats.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::entropy::predictable::SeededNoise;

    #[test]
    fn spacing_is_a_power_of_two_and_the_noise_is_never_short() {
        for scale in [1.0, 1.5, 0.1, 1e-200, 1e200, power_of_two(-900), power_of_two(900), 1.0 + f64::EPSILON]
        {
            let mechanism = LaplaceMechanism::new(scale).expect("valid");
            assert!(
                mechanism.spacing <= scale * power_of_two(-20)
                    && mechanism.spacing > scale * power_of_two(-21)
            );
            assert_eq!(mechanism.spacing.to_bits() << 12, 0);
            assert_eq!(mechanism.spacing * mechanism.inverse_spacing, 1.0);
        }
        for scale in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300, 1e300] {
            assert!(LaplaceMechanism::new(scale).is_err());
        }
    }

    #[test]
    fn rounding_is_half_up_at_every_size_and_clamps() {
        let mechanism = LaplaceMechanism::new(power_of_two(20)).expect("valid");
        assert_eq!(mechanism.spacing(), 1.0);
        let cases =
            [(0.5, 1), (1.5, 2), (-0.5, 0), (-1.5, -1), (0.499_999_999_999_999_94, 0), (7.0, 7), (-7.0, -7)];
        for (value, steps) in cases {
            assert_eq!(mechanism.steps(value), steps, "{value}");
        }
        assert_eq!(mechanism.steps(f64::MAX), 1 << 52);
        assert_eq!(mechanism.steps(f64::MIN), -(1 << 52));
        assert_eq!(mechanism.steps(f64::MIN_POSITIVE), 0);
        assert_eq!(mechanism.steps(4_503_599_627_370_495.5), 1 << 52);
    }

    #[test]
    fn a_step_in_the_value_is_a_step_in_the_multiple_exactly() {
        let mechanism = LaplaceMechanism::new(0.3).expect("valid");
        let step = mechanism.spacing();
        for start in [0.0, 0.5, 0.25, -3.5, 1000.5] {
            for steps in 0..20 {
                let moved = mechanism.steps((start + f64::from(steps)) * step);
                assert_eq!(moved - mechanism.steps(start * step), i64::from(steps));
            }
        }
    }

    #[test]
    fn an_infinite_value_is_refused_without_being_printed_and_nothing_is_released() {
        let mechanism = LaplaceMechanism::new(1.0).expect("valid");
        let mut noise = SeededNoise::new(1, 1);
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut values = [123.25, bad];
            let failure = mechanism.release(&mut values, &mut noise).expect_err("refused");
            assert_eq!(failure.to_string(), "values must be finite");
            assert_eq!(values[0], 123.25);
            assert_eq!(noise.words_drawn(), 0);
        }
    }

    #[test]
    fn noise_alone_is_the_release_of_zeros() {
        let mechanism = LaplaceMechanism::new(2.5).expect("valid");
        let (mut noise, mut zeros) = (vec![1.0; 1000], vec![0.0; 1000]);
        mechanism.fill(&mut noise, &mut SeededNoise::new(2, 0));
        mechanism.release(&mut zeros, &mut SeededNoise::new(2, 0)).expect("finite");
        assert_eq!(noise, zeros);
    }
}
