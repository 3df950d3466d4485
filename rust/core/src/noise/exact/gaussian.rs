//! Discrete Gaussian noise.

use super::bernoulli::Decider;
use super::checked_scale;
use super::laplace::DiscreteLaplace;
use super::scaled_exp::ScaledExp;
use crate::noise::entropy::NoiseSource;
use crate::runtime::error::Result;

/// P(Z = z) proportional to exp(-z^2 / (2 sigma^2)), for every integer z and an integer sigma in 1..2^40.
///
/// Rejection from discrete Laplace proposals of scale t = sigma + 1, kept with probability
/// exp(-(|z| t - sigma^2)^2 / (2 sigma^2 t^2)) (Canonne, Kamath, Steinke 2020, algorithm 3): about 1.3
/// proposals a sample.
/// |z| t is below 2^104, so its square takes up to four limbs.
#[derive(Clone, Copy)]
pub struct DiscreteGaussian {
    sigma: u64,
    proposals: DiscreteLaplace,
    decider: Decider,
}

impl DiscreteGaussian {
    /// Noise of parameter `sigma` (the standard deviation is within rounding of it, and never above).
    ///
    /// # Errors
    /// If sigma is not in 1..2^40; the message calls it `name`.
    pub fn new(name: &str, sigma: u64) -> Result<Self> {
        let sigma = checked_scale(name, sigma)?;
        Ok(DiscreteGaussian {
            sigma,
            proposals: DiscreteLaplace::within_limit(sigma + 1),
            decider: Decider::FAST,
        })
    }

    /// The same sampler decided by integers alone. For tests.
    #[doc(hidden)]
    pub fn always_exact(mut self) -> Self {
        self.proposals = self.proposals.always_exact();
        self.decider = Decider::EXACT;
        self
    }

    /// One sample.
    pub fn sample(&self, noise: &mut impl NoiseSource) -> i64 {
        loop {
            let proposal = self.proposals.sample(noise);
            if self.keeps(proposal.unsigned_abs(), noise) {
                return proposal;
            }
        }
    }

    fn keeps(&self, magnitude: u64, noise: &mut impl NoiseSource) -> bool {
        let (sigma, scale) = (self.sigma, self.sigma + 1);
        let root =
            (u128::from(magnitude) * u128::from(scale)).abs_diff(u128::from(sigma) * u128::from(sigma));
        if root == 0 {
            return true;
        }
        // Conversions, product, quotient, square: within 10u, relative; halving is exact. 16u are allowed.
        let ratio = root as f64 / (sigma as f64 * scale as f64);
        let exponent = 0.5 * ratio * ratio;
        let number = || ScaledExp::of_square(root, [2 * sigma, sigma, scale, scale]);
        self.decider.flip(exponent, exponent * (1.0 / (1u64 << 49) as f64), number, noise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::entropy::predictable::SeededNoise;

    #[test]
    fn floats_and_integers_give_the_same_samples_from_the_same_bits() {
        for sigma in
            [1, 2, 3, 97, 1024, 65_537, 1 << 20, (1 << 28) + 1, 1 << 32, (1 << 39) - 7, (1 << 40) - 1]
        {
            let fast = DiscreteGaussian::new("sigma", sigma).expect("valid");
            let exact = fast.always_exact();
            let (mut left, mut right) = (SeededNoise::new(8, sigma), SeededNoise::new(8, sigma));
            for _ in 0..1500 {
                assert_eq!(fast.sample(&mut left), exact.sample(&mut right), "{sigma}");
            }
            assert_eq!(left.words_drawn(), right.words_drawn(), "{sigma}");
        }
    }

    #[test]
    fn the_second_moment_is_sigma_squared_even_where_128_bits_overflow() {
        for sigma in [1u64 << 20, (1 << 28) + 3, (1 << 40) - 1] {
            let sampler = DiscreteGaussian::new("sigma", sigma).expect("valid");
            let mut noise = SeededNoise::new(9, sigma);
            let second: f64 =
                (0..100_000).map(|_| (sampler.sample(&mut noise) as f64 / sigma as f64).powi(2)).sum::<f64>()
                    / 1e5;
            // The standard deviation of the mean is sqrt(2/1e5).
            assert!((second - 1.0).abs() < 5.0 * (2.0f64 / 1e5).sqrt(), "{sigma}: {second}");
        }
    }

    #[test]
    fn extreme_proposals_are_weighed_without_overflow() {
        let mut noise = SeededNoise::new(10, 0);
        for sigma in [1, (1 << 40) - 1] {
            let sampler = DiscreteGaussian::new("sigma", sigma).expect("valid");
            for magnitude in [u64::MAX >> 1, 1 << 62, 1 << 50] {
                assert!(!sampler.keeps(magnitude, &mut noise), "{sigma} {magnitude}");
                assert!(!sampler.always_exact().keeps(magnitude, &mut noise), "{sigma} {magnitude}");
            }
        }
    }
}
