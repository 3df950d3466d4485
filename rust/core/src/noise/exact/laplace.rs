//! Discrete Laplace noise.

use super::float::{NEGATIVE_LOG_ERROR, SMALLEST_HEAD, negative_exp, negative_log};
use super::scaled_exp::ScaledExp;
use super::uniform::LazyUniform;
use super::{SCALE_LIMIT, checked_scale};
use crate::noise::entropy::NoiseSource;
use crate::runtime::error::Result;
use crate::runtime::simd::{Level, Vectorised};

/// Words drawn at a time by [`DiscreteLaplace::fill`]: two refills of ChaCha20, and few enough for
/// the nearest cache.
const BLOCK: usize = 64;

/// P(Z = z) proportional to exp(-|z|/t), for every integer z and an integer scale t in 1..2^40.
///
/// Inversion: with U uniform, floor(-t ln U) is at least k exactly when U <= exp(-k/t). A fair sign
/// follows, and a negative zero starts again, so that 0 isn't counted twice. The first word gives the sign
/// (its lowest bit) and 63 bits of U; -t ln U as a float decides unless it is within its error of an
/// integer.
///
/// Nothing is truncated. A magnitude of 2^63 or more would return 2^63 - 1; that takes more than 180 000
/// zero words in a row.
#[derive(Clone, Copy)]
pub struct DiscreteLaplace {
    scale: u64,
    float_scale: f64,
    /// Half-width of the band around integers in which integers decide.
    band: f64,
}

/// The first 16 bits of a sample: the sign (1 is minus), then 15 bits of U.
#[derive(Clone, Copy, Default)]
pub(crate) struct Head(pub(crate) u16);

impl Head {
    /// The largest head of a sample that has a plus and U <= `chance`, or a little more.
    #[inline(always)]
    pub(crate) fn up_to(chance: f64) -> u16 {
        let digits = chance * f64::from(1 << 15);
        // Within 0..2^15, so the conversion is exact; one is added for what `chance` may be wrong by.
        let below = if digits < 32_766.0 { digits } else { 32_766.0 };
        below as i32 as u16 + 1
    }
}

/// What a word says at once.
struct Quick {
    value: i64,
    /// False if the word lies in the band or in the far tail: integers must decide.
    certain: bool,
    /// A certain zero with a minus: draw again.
    minus_zero: bool,
}

impl DiscreteLaplace {
    /// Noise of scale `scale`.
    ///
    /// # Errors
    /// If the scale is not in 1..2^40; the message calls it `name`.
    pub fn new(name: &str, scale: u64) -> Result<Self> {
        checked_scale(name, scale).map(Self::within_limit)
    }

    /// For scales up to 2^40, the limit included: the Gaussian's proposals are one wider than its sigma.
    pub(super) fn within_limit(scale: u64) -> Self {
        debug_assert!((1..=SCALE_LIMIT).contains(&scale));
        let float_scale = scale as f64;
        // The logarithm's error times t, and u * 11 t for the product: below 78u * t, under t * 2^-46 =
        // 128u * t.
        DiscreteLaplace { scale, float_scale, band: float_scale * NEGATIVE_LOG_ERROR }
    }

    /// The same sampler decided by integers alone. For tests.
    #[doc(hidden)]
    pub fn always_exact(mut self) -> Self {
        self.band = f64::INFINITY;
        self
    }

    /// One sample.
    #[inline]
    pub fn sample(&self, noise: &mut impl NoiseSource) -> i64 {
        let word = noise.next_u64();
        let quick = self.quick(word);
        if quick.certain & !quick.minus_zero { quick.value } else { self.settle(word, noise) }
    }

    /// Fills `out` with independent samples.
    ///
    /// Draws a word for each sample of a block first, then what unsettled ones need, in order.
    pub fn fill(&self, out: &mut [i64], noise: &mut impl NoiseSource) {
        let mut words = [0u64; BLOCK];
        let level = Level::best();
        for chunk in out.chunks_mut(BLOCK) {
            let words = &mut words[..chunk.len()];
            noise.fill(words);
            let all_settled = level.run(QuickBlock { sampler: self, words, out: chunk });
            if !all_settled {
                for (slot, &word) in chunk.iter_mut().zip(words.iter()) {
                    *slot = self.settle(word, noise);
                }
            }
        }
    }

