//! Coins that land heads with probability exactly 2^shift * exp(-p/q).

use super::float::{NEGATIVE_EXP_ERROR, negative_exp};
use super::scaled_exp::ScaledExp;
use super::uniform::LazyUniform;
use crate::noise::entropy::NoiseSource;
use crate::runtime::error::{Error, Result};

/// What the comparison of a 63-bit head with a float adds to the error: 2^-52 for the head's conversion,
/// 2^-63 for the bits below it, 2^-52 for forming the ends of the band.
const COMPARISON_ERROR: f64 = 1.0 / (1u64 << 50) as f64;

/// How a coin is decided: by float outside the band of its error, by integers inside.
#[derive(Clone, Copy)]
pub(crate) struct Decider {
    extra_band: f64,
}

impl Decider {
    /// The band that the error bounds ask for.
    pub(crate) const FAST: Decider = Decider { extra_band: 0.0 };
    /// A band that holds everything: integers always decide. For tests.
    pub(crate) const EXACT: Decider = Decider { extra_band: f64::INFINITY };

    /// Heads with probability exactly `number()`, when |exponent - (-ln number())| <= `exponent_error` and
    /// `exponent` >= 0.
    ///
    /// An error in the exponent moves a number of at most 1 by no more than itself.
    #[inline]
    pub(crate) fn flip(
        self,
        exponent: f64,
        exponent_error: f64,
        number: impl FnOnce() -> ScaledExp,
        noise: &mut impl NoiseSource,
    ) -> bool {
        self.flip_with(noise.next_u64() >> 1, exponent, exponent_error, number, noise)
    }

    /// The same for 63 bits that were drawn before.
    #[inline]
    pub(crate) fn flip_with(
        self,
        head: u64,
        exponent: f64,
        exponent_error: f64,
        number: impl FnOnce() -> ScaledExp,
        noise: &mut impl NoiseSource,
    ) -> bool {
        let distance = negative_exp(exponent) - head as f64 * (1.0 / (1u64 << 63) as f64);
        if distance.abs() > exponent_error + (NEGATIVE_EXP_ERROR + COMPARISON_ERROR) + self.extra_band {
            distance > 0.0
        } else {
            LazyUniform::new(head).is_below(&number(), noise)
        }
    }
}

/// A coin that lands heads with probability exactly exp(-p/q).
#[derive(Clone, Copy)]
pub struct BernoulliExp {
    numerator: u64,
    denominator: u64,
    decider: Decider,
}

impl BernoulliExp {
    /// Heads with probability exp(-`numerator`/`denominator`).
    ///
    /// # Errors
    /// If the denominator is 0.
    pub fn new(numerator: u64, denominator: u64) -> Result<Self> {
        if denominator == 0 {
            return Err(Error::invalid("denominator must be at least 1, got 0"));
        }
        Ok(BernoulliExp { numerator, denominator, decider: Decider::FAST })
    }

    /// The same coin decided by integers alone. For tests.
    #[doc(hidden)]
    pub fn always_exact(mut self) -> Self {
        self.decider = Decider::EXACT;
        self
    }

    /// One flip.
    pub fn sample(&self, noise: &mut impl NoiseSource) -> bool {
        if self.numerator == 0 {
            return true;
        }
        // Two conversions and a division: within 4u of the ratio, relative.
        let exponent = self.numerator as f64 / self.denominator as f64;
        let number = || ScaledExp::new(self.numerator, self.denominator, 0);
        self.decider.flip(exponent, exponent * (1.0 / (1u64 << 51) as f64), number, noise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::entropy::predictable::{ScriptedNoise, SeededNoise};

    const RATIOS: [(u64, u64); 10] = [
        (0, 1),
        (1, 1),
        (1, 3),
        (7, 2),
        (1, u64::MAX),
        (u64::MAX, 1),
        (40, 1),
        ((1 << 40) + 1, 1 << 40),
        (1 << 60, 1 << 40),
        (12345, 67890),
    ];

    #[test]
    fn floats_and_integers_decide_alike_on_one_stream() {
        for (numerator, denominator) in RATIOS {
            let fast = BernoulliExp::new(numerator, denominator).expect("valid");
            let exact = fast.always_exact();
            let (mut left, mut right) = (SeededNoise::new(3, numerator), SeededNoise::new(3, numerator));
            for _ in 0..3000 {
                assert_eq!(fast.sample(&mut left), exact.sample(&mut right));
            }
            assert_eq!(left.words_drawn(), right.words_drawn());
        }
    }

    #[test]
    fn the_words_around_the_threshold_go_the_right_way() {
        // floor(2^63 e^-1): the float can't tell these apart, the integers must.
        const HEAD: u64 = 0x2f16_ac6c_59de_6f8d;
        let coin = BernoulliExp::new(1, 1).expect("valid");
        for distance in 1..100 {
            assert!(coin.sample(&mut ScriptedNoise::new(vec![(HEAD - distance) << 1])));
            assert!(!coin.sample(&mut ScriptedNoise::new(vec![(HEAD + distance) << 1])));
        }
    }

    #[test]
    fn a_zero_denominator_is_refused() {
        assert!(BernoulliExp::new(1, 0).is_err());
    }
}
