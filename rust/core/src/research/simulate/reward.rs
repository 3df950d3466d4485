//! From an arm's linear score to its mean reward, and from the mean to a reward.

use crate::matrix::sigmoid::sigmoid;
use crate::research::simulate::gaussian::ziggurat;
use crate::research::simulate::words::SimulationRng;

/// How rewards arise from `score = x'beta`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reward {
    /// `score` plus normal noise of this standard deviation.
    Gaussian(f64),
    /// `score` plus noise uniform on `(-half, half)`.
    Uniform(f64),
    /// `score` plus or minus this size, with equal probability.
    Rademacher(f64),
    /// 1 with probability `sigmoid(score)`, else 0.
    Binary,
}

impl Reward {
    /// Mean reward of an arm.
    #[inline(always)]
    pub fn mean(self, score: f64) -> f64 {
        if self == Reward::Binary { sigmoid(score) } else { score }
    }

    /// One round's luck: the same whichever arm is played, so that policies can be compared on it.
    #[inline]
    pub fn luck(self, rng: &mut SimulationRng) -> f64 {
        match self {
            Reward::Gaussian(deviation) => deviation * ziggurat().double(rng),
            Reward::Uniform(half) => half * (2.0 * rng.uniform() - 1.0),
            Reward::Rademacher(size) => size.copysign(if rng.next_u64() >> 63 == 0 { 1.0 } else { -1.0 }),
            Reward::Binary => rng.uniform(),
        }
    }

    /// The reward of an arm of this mean under this luck.
    #[inline(always)]
    pub fn observe(self, mean: f64, luck: f64) -> f64 {
        match self {
            Reward::Binary => f64::from(u8::from(luck < mean)),
            _ => mean + luck,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_and_variance(reward: Reward, score: f64) -> (f64, f64) {
        let mut rng = SimulationRng::new(9, 0);
        let n = 400_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let observed = reward.observe(reward.mean(score), reward.luck(&mut rng));
            sum += observed;
            squares += observed * observed;
        }
        let mean = sum / f64::from(n);
        (mean, squares / f64::from(n) - mean * mean)
    }

    #[test]
    fn rewards_have_the_mean_and_variance_of_their_kind() {
        let half = sigmoid(0.5);
        for (reward, mean, variance) in [
            (Reward::Gaussian(0.5), 0.5, 0.25),
            (Reward::Uniform(0.6), 0.5, 0.12),
            (Reward::Rademacher(0.5), 0.5, 0.25),
            (Reward::Binary, half, half * (1.0 - half)),
        ] {
            let (seen_mean, seen_variance) = mean_and_variance(reward, 0.5);
            // Five standard errors of the mean; the variances' own errors are below 0.002.
            assert!((seen_mean - mean).abs() < 5.0 * (variance / 4e5).sqrt(), "{reward:?} {seen_mean}");
            assert!((seen_variance - variance).abs() < 0.003, "{reward:?} {seen_variance}");
        }
    }
}
