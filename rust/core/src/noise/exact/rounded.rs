//! Rounded Gaussian noise: what adding continuous Gaussian noise to an integer and rounding the sum amounts to.

use super::below;
use super::curve::{Digits, Height, Place, is_under};
use super::float::{NEGATIVE_EXP_ERROR, negative_exp};
use super::layers::{HEIGHT_BITS, Layers, PLACE_BITS, SLOTS, TAIL, VOLUME};
use super::scaled_exp::INVERSE_LN_2;
use crate::noise::entropy::NoiseSource;
use crate::runtime::error::{Error, Result};
use crate::runtime::simd::{Level, Vectorised};

/// P(Z = z) = P(z - 1/2 < N(0, sigma^2) < z + 1/2), for every integer z and an integer sigma from 1 to 2^40.
///
/// So an integer plus Z is the rounded sum of that integer and Gaussian noise: post-processing of the Gaussian
/// mechanism, and exactly as private.
///
/// A point is drawn uniformly from slots of equal area that cover the curve exp(-x^2/2), x >= 0 (see [`super::layers`]),
/// until it is under the curve: its x is then the magnitude of a standard normal. sigma x is rounded, with a fair
/// sign. x and the point's height are real numbers, whose digits are drawn when they matter (as in Karney 2016, "Sampling
/// exactly from the normal distribution"). One word has the slot, the sign and 52 digits of x, and 99 times in 100
/// settles everything:
/// 1. A place below the slot's safe one is under the curve, whatever digits follow: a comparison of integers.
/// 2. sigma x as a float rounds as the number itself does, unless it is within its error of a half: [`ROUNDING_ERROR`].
///
/// Otherwise 63 digits of the height are drawn and compared with the curve as a float, unless the two are
/// within its error ([`CURVE_ERROR`]); integers decide what is left, both the curve ([`is_under`]) and the rounding.
/// [`always_exact`](Self::always_exact) leaves both to them always, and draws the same samples from the same words.
#[derive(Clone, Copy)]
pub struct RoundedGaussian {
    sigma: u64,
    exact: bool,
}

/// What sigma enters: `2 sigma VOLUME place`, below 2^1 2^40 2^32 2^52, in 128 bits; floats below 2^43. No other
/// error bound depends on it: they are about x alone.
const LARGEST_SIGMA: u64 = 1 << 40;

/// Error of the float sigma x against that of any number with the same 52 digits, in units of sigma.
///
/// x is at most 4. The digits that follow are worth 4 * 2^-52; the width and the two products are within u = 2^-53
/// each of what they stand for: 4 * 3u (1 + 2u). In all 20u and a little, below 2^-48 = 32u.
const ROUNDING_ERROR: f64 = 1.0 / (1u64 << 48) as f64;

/// Error of a float on the curve against that of any number with the same 52 digits, both as a height.
///
/// x <= 4 is within 4 * 2^-52 + 4 * 2u = 16u, so x^2/2 within 4 * 16u + (16u)^2 + 2u * 8 < 81u; the exponential adds 16u,
/// and the height, 63 digits cut and rounded, 4u. Below 2^-46 = 128u.
const CURVE_ERROR: f64 = 1.0 / (1u64 << 46) as f64;

/// What a value that the quick look leaves open is marked with: no sample of a sigma up to 2^40 is as large by itself.
const OPEN: i64 = i64::MIN;

impl RoundedGaussian {
    /// Noise of standard deviation `sigma` before rounding.
    ///
    /// # Errors
    /// If sigma is not from 1 to 2^40; the message calls it `name`.
    pub fn new(name: &str, sigma: u64) -> Result<Self> {
        if !(1..=LARGEST_SIGMA).contains(&sigma) {
            return Err(Error::invalid(format!(
                "{name} must be an integer from 1 to {LARGEST_SIGMA}, got {sigma}"
            )));
        }
        Ok(RoundedGaussian { sigma, exact: false })
    }

    /// The same without the check.
    #[inline(always)]
    pub(crate) fn of_checked(sigma: u64) -> Self {
        debug_assert!((1..=LARGEST_SIGMA).contains(&sigma));
        RoundedGaussian { sigma, exact: false }
    }

    /// The same sampler decided by integers alone. For tests.
    #[doc(hidden)]
    pub fn always_exact(mut self) -> Self {
        self.exact = true;
        self
    }