    /// The scale.
    pub(crate) fn scale(&self) -> u64 {
        self.scale
    }

    /// A sample whose first bits are known.
    #[inline]
    pub(crate) fn sample_from(&self, head: Head, noise: &mut impl NoiseSource) -> i64 {
        // 63 bits of U, then the sign.
        let uniform = (u64::from(head.0 & 0x7fff) << 48) | (noise.next_u64() >> 16);
        self.settle((uniform << 1) | u64::from(head.0 >> 15), noise)
    }

    /// The smallest head that may be a negative zero, which is drawn again: U > exp(-1/t), or a little less.
    pub(crate) fn drawn_again_from(&self) -> u16 {
        // The exponential is within 2^-49, and 1/t within 2^-53: one is more than both.
        let digits = negative_exp(1.0 / self.float_scale) * f64::from(1 << 15);
        (1 << 15) + (digits as u16).clamp(1, (1 << 15) - 1) - 1
    }

    /// Branch-free, so that the compiler can do several words at once.
    #[inline(always)]
    fn quick(&self, word: u64) -> Quick {
        /// Adding 1.5 * 2^52 to a float below 2^51 rounds it to an integer, which its low bits then hold.
        const ROUND: f64 = 6_755_399_441_055_744.0;
        let negative = (word & 1) as i64;
        let head = (word >> 1) as f64;
        let level = self.float_scale * negative_log(head);
        let rounded = level + ROUND;
        let distance = level - (rounded - ROUND);
        let nearest = rounded.to_bits().wrapping_sub(ROUND.to_bits()) as i64;
        let magnitude = nearest.wrapping_sub(i64::from(distance < 0.0));
        Quick {
            value: (magnitude ^ -negative).wrapping_add(negative),
            certain: (distance.abs() > self.band) & (head >= SMALLEST_HEAD),
            minus_zero: (magnitude | (1 - negative)) == 0,
        }
    }

    /// The sample that starts with `word`, drawing whatever else it needs.
    fn settle(&self, mut word: u64, noise: &mut impl NoiseSource) -> i64 {
        loop {
            let quick = self.quick(word);
            let value = if quick.certain { quick.value } else { self.exactly(word, noise) };
            if value != 0 || word & 1 == 0 {
                return value;
            }
            word = noise.next_u64();
        }
    }

    #[cold]
    fn exactly(&self, word: u64, noise: &mut impl NoiseSource) -> i64 {
        let magnitude = self.magnitude(word >> 1, noise);
        if word & 1 == 0 { magnitude } else { -magnitude }
    }

    /// floor(-t ln U) by integers: the float is a place to start walking from, and never decides.
    fn magnitude(&self, head: u64, noise: &mut impl NoiseSource) -> i64 {
        let mut uniform = LazyUniform::new(head);
        let negative_log = if head as f64 >= SMALLEST_HEAD {
            negative_log(head as f64)
        } else {
            uniform.rough_negative_log(noise)
        };
        let mut at_least =
            |level: i64| level == 0 || uniform.is_below(&ScaledExp::new(level as u64, self.scale, 0), noise);
        // A cast saturates, so this starts in 0..=i64::MAX.
        let mut magnitude = (self.float_scale * negative_log).round() as i64;
        while !at_least(magnitude) {
            magnitude -= 1;
        }
        while magnitude < i64::MAX && at_least(magnitude + 1) {
            magnitude += 1;
        }
        magnitude
    }
}

/// The quick look at a block, compiled for the widest registers there are.
struct QuickBlock<'a> {
    sampler: &'a DiscreteLaplace,
    words: &'a [u64],
    out: &'a mut [i64],
}

impl Vectorised for QuickBlock<'_> {
    /// Whether every word was settled.
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let mut all_settled = true;
        for (slot, &word) in self.out.iter_mut().zip(self.words) {
            let quick = self.sampler.quick(word);
            *slot = quick.value;
            all_settled &= quick.certain & !quick.minus_zero;
        }
        all_settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::entropy::predictable::{ScriptedNoise, SeededNoise};
    use crate::noise::exact::textbook;

    const SCALES: [u64; 12] =
        [1, 2, 3, 7, 97, 1024, 65_537, 1 << 20, 2_000_003, 1 << 30, (1 << 39) - 7, (1 << 40) - 1];

    #[test]
    fn floats_and_integers_give_the_same_samples_from_the_same_bits() {
        for scale in SCALES {
            let fast = DiscreteLaplace::new("scale", scale).expect("valid");
            let exact = fast.always_exact();
            let (mut left, mut right) = (SeededNoise::new(5, scale), SeededNoise::new(5, scale));
            let (mut quick, mut slow) = (vec![0; 4000], vec![0; 4000]);
            fast.fill(&mut quick, &mut left);
            exact.fill(&mut slow, &mut right);
            assert_eq!(quick, slow, "{scale}");
            assert_eq!(left.words_drawn(), right.words_drawn(), "{scale}");
            for _ in 0..500 {
                assert_eq!(fast.sample(&mut left), exact.sample(&mut right), "{scale}");
            }
            assert_eq!(left.words_drawn(), right.words_drawn(), "{scale}");
        }
    }

    #[test]
    fn words_at_the_steps_of_the_inverse_fall_on_the_right_side() {
        // Heads next to 2^63 exp(-k/t), where the float is useless: the largest at or under it gives k, the
        // next k - 1.
        for scale in [1u64, 3, 1 << 20, (1 << 40) - 1] {
            let sampler = DiscreteLaplace::new("scale", scale).expect("valid");
            for level in [1, 2, scale.div_ceil(2), scale, 5 * scale + 1] {
                let (lower, _) = ScaledExp::new(level, scale, 0).bounds(3);
                let step = lower[3];
                let at = |head: u64| sampler.sample(&mut ScriptedNoise::new(vec![head << 1]));
                let (inside, outside) = (at(step - 1), at(step + 1));
                assert!(inside >= level as i64, "{scale} {level}");
                assert!(outside < level as i64, "{scale} {level}");
                // In the cell of the step itself the second word settles it.
                let split = lower[2];
                let after = |word: u64| sampler.sample(&mut ScriptedNoise::new(vec![step << 1, word]));
                assert_eq!(
                    (after(split - 1), after(split + 1)),
                    (level as i64, level as i64 - 1),
                    "{scale} {level}"
                );
            }
        }
    }

    #[test]
    fn every_head_that_can_give_a_large_sample_or_none_is_in_reach() {
        for scale in [1u64, 2, 3, 10, 1000, 65_537, 1 << 30, (1 << 40) - 1] {
            let sampler = DiscreteLaplace::new("scale", scale).expect("valid");
            let again = sampler.drawn_again_from();
            for level in [1, scale.div_ceil(2), scale, 3 * scale, 12 * scale] {
                let reach = Head::up_to((-(level as f64) / scale as f64).exp());
                let mut in_reach = 0;
                for head in 0..=u16::MAX {
                    if head <= reach || head >= again {
                        in_reach += 1;
                        continue;
                    }
                    // The smallest U that follows has the largest magnitude. A second word would be drawn again.
                    let noise = &mut ScriptedNoise::new(vec![0, 1 << 63, 1 << 63]);
                    assert!(sampler.sample_from(Head(head), noise) < level as i64, "{scale} {level} {head}");
                    assert!(noise.words_drawn <= 2 || head == 0x8000, "{scale} {level} {head}");
                }
                // And few others are.
                let expected = f64::from(1 << 15)
                    * ((-(level as f64) / scale as f64).exp() + 1.0 - (-1.0 / scale as f64).exp());
                assert!(f64::from(in_reach) < expected + 5.0, "{scale} {level}: {in_reach}");
            }
        }
    }

    #[test]
    fn the_tail_goes_on_after_words_of_zeros() {
        // n zero words mean U = 2^-(63 + 64 (n - 1)) times what follows: here 1/2 and a bit.
        let sampler = DiscreteLaplace::new("scale", 1000).expect("valid");
        for zeros in 1..30 {
            let mut words = vec![0; zeros];
            words.extend([1 << 63, 12345, 6789]);
            let magnitude = sampler.sample(&mut ScriptedNoise::new(words)) as f64;
            let expected = 1000.0 * (64.0 * zeros as f64) * std::f64::consts::LN_2;
            assert!((magnitude - expected).abs() <= 1.0, "{zeros}: {magnitude} for {expected}");
        }
    }

    #[test]
    fn beyond_twenty_scales_the_tail_is_still_exponential() {
        // Given that U has 28 leading zeros, |Z| > 20 t has probability exp(-20) 2^28 = 0.553, and 30 t one
        // of 2.5e-5.
        const SCALE: u64 = 1_000_003;
        let sampler = DiscreteLaplace::new("scale", SCALE).expect("valid");
        let mut source = SeededNoise::new(12, 0);
        let mut draw = || {
            let words = vec![source.next_u64() >> 28, source.next_u64(), source.next_u64()];
            sampler.sample(&mut ScriptedNoise::new(words)).unsigned_abs()
        };
        let draws: Vec<u64> = (0..200_000).map(|_| draw()).collect();
        let z_score = |magnitudes: &mut dyn Iterator<Item = u64>, scales: u64| {
            let chance = (28.0 * std::f64::consts::LN_2 - scales as f64).exp();
            let count = magnitudes.filter(|&magnitude| magnitude > scales * SCALE).count() as f64;
            (count - 2e5 * chance) / (2e5 * chance * (1.0 - chance)).sqrt()
        };
        for scales in [20, 21, 23, 25, 27] {
            assert!(z_score(&mut draws.iter().copied(), scales).abs() < 5.0, "{scales}");
            // Control: the same draws with the tail cut off just there.
            let cut = draws.iter().map(|&magnitude| magnitude.min(scales * SCALE));
            assert!(z_score(&mut { cut }, scales) < -5.0, "{scales}");
        }
    }

    #[test]
    fn a_negative_zero_is_drawn_again() {
        let sampler = DiscreteLaplace::new("scale", 1 << 20).expect("valid");
        let (zero, minus_zero, positive) = (u64::MAX - 1, u64::MAX, 1 << 63);
        assert_eq!(sampler.sample(&mut ScriptedNoise::new(vec![zero])), 0);
        let mut noise = ScriptedNoise::new(vec![minus_zero, minus_zero, positive]);
        assert_eq!(sampler.sample(&mut noise), 726_817);
        assert_eq!(noise.words_drawn, 3);
    }

    #[test]
    fn agrees_with_the_textbook_sampler_in_its_first_moments() {
        // The grid against exact probabilities is in tests/kernels/test_samplers.py; this one needs no Python.
        for scale in [1u64, 5, 300] {
            let sampler = DiscreteLaplace::new("scale", scale).expect("valid");
            let (mut left, mut right) = (SeededNoise::new(6, scale), SeededNoise::new(7, scale));
            let mean_magnitude = |draw: &mut dyn FnMut() -> i64| {
                (0..100_000).map(|_| draw().unsigned_abs() as f64).sum::<f64>() / 1e5
            };
            let fast = mean_magnitude(&mut || sampler.sample(&mut left));
            let slow = mean_magnitude(&mut || textbook::laplace(scale, &mut right));
            // Five standard deviations of the difference.
            assert!((fast - slow).abs() < 5.0 * 1.5 * scale as f64 / 1e5f64.sqrt(), "{scale}: {fast} {slow}");
        }
    }

    #[test]
    fn scales_outside_the_range_are_refused_by_name() {
        for scale in [0, 1 << 40, u64::MAX] {
            let failure = DiscreteLaplace::new("pick_scale", scale).err().expect("refused");
            assert_eq!(
                failure.to_string(),
                format!("pick_scale must be an integer from 1 to 1099511627775, got {scale}")
            );
        }
    }
}