    /// One sample.
    #[inline]
    pub fn sample(&self, noise: &mut impl NoiseSource) -> i64 {
        let word = noise.next_u64();
        let value = if self.exact { OPEN } else { quick(word, self.sigma, Layers::shared()) };
        if value == OPEN { self.settle(word, noise) } else { value }
    }

    /// One sample of round(fraction/2^64 + N(0, sigma^2)): noise on a number that is no integer, rounded afterwards.
    #[inline]
    pub fn sample_around(&self, fraction: u64, noise: &mut impl NoiseSource) -> i64 {
        let word = noise.next_u64();
        self.settle_around(word, fraction, noise)
    }

    /// Fills `out` with independent samples.
    pub fn fill(&self, out: &mut [i64], noise: &mut impl NoiseSource) {
        for_each(out.len(), |_| *self, |index, value| out[index] = value, noise);
    }

    /// The sample that starts with `word`, drawing whatever else it needs.
    #[cold]
    fn settle(&self, word: u64, noise: &mut impl NoiseSource) -> i64 {
        self.settle_around(word, 0, noise)
    }

    fn settle_around(&self, mut word: u64, fraction: u64, noise: &mut impl NoiseSource) -> i64 {
        loop {
            if let Some(mut place) = self.kept(word, noise) {
                // With a minus it is what is left of the magnitude that is rounded, and turned. No tie has a chance.
                let minus = ((word >> SIGN) & 1) as i64;
                let offset = i128::from(fraction) * i128::from(1 - 2 * minus);
                return (self.rounded(&mut place, offset, noise) ^ -minus) + minus;
            }
            word = noise.next_u64();
        }
    }

    /// The place that `word` proposes, if it is kept.
    fn kept(&self, word: u64, noise: &mut impl NoiseSource) -> Option<Place> {
        let layers = Layers::shared();
        let (slot, place) = (slot(word), word >> (64 - PLACE_BITS));
        if slot == TAIL {
            return self.kept_in_tail(place, noise);
        }
        let (floor, rise) = (layers.floor[slot], layers.rise[slot]);
        let mut at = Place {
            scale: VOLUME,
            divisor: rise,
            head: u128::from(place),
            bits: PLACE_BITS,
            rest: Digits::default(),
        };
        if place < layers.safe[slot] {
            return Some(at);
        }
        let step = floor + below(rise, noise);
        let mut height =
            Height { head: step, bits: HEIGHT_BITS.into(), rest: Digits(vec![noise.next_u64()]) };
        let x = fraction(word) * layers.width[slot];
        let y =
            (step as f64 + height.rest.0[0] as f64 * TWO_TO_MINUS_64) * (1.0 / (1u64 << HEIGHT_BITS) as f64);
        let above = negative_exp(0.5 * x * x) - y;
        let kept = if above.abs() > CURVE_ERROR && !self.exact {
            above > 0.0
        } else {
            is_under(&mut at, &mut height, noise)
        };
        kept.then_some(at)
    }

    /// The same for places from 4 on. k = 4, 5, ... is proposed with 2^-t, t = floor(k^2/(2 ln 2)), of the area of
    /// the unit square, and k + x with a height uniform in 0..2^-t, which is above the curve's there.
    #[cold]
    fn kept_in_tail(&self, place: u64, noise: &mut impl NoiseSource) -> Option<Place> {
        // The slot's area is `VOLUME` 2^-40; all proposals take 2^-10 of it at most.
        let k =
            if below(VOLUME, noise) < 1 << (HEIGHT_BITS - TAIL_BITS) { far(noise)? } else { return None };
        let halvings = halvings(k);
        let head = (u128::from(k) << PLACE_BITS) | u128::from(place);
        let mut at = Place { scale: 1, divisor: 1, head, bits: PLACE_BITS, rest: Digits::default() };
        let mut height = Height { head: 0, bits: halvings, rest: Digits(vec![noise.next_u64()]) };
        let x = head as f64 * (1.0 / (1u64 << PLACE_BITS) as f64);
        // x is within 2^-52 (k + 2), so x^2/2 within 2^-51 (k + 2)^2; t ln 2 and the difference within as much again; the
        // exponential and 64 digits of the height, in units of 2^-t, below 2^-48.
        let exponent = (0.5 * x * x - halvings as f64 * std::f64::consts::LN_2).max(0.0);
        let error = (k + 2) as f64 * (k + 2) as f64 * (1.0 / (1u64 << 49) as f64)
            + (NEGATIVE_EXP_ERROR + 1.0 / (1u64 << 50) as f64);
        let above = negative_exp(exponent) - height.rest.0[0] as f64 * TWO_TO_MINUS_64;
        let kept = if above.abs() > error && !self.exact {
            above > 0.0
        } else {
            is_under(&mut at, &mut height, noise)
        };
        kept.then_some(at)
    }

    /// round(sigma x + `offset`/2^64), by integers, for an offset between -2^64 and 2^64.
    fn rounded(&self, at: &mut Place, offset: i128, noise: &mut impl NoiseSource) -> i64 {
        // sigma x = step (head + rest) / (divisor 2^bits), of which `whole` and `part` are what the head gives.
        let step = u128::from(self.sigma) * u128::from(at.scale);
        let unit = u128::from(at.divisor) << at.bits;
        // Beyond 2^126 the generator has returned thousands of words of ones.
        let Some(product) = step.checked_mul(at.head).filter(|product| product >> 126 == 0) else {
            return i64::MAX;
        };
        let (whole, part) = (product / unit, product % unit);
        // A half is added before it is cut; all in units of 1 / (divisor 2^64), of which one is 2^(64 - bits) of step's.
        let one = i128::from(at.divisor) << 64;
        let start = ((part as i128) << (64 - at.bits)) + i128::from(at.divisor) * ((1 << 63) + offset);
        let (floor, distance) = (start.div_euclid(one), one - start.rem_euclid(one));
        // The digits that follow move it by less than one: sigma 4 2^-52.
        let (step, distance) = (step << (64 - at.bits), distance as u128);
        let up = step > distance && at.rest.reach(distance, step, noise);
        i64::try_from(whole as i128 + floor + i128::from(up)).unwrap_or(i64::MAX)
    }
}

/// Samples whose first words are drawn at a time by [`for_each`].
const BLOCK: usize = 128;

/// Puts `count` independent samples, the i-th from `sampler(i)`, which all decide alike.
///
/// Draws a word for each sample of a block first, then what unsettled ones need, in order.
pub(crate) fn for_each(
    count: usize,
    sampler: impl Fn(usize) -> RoundedGaussian,
    mut put: impl FnMut(usize, i64),
    noise: &mut impl NoiseSource,
) {
    let (mut words, mut sigmas, mut values) = ([0u64; BLOCK], [1u64; BLOCK], [OPEN; BLOCK]);
    let (level, layers) = (Level::best(), Layers::shared());
    for start in (0..count).step_by(BLOCK) {
        let length = BLOCK.min(count - start);
        noise.fill(&mut words[..length]);
        for (i, sigma) in sigmas[..length].iter_mut().enumerate() {
            *sigma = sampler(start + i).sigma;
        }
        if sampler(start).exact {
            values.fill(OPEN);
        } else {
            level.run(QuickBlock { words: &words, sigmas: &sigmas, layers, values: &mut values });
        }
        for i in 0..length {
            let value = values[i];
            put(start + i, if value == OPEN { sampler(start + i).settle(words[i], noise) } else { value });
        }
    }
}

/// The bit of a word that is the sign; those below it choose the slot.
const SIGN: u32 = SLOTS.trailing_zeros();

const TWO_TO_MINUS_64: f64 = 1.0 / (1u128 << 64) as f64;

#[inline(always)]
fn slot(word: u64) -> usize {
    word as usize % SLOTS
}

/// The 52 digits of a word that are a place, as a float in [0, 1): exact.
#[inline(always)]
fn fraction(word: u64) -> f64 {
    /// Or-ing 52 bits into 1.0 makes a float in [1, 2).
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    f64::from_bits(ONE | (word >> (64 - PLACE_BITS))) - 1.0
}

/// The sample that `word` settles by itself, or [`OPEN`]. Branch-free, so that the compiler can do several at once.
#[inline(always)]
fn quick(word: u64, sigma: u64, layers: &Layers) -> i64 {
    /// Adding 1.5 * 2^52 to a float below 2^51 rounds it to an integer, which its low bits then hold.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// Or-ing an integer below 2^52 into 2^52 makes it a float.
    const TWO_52: u64 = 0x4330_0000_0000_0000;
    let slot = slot(word);
    let sigma = f64::from_bits(TWO_52 | sigma) - f64::from_bits(TWO_52);
    let level = fraction(word) * layers.width[slot] * sigma;
    let rounded = level + ROUND;
    let to_half = 0.5 - (level - (rounded - ROUND)).abs();
    let magnitude = rounded.to_bits().wrapping_sub(ROUND.to_bits()) as i64;
    let minus = ((word >> SIGN) & 1) as i64;
    let safe = (word >> (64 - PLACE_BITS)) < layers.safe[slot];
    let certain = safe & (to_half > sigma * ROUNDING_ERROR);
    if certain { (magnitude ^ -minus).wrapping_add(minus) } else { OPEN }
}

/// The quick look at a block, compiled for the widest registers there are.
struct QuickBlock<'a> {
    words: &'a [u64; BLOCK],
    sigmas: &'a [u64; BLOCK],
    layers: &'a Layers,
    values: &'a mut [i64; BLOCK],
}

impl Vectorised for QuickBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for i in 0..BLOCK {
            self.values[i] = quick(self.words[i], self.sigmas[i], self.layers);
        }
    }
}

/// t = floor(k^2/(2 ln 2)), or one less where the rounded constant says so: the curve from k on stays below 2^-t.
#[inline]
fn halvings(k: u64) -> u64 {
    ((u128::from(k) * u128::from(k) * u128::from(INVERSE_LN_2)) >> 64) as u64
}

/// All proposals of the tail together are below 2^-10: t is 11 at k = 4, and grows by 7 and more.
const TAIL_BITS: u32 = 10;

/// k >= 4 with probability 2^(10 - t), or nothing.
///
/// k - 4 ones, then zeros, t - 10 bits in all: no two of these patterns can begin alike.
fn far(noise: &mut impl NoiseSource) -> Option<u64> {
    let mut ones = 0;
    let mut word = noise.next_u64();
    while word == u64::MAX {
        ones += 64;
        word = noise.next_u64();
    }
    let leading = word.leading_ones();
    ones += u64::from(leading);
    let k = 4 + ones;
    // A zero has been seen; the zeros that must follow start with it.
    let mut zeros = halvings(k) - u64::from(TAIL_BITS) - ones;
    let mut bits = word << leading;
    let mut available = u64::from(64 - leading);
    loop {
        let looked_at = zeros.min(available);
        if looked_at > 0 && bits >> (64 - looked_at) != 0 {
            return None;
        }
        zeros -= looked_at;
        if zeros == 0 {
            return Some(k);
        }
        (bits, available) = (noise.next_u64(), 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::entropy::predictable::{ScriptedNoise, SeededNoise};

    fn sampler(sigma: u64) -> RoundedGaussian {
        RoundedGaussian::new("sigma", sigma).expect("valid")
    }

    /// The word that proposes this slot, place and sign.
    fn proposal(slot: usize, place: u64, negative: bool) -> u64 {
        (place << (64 - PLACE_BITS)) | (u64::from(negative) << SIGN) | slot as u64
    }

    #[test]
    fn floats_and_integers_give_the_same_samples_from_the_same_bits() {
        for sigma in [1, 2, 3, 97, 1024, 65_537, 1 << 20, (1 << 28) + 1, 1 << 32, (1 << 40) - 1, 1 << 40] {
            let (fast, exact) = (sampler(sigma), sampler(sigma).always_exact());
            let (mut left, mut right) = (SeededNoise::new(8, sigma), SeededNoise::new(8, sigma));
            for _ in 0..4000 {
                assert_eq!(fast.sample(&mut left), exact.sample(&mut right), "{sigma}");
            }
            assert_eq!(left.words_drawn(), right.words_drawn(), "{sigma}");
            let (mut quick, mut slow) = (vec![0; 20_000], vec![0; 20_000]);
            fast.fill(&mut quick, &mut left);
            exact.fill(&mut slow, &mut right);
            assert_eq!(quick, slow, "{sigma}");
            assert_eq!(left.words_drawn(), right.words_drawn(), "{sigma}");
        }
    }

    #[test]
    fn noise_around_a_fraction_is_that_of_a_finer_lattice_rounded_afterwards() {
        const FINER: u64 = 1 << 10;
        for sigma in [1, 3, 65_537, 1 << 28] {
            for fraction in [0, 1, FINER / 2 - 1, FINER / 2, FINER - 1] {
                for draw in 0..2000 {
                    let (mut left, mut right) =
                        (SeededNoise::new(draw, sigma), SeededNoise::new(draw, sigma));
                    let coarse = sampler(sigma).sample_around(fraction << 54, &mut left);
                    let fine = sampler(sigma * FINER).sample(&mut right);
                    // Both are rounded, the finer one by up to half of its own step.
                    let apart = coarse * FINER as i64 - (fine + fraction as i64);
                    assert!(2 * apart.unsigned_abs() <= FINER + 1, "{sigma} {fraction} {apart}");
                }
            }
        }
        // Without a fraction it is the sampler itself.
        let (mut left, mut right) = (SeededNoise::new(8, 1), SeededNoise::new(8, 1));
        for _ in 0..2000 {
            assert_eq!(sampler(97).sample_around(0, &mut left), sampler(97).sample(&mut right));
        }
        assert_eq!(left.words_drawn(), right.words_drawn());
    }

    #[test]
    fn one_word_settles_99_samples_in_100() {
        let (mut noise, layers) = (SeededNoise::new(11, 0), Layers::shared());
        for (sigma, least) in [(1u64, 0.988), (1 << 20, 0.988), (1 << 40, 0.978)] {
            let open = (0..200_000u32).filter(|_| quick(noise.next_u64(), sigma, layers) == OPEN).count();
            assert!(1.0 - open as f64 / 2e5 > least, "{sigma}: {open}");
        }
    }

    #[test]
    fn scripted_words_give_the_sample_they_spell() {
        // The lowest layer is 4 wide: a place of 2^52/8 is x = 1/2.
        let sigma = 1000;
        let at = |place, negative| {
            sampler(sigma).sample(&mut ScriptedNoise::new(vec![proposal(0, place, negative)]))
        };
        assert_eq!(at(1 << 49, false), 500);
        assert_eq!(at(1 << 49, true), -500);
        assert_eq!(at(3 << 50, true), -3000);
        assert_eq!(at(0, true), 0);
        // 0.4999 and 0.5001 of one.
        let eighth = |tenthousandths: u64| ((1u128 << 50) * u128::from(tenthousandths) / 10_000_000) as u64;
        assert_eq!((at(eighth(4999), false), at(eighth(5001), false)), (0, 1));
    }

    #[test]
    fn digits_beyond_the_first_word_decide_next_to_a_half() {
        // In the lowest layer sigma x = 3 * 4 (place + rest)/2^52, and 3 * 4 * place is a half less 8/2^52.
        let place = (1u64 << 51) / 12;
        assert_eq!((1u64 << 51) - 12 * place, 8);
        let with =
            |rest: u64| sampler(3).sample(&mut ScriptedNoise::new(vec![proposal(0, place, false), rest]));
        // 12 rest >= 8 exactly when the rest is 2/3 or more.
        assert_eq!((with(u64::MAX / 3 * 2 - 1), with(u64::MAX / 3 * 2 + 1)), (0, 1));
    }

    #[test]
    fn a_place_beyond_the_safe_one_is_kept_if_its_height_is_under_the_curve() {
        let (layers, slot) = (Layers::shared(), 300);
        let place = layers.safe[slot] + (1 << 40);
        let kept = |words: Vec<u64>| {
            let noise = &mut ScriptedNoise::new(words);
            sampler(1 << 30).kept(proposal(slot, place, false), noise).is_some()
        };
        // A word of 2^32 is 0 below any rise; a word of 0 would be refused.
        assert!(kept(vec![1 << 32, 0]));
        assert!(!kept(vec![u64::MAX, u64::MAX]));
        // The lowest layer's right end is far above the curve unless the height is 0.
        let end = |words| {
            let noise = &mut ScriptedNoise::new(words);
            sampler(1).kept(proposal(0, (1 << 52) - 1, false), noise).is_some()
        };
        assert!(end(vec![1 << 32, 0]) && !end(vec![u64::MAX, 0]));
    }

    #[test]
    fn the_tail_is_patterns_of_ones_and_zeros() {
        let far = |words: Vec<u64>| far(&mut ScriptedNoise::new(words));
        assert_eq!([4, 5, 6, 7].map(halvings), [11, 18, 25, 35]);
        assert_eq!(far(vec![(1 << 63) - 1]), Some(4));
        assert_eq!(far(vec![1 << 63]), Some(5));
        assert_eq!(far(vec![(1 << 63) | (1 << 56)]), None);
        assert_eq!(far(vec![(1 << 63) | ((1 << 56) - 1)]), Some(5));
        // Ten: six ones and 56 zeros. Eleven: seven and 70, of which 13 are in the next word.
        assert_eq!((halvings(10), halvings(11)), (72, 87));
        assert_eq!(far(vec![!0 << 58]), Some(10));
        assert_eq!(far(vec![(!0 << 58) | 4]), None);
        assert_eq!(far(vec![!0 << 57, (1 << 51) - 1]), Some(11));
        assert_eq!(far(vec![!0 << 57, 1 << 51]), None);
        // 64 ones and more: k = 68 needs 3335 bits.
        let mut words = vec![u64::MAX];
        words.extend(vec![0; 60]);
        assert_eq!(far(words), Some(68));
        for k in 0..2000 {
            assert!(halvings(k) as f64 * std::f64::consts::LN_2 <= 0.5 * (k * k) as f64 + 1e-9);
        }
    }

    #[test]
    fn beyond_four_the_tail_is_that_of_the_normal() {
        // Words that choose the tail slot and its part of 2^-10: x >= 4 with what follows, by the same code.
        let (sigma, mut source) = (1_000_000, SeededNoise::new(13, 0));
        let mut draws = Vec::new();
        while draws.len() < 40_000 {
            let place = source.next_u64() >> (64 - PLACE_BITS);
            let mut words = vec![1 << 40];
            words.extend((0..12).map(|_| source.next_u64()));
            let noise = &mut ScriptedNoise::new(words);
            if let Some(mut at) = sampler(sigma).kept_in_tail(place, noise) {
                draws.push(sampler(sigma).rounded(&mut at, 0, noise) as f64 / sigma as f64);
            }
        }
        // P(N > x) / P(N > 4), from tables.
        let z_score = |draws: &[f64], from: f64, chance: f64| {
            let count = draws.iter().filter(|x| **x > from).count() as f64;
            (count - 4e4 * chance) / (4e4 * chance * (1.0 - chance)).sqrt()
        };
        let tail =
            [(4.0, 1.0 - 1e-9), (4.2, 0.421_361), (4.5, 0.107_278), (5.0, 0.009_050_9), (5.3, 0.001_828)];
        for (from, chance) in &tail[1..] {
            assert!(z_score(&draws, *from, *chance).abs() < 5.0, "{from}");
            // Control: the same draws, cut off just there.
            let cut: Vec<f64> = draws.iter().map(|x| x.min(*from)).collect();
            assert!(z_score(&cut, *from, *chance) < -5.0, "{from}");
        }
        assert!(draws.iter().all(|x| *x >= 4.0));
    }

    #[test]
    fn the_second_moment_is_that_of_the_normal_plus_a_twelfth() {
        for sigma in [1u64, 7, 1 << 20, (1 << 40) - 1, 1 << 40] {
            let (sampler, mut noise) = (sampler(sigma), SeededNoise::new(9, sigma));
            let variance = (sigma as f64).powi(2);
            let second: f64 =
                (0..100_000).map(|_| (sampler.sample(&mut noise) as f64).powi(2) / variance).sum::<f64>()
                    / 1e5;
            // Sheppard's correction is exact here up to exp(-2 pi^2 sigma^2).
            let expected = 1.0 + 1.0 / (12.0 * variance);
            assert!((second - expected).abs() < 5.0 * (2.2f64 / 1e5).sqrt(), "{sigma}: {second}");
        }
    }

    #[test]
    fn sigmas_out_of_range_are_refused_and_the_largest_fits() {
        for bad in [0, (1 << 40) + 1, u64::MAX] {
            assert!(RoundedGaussian::new("sigma", bad).is_err());
        }
        let largest = sampler(1 << 40);
        let place = |scale, divisor, head| {
            let mut at = Place { scale, divisor, head, bits: PLACE_BITS, rest: Digits::default() };
            largest.rounded(&mut at, 0, &mut ScriptedNoise::new(vec![]))
        };
        // In the tail sigma x is `head` / 2^12: no digit that follows can carry one from below a half to it.
        assert_eq!(place(1, 1, (9 << 52) + (1 << 11)), (9 << 40) + 1);
        assert_eq!(place(1, 1, (9 << 52) + (1 << 11) - 1), 9 << 40);
        let narrowest = *Layers::shared().rise.iter().max().expect("layers");
        assert!(place(VOLUME, narrowest, (1 << 52) - 1) < 1 << 40);
        assert_eq!(place(1, 1, 1 << 90), i64::MAX);
    }
}
