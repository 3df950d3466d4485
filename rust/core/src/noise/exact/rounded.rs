//! Rounded Gaussian noise: what adding continuous Gaussian noise to an integer and rounding the sum amounts to.

use super::bernoulli::Decider;
use super::float::EXP_SERIES;
use super::scaled_exp::{INVERSE_LN_2, ScaledExp};
use crate::noise::entropy::NoiseSource;
use crate::runtime::error::{Error, Result};
use crate::runtime::simd::{Level, Vectorised};

/// P(Z = z) = P(z - 1/2 < N(0, sigma^2) < z + 1/2), for every integer z and an integer sigma from 1 to 2^40.
///
/// So an integer plus Z is the rounded sum of that integer and Gaussian noise: post-processing of the Gaussian
/// mechanism, and exactly as private.
///
/// Rejection, after Karney (2016), "Sampling exactly from the normal distribution": with a whole number k >= 0 and
/// x uniform in [0, 1), k + x is kept with probability proportional to exp(-(k + x)^2/2), which makes it the
/// magnitude of a standard normal. k is proposed with weight 2^-t, t = floor(k^2/(2 ln 2)), and kept with 2^t
/// exp(-(k + x)^2/2) <= 1: about 1.8 proposals a sample. Then sigma (k + x) is rounded, with a fair sign.
///
/// x is a real number whose digits are drawn when they matter. The first 64, x_0, nearly always settle everything:
/// 1. The first coin is for x_0: 2^t exp(-(k + x_0)^2/2), by float outside its error's band, else by integers.
/// 2. The second is for the rest x' 2^-64 of x: exp(-e), e = x' 2^-31 (k + x_0 + x' 2^-65)/2^33. It needs no
///    exponential: draw coins of e/1, e/2, e/3, ... until one falls tails; an even number of heads keeps (von Neumann).
///    Each is a product of coins, one of them of 2^-31, whose bits come with the proposal.
/// 3. sigma x rounds as sigma x_0 does, unless x' decides between two integers: one time in 2^23 at most.
#[derive(Clone, Copy)]
pub struct RoundedGaussian {
    sigma: u64,
    decider: Decider,
}

/// What sigma enters: products with 64 bits, in 128; `part + sigma` below 2^63 + 2^40; k sigma with k <= 3 below 2^42, and
/// with any other k in 128 bits. No error bound depends on it: they are about x alone.
const LARGEST_SIGMA: u64 = 1 << 40;

/// In units of 1/64: weights of k = 0, 1, 2, 3, and one for all that follow.
const WEIGHTS: u64 = 64 + 64 + 16 + 1 + 1;
/// 2^32 mod WEIGHTS: so many low halves are refused, to make the choice uniform.
const REFUSED: u32 = ((1u64 << 32) % WEIGHTS) as u32;

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
        Ok(RoundedGaussian { sigma, decider: Decider::FAST })
    }

    /// The same sampler decided by integers alone. For tests.
    #[doc(hidden)]
    pub fn always_exact(mut self) -> Self {
        self.decider = Decider::EXACT;
        self
    }

    /// One sample.
    #[inline]
    pub fn sample(&self, noise: &mut impl NoiseSource) -> i64 {
        loop {
            let (word, head, coin) = (noise.next_u64(), noise.next_u64(), noise.next_u64());
            if let Some(value) = self.settle(word, head, coin, noise) {
                return value;
            }
        }
    }

    /// One sample of round(fraction/2^64 + N(0, sigma^2)): noise on a number that is no integer, rounded afterwards.
    #[inline]
    pub fn sample_around(&self, fraction: u64, noise: &mut impl NoiseSource) -> i64 {
        loop {
            let (word, head, coin) = (noise.next_u64(), noise.next_u64(), noise.next_u64());
            let Some(k) = proposed(word, noise) else { continue };
            if !self.keeps_head(k, head, coin, noise) {
                continue;
            }
            let mut rest = Digits(Vec::new());
            if word >> 33 != 0 || keeps_rest(k, head, &mut rest, noise) {
                return self.rounded_around(word, k, head, fraction, &mut rest, noise);
            }
        }
    }

    /// Fills `out` with independent samples.
    pub fn fill(&self, out: &mut [i64], noise: &mut impl NoiseSource) {
        for_each(out.len(), |_| *self, |index, value| out[index] = value, noise);
    }

    /// What the proposal of three words comes to, drawing whatever else it needs; None if it is rejected.
    fn settle(&self, word: u64, head: u64, coin: u64, noise: &mut impl NoiseSource) -> Option<i64> {
        let k = proposed(word, noise)?;
        if self.keeps_head(k, head, coin, noise) { self.finish(word, k, head, noise) } else { None }
    }

    /// What follows the first coin.
    #[inline]
    fn finish(&self, word: u64, k: u64, head: u64, noise: &mut impl NoiseSource) -> Option<i64> {
        let mut rest = Digits(Vec::new());
        // 31 bits of the proposal are zero: the first coin of e may fall heads.
        if word >> 33 == 0 && !keeps_rest(k, head, &mut rest, noise) {
            return None;
        }
        Some(signed(word, self.rounded(k, head, &mut rest, noise)))
    }

    /// What a proposal that certainly passed its first coin comes to, where 64 digits of x settle it.
    #[inline(always)]
    fn settled_by_head(&self, word: u64, head: u64) -> Option<i64> {
        let product = u128::from(self.sigma) * u128::from(head);
        let (whole, part) = ((product >> 64) as u64, product as u64);
        // Below a half by less than sigma: the next digits decide. So do they if the second coin may fall heads.
        if word >> 33 == 0 || HALF.wrapping_sub(part).wrapping_sub(1) < self.sigma {
            return None;
        }
        // At most 4 * 2^40.
        let magnitude = near(slot(word)) * self.sigma + whole + (part >> 63);
        Some(signed(word, magnitude as i64))
    }

    /// What a proposal comes to that the quick look, `certain` of its first coin or not, left open.
    #[cold]
    fn look_closer(
        &self,
        certain: bool,
        word: u64,
        head: u64,
        coin: u64,
        noise: &mut impl NoiseSource,
    ) -> Option<i64> {
        if certain {
            self.finish(word, near(slot(word)), head, noise)
        } else {
            self.settle(word, head, coin, noise)
        }
    }

    /// The coin 2^t exp(-(k + x_0)^2/2), thrown with the word `coin`.
    #[inline]
    fn keeps_head(&self, k: u64, head: u64, coin: u64, noise: &mut impl NoiseSource) -> bool {
        if k == 0 && head == 0 {
            // exp(0) is no number that a lazy uniform could be compared with: always heads.
            return true;
        }
        let halvings = halvings(k);
        let y = k as f64 + head as f64 * (1.0 / (1u128 << 64) as f64);
        // y is within u (k + 2), so y^2/2 within 2u (k + 2)^2; t ln 2 and the difference within another 2u
        // (k + 2)^2.
        let exponent = (0.5 * y * y - halvings as f64 * std::f64::consts::LN_2).max(0.0);
        let error = (k + 2) as f64 * (k + 2) as f64 * (1.0 / (1u64 << 51) as f64);
        let number = || {
            let root = (u128::from(k) << 64) | u128::from(head);
            // 2 * (2^64)^2 = 2^129, in four factors.
            ScaledExp { shift: halvings, ..ScaledExp::of_square(root, [1 << 33, 1 << 32, 1 << 32, 1 << 32]) }
        };
        self.decider.flip_with(coin >> 1, exponent, error, number, noise)
    }

    /// round(sigma (k + x)).
    #[inline]
    fn rounded(&self, k: u64, head: u64, rest: &mut Digits, noise: &mut impl NoiseSource) -> i64 {
        let product = u128::from(self.sigma) * u128::from(head);
        let (whole, part) = ((product >> 64) as u64, product as u64);
        // The fraction is (part + sigma x') / 2^64 with 0 <= x' < 1: does that reach a half?
        // From a half up to one and a half it is rounded up, so a whole does not matter.
        let up = part >= HALF || part + self.sigma > HALF && rest.reach(HALF - part, self.sigma, noise);
        // k is below 2^20 unless the generator returned thousands of words of ones.
        i64::try_from(u128::from(k) * u128::from(self.sigma) + u128::from(whole + u64::from(up)))
            .unwrap_or(i64::MAX)
    }

    /// round(fraction/2^64 +- sigma (k + x)), with the sign of the proposal.
    fn rounded_around(
        &self,
        word: u64,
        k: u64,
        head: u64,
        fraction: u64,
        rest: &mut Digits,
        noise: &mut impl NoiseSource,
    ) -> i64 {
        let minus = (word >> 32) & 1 == 1;
        let product = u128::from(self.sigma) * u128::from(head);
        let (whole, part) = ((product >> 64) as u64, product as u64);
        // In units of 2^-64, sigma x is `part` and sigma x' beyond its whole. Of the magnitude, less the fraction where
        // it is subtracted from it, the nearest integer is wanted: one half more, rounded down. No tie has a chance.
        let offset = if minus { -i128::from(fraction) } else { i128::from(fraction) };
        let start = i128::from(part) + i128::from(HALF) + offset;
        let (floor, above) = (start >> 64, start.rem_euclid(1 << 64) as u64);
        // 0 - above is what is left to the next integer; 0 where `above` is 0, which sigma < 2^64 can't pass.
        let left = above.wrapping_neg();
        let up = above != 0 && left < self.sigma && rest.reach(left, self.sigma, noise);
        let magnitude = i128::from(k) * i128::from(self.sigma) + i128::from(whole) + floor + i128::from(up);
        let magnitude = i64::try_from(magnitude).unwrap_or(i64::MAX);
        if minus { -magnitude } else { magnitude }
    }
}

const HALF: u64 = 1 << 63;

/// The k that a word proposes, drawing what a large one needs; None if the word is refused.
#[inline]
fn proposed(word: u64, noise: &mut impl NoiseSource) -> Option<u64> {
    let product = (word & 0xffff_ffff) * WEIGHTS;
    if (product as u32) < REFUSED {
        return None;
    }
    match product >> 32 {
        slot @ ..=144 => Some(near(slot)),
        _ => far(noise),
    }
}

/// Proposals drawn at a time by [`for_each`].
const BLOCK: usize = 64;

/// Puts `count` independent samples, the i-th from `sampler(i)`, which all decide alike.
///
/// Draws the words of a block of proposals first, then what unsettled ones need, in order.
pub(crate) fn for_each(
    count: usize,
    sampler: impl Fn(usize) -> RoundedGaussian,
    mut put: impl FnMut(usize, i64),
    noise: &mut impl NoiseSource,
) {
    let mut words = [0u64; 3 * BLOCK];
    let (mut margins, mut candidates) = ([0.0; BLOCK], [0u8; BLOCK]);
    let level = Level::best();
    let mut done = 0;
    while done < count {
        let fast = sampler(done).decider.is_fast();
        // About 1.8 proposals a sample; what is left of the last block is thrown away.
        let proposed = BLOCK.min(2 * (count - done) + 4);
        let words = &mut words[..3 * proposed];
        noise.fill(words);
        let (proposals, others) = words.split_at(proposed);
        let (heads, coins) = others.split_at(proposed);
        level.run(QuickBlock { proposals, heads, coins, margins: &mut margins[..proposed] });
        // Proposals that are certainly rejected are left out without a branch, which could not be predicted.
        let lowest = if fast { -BAND } else { f64::NEG_INFINITY };
        let highest = if fast { BAND } else { f64::INFINITY };
        let mut kept = 0;
        for (index, &margin) in margins[..proposed].iter().enumerate() {
            candidates[kept] = index as u8;
            kept += usize::from(margin >= lowest);
        }
        for &index in &candidates[..kept] {
            if done == count {
                break;
            }
            let index = usize::from(index);
            let (sampler, word, head) = (sampler(done), proposals[index], heads[index]);
            let certain = margins[index] > highest;
            let value = match if certain { sampler.settled_by_head(word, head) } else { None } {
                Some(value) => Some(value),
                None => sampler.look_closer(certain, word, head, coins[index], noise),
            };
            if let Some(value) = value {
                put(done, value);
                done += 1;
            }
        }
    }
}

/// `magnitude` with the sign of a proposal, without a branch, which could not be predicted.
#[inline(always)]
fn signed(word: u64, magnitude: i64) -> i64 {
    let minus = ((word >> 32) & 1) as i64;
    (magnitude ^ -minus) + minus
}

/// Half-width of the band around the first coin's number in which integers decide, for k <= 3.
///
/// x_0 and the coin are cut to 52 bits: 2u each. So y is within 2u (k + 2), the exponent within 8u (k + 2)^2 <= 200u, its
/// exponential within 16u more, and the difference within 4u: below 2^-45 = 256u.
const BAND: f64 = 1.0 / (1u64 << 45) as f64;

/// The slot of a proposal: 64 for k = 0, 64 for 1, 16 for 2, one for 3, and one for all that follow.
#[inline(always)]
fn slot(word: u64) -> u64 {
    ((word & 0xffff_ffff) * WEIGHTS) >> 32
}

/// k of a slot up to 144.
#[inline(always)]
fn near(slot: u64) -> u64 {
    u64::from(slot >= 64) + u64::from(slot >= 128) + u64::from(slot >= 144)
}

/// By how much the first coin falls heads: above [`BAND`] certainly, below -[`BAND`] certainly not, else unknown.
///
/// Branch-free and one float, so that the compiler can do several proposals at once.
#[inline(always)]
fn quick(word: u64, head: u64, coin: u64) -> f64 {
    /// Adding 1.5 * 2^52 to a small float rounds it to an integer, which its low bits then hold.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN_2_LEAD: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    const LN_2_REST: f64 = 1.908_214_929_270_587_7e-10;
    /// Or-ing 52 bits into 1.0 makes a float in [1, 2).
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    let product = (word & 0xffff_ffff) * WEIGHTS;
    let slot = product >> 32;
    let fraction = |bits: u64| f64::from_bits(ONE | (bits >> 12)) - 1.0;
    let whole = if slot >= 64 { 1.0 } else { 0.0 }
        + if slot >= 128 { 1.0 } else { 0.0 }
        + if slot >= 144 { 1.0 } else { 0.0 };
    let halvings = if slot >= 128 { 2.0 } else { 0.0 } + if slot >= 144 { 4.0 } else { 0.0 };
    let y = whole + fraction(head);
    let exponent = 0.5 * y * y - halvings * std::f64::consts::LN_2;
    // exp(-exponent) as in `float::negative_exp`, for exponents up to 8 (and -200u).
    let rounded = exponent * std::f64::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let f = (exponent - n * LN_2_LEAD) - n * LN_2_REST;
    let mut series = 0.0;
    for coefficient in EXP_SERIES {
        series = coefficient - series * f;
    }
    let power = f64::from_bits(ONE.wrapping_sub(rounded.to_bits().wrapping_sub(ROUND.to_bits()) << 52));
    let distance = series * power - fraction(coin);
    let known = if slot > 144 { 0.0 } else { distance };
    if (product & 0xffff_ffff) < u64::from(REFUSED) { -1.0 } else { known }
}

/// The quick look at a block, compiled for the widest registers there are.
struct QuickBlock<'a> {
    proposals: &'a [u64],
    heads: &'a [u64],
    coins: &'a [u64],
    margins: &'a mut [f64],
}

impl Vectorised for QuickBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let words = self.proposals.iter().zip(self.heads).zip(self.coins);
        for (margin, ((&word, &head), &coin)) in self.margins.iter_mut().zip(words) {
            *margin = quick(word, head, coin);
        }
    }
}

/// t = floor(k^2/(2 ln 2)), or one less where the rounded constant says so: the coin's number stays below 1.
#[inline]
fn halvings(k: u64) -> u64 {
    ((u128::from(k) * u128::from(k) * u128::from(INVERSE_LN_2)) >> 64) as u64
}

/// k >= 4 with probability 2^(6 - t), or nothing.
///
/// k - 4 ones, then zeros, t - 6 bits in all: no two of these patterns can begin alike.
#[cold]
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
    let mut zeros = halvings(k) - 6 - ones;
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

/// The coin exp(-e) for the digits after the first 64, when the first 31 bits of its first coin were zero.
#[cold]
fn keeps_rest(k: u64, head: u64, rest: &mut Digits, noise: &mut impl NoiseSource) -> bool {
    let mut heads = 0u64;
    loop {
        // A coin of e/(heads + 1): 2^-31 (already known to be heads the first time), x', (k + x_0 + x' 2^-65)/2^33,
        // and 1/(heads + 1).
        let all = (heads == 0 || noise.next_u64() >> 33 == 0)
            && rest.is_above_uniform(noise)
            && is_below_place(k, head, rest, noise)
            && (heads == 0 || super::below(heads + 1, noise) == 0);
        if !all {
            return heads.is_multiple_of(2);
        }
        heads += 1;
    }
}

/// A coin of (k + x_0 + x' 2^-65)/2^33: a uniform number in 0..2^33 compared digit by digit.
fn is_below_place(k: u64, head: u64, rest: &mut Digits, noise: &mut impl NoiseSource) -> bool {
    let whole = noise.next_u64() >> 31;
    if whole != k {
        return whole < k;
    }
    let word = noise.next_u64();
    if word != head {
        return word < head;
    }
    // Beyond x_0 the number has a zero, then the digits of x'.
    let mut before = 0;
    for index in 0.. {
        let digit = rest.word(index, noise);
        let (own, word) = ((before << 63) | (digit >> 1), noise.next_u64());
        if word != own {
            return word < own;
        }
        before = digit;
    }
    unreachable!("two random numbers differ somewhere")
}

/// The binary digits of x' in [0, 1), 64 at a time, drawn when they are first looked at.
struct Digits(Vec<u64>);

impl Digits {
    fn word(&mut self, index: usize, noise: &mut impl NoiseSource) -> u64 {
        while self.0.len() <= index {
            self.0.push(noise.next_u64());
        }
        self.0[index]
    }

    /// A coin of x'.
    fn is_above_uniform(&mut self, noise: &mut impl NoiseSource) -> bool {
        for index in 0.. {
            let (own, other) = (self.word(index, noise), noise.next_u64());
            if own != other {
                return other < own;
            }
        }
        unreachable!("two random numbers differ somewhere")
    }

    /// Whether x' `scale` >= `distance`, for 0 < `distance` < `scale`: digits of the quotient by long division.
    #[cold]
    fn reach(&mut self, distance: u64, scale: u64, noise: &mut impl NoiseSource) -> bool {
        let mut remainder = distance;
        for index in 0.. {
            let wide = u128::from(remainder) << 64;
            let digit = (wide / u128::from(scale)) as u64;
            remainder = (wide % u128::from(scale)) as u64;
            let own = self.word(index, noise);
            if own != digit {
                return own > digit;
            }
            if remainder == 0 {
                return true;
            }
        }
        unreachable!("a random number differs from a quotient somewhere")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::entropy::predictable::{ScriptedNoise, SeededNoise};

    fn sampler(sigma: u64) -> RoundedGaussian {
        RoundedGaussian::new("sigma", sigma).expect("valid")
    }

    #[test]
    fn floats_and_integers_give_the_same_samples_from_the_same_bits() {
        for sigma in [1, 2, 3, 97, 1024, 65_537, 1 << 20, (1 << 28) + 1, 1 << 32, (1 << 40) - 1, 1 << 40] {
            let (fast, exact) = (sampler(sigma), sampler(sigma).always_exact());
            let (mut left, mut right) = (SeededNoise::new(8, sigma), SeededNoise::new(8, sigma));
            for _ in 0..1500 {
                assert_eq!(fast.sample(&mut left), exact.sample(&mut right), "{sigma}");
            }
            assert_eq!(left.words_drawn(), right.words_drawn(), "{sigma}");
            let (mut quick, mut slow) = (vec![0; 4000], vec![0; 4000]);
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
    fn the_quick_look_agrees_with_the_slow_one_wherever_it_is_certain() {
        let (mut noise, exact) = (SeededNoise::new(11, 0), sampler(1 << 20));
        let mut uncertain = 0;
        for _ in 0..200_000 {
            let (word, head, coin) = (noise.next_u64(), noise.next_u64(), noise.next_u64());
            let margin = quick(word, head, coin);
            if margin.abs() <= BAND {
                uncertain += 1;
                continue;
            }
            let slow = exact.settle(word, head, coin, &mut ScriptedNoise::new(vec![]));
            assert_eq!(slow.is_some(), margin > 0.0);
        }
        // One in 146 is in the far tail.
        assert!((1000..1800).contains(&uncertain), "{uncertain}");
    }

    /// The word that proposes the k of this slot, with 31 bits that are not zero and a sign.
    fn proposal(slot: u64, negative: bool) -> u64 {
        (1 << 40) | (u64::from(negative) << 32) | (((slot << 32) + (1 << 31)) / WEIGHTS)
    }

    #[test]
    fn scripted_words_give_the_sample_they_spell() {
        let sigma = 1000;
        let at = |slot, head: u64, negative| {
            sampler(sigma).sample(&mut ScriptedNoise::new(vec![proposal(slot, negative), head, 0]))
        };
        assert_eq!(at(0, 1 << 63, false), 500);
        assert_eq!(at(0, 1 << 63, true), -500);
        assert_eq!(at(64, 1 << 62, false), 1250);
        assert_eq!(at(130, 1 << 62, false), 2250);
        assert_eq!(at(144, 0, true), -3000);
        // 0.4999 and 0.5001 of one.
        assert_eq!(at(0, (u128::pow(2, 64) / 1000 * 4999 / 10_000) as u64, false), 0);
        assert_eq!(at(0, (u128::pow(2, 64) / 1000 * 5001 / 10_000) as u64, false), 1);
        assert_eq!(at(0, 0, true), 0);
    }

    #[test]
    fn digits_beyond_the_first_word_decide_next_to_a_half() {
        // sigma = 3: 3 x_0 is a half less 1/2^64 times something; x' takes it over or not.
        let head = (1u64 << 63) / 3;
        assert_eq!(3 * head, HALF - 2);
        let with =
            |rest: u64| sampler(3).sample(&mut ScriptedNoise::new(vec![proposal(0, false), head, 0, rest]));
        // 3 x' >= 2 exactly when x' >= 2/3.
        assert_eq!((with(u64::MAX / 3 * 2 - 1), with(u64::MAX / 3 * 2 + 1)), (0, 1));
        let mut digits = Digits(vec![1 << 63]);
        assert!(digits.reach(5, 10, &mut ScriptedNoise::new(vec![])));
        assert!(!digits.reach(6, 10, &mut ScriptedNoise::new(vec![])));
    }

    #[test]
    fn the_far_tail_is_patterns_of_ones_and_zeros() {
        let far = |words: Vec<u64>| far(&mut ScriptedNoise::new(words));
        assert_eq!([4, 5, 6, 7].map(halvings), [11, 18, 25, 35]);
        assert_eq!(far(vec![(1 << 59) - 1]), Some(4));
        assert_eq!(far(vec![1 << 59]), None);
        assert_eq!(far(vec![1 << 63]), Some(5));
        assert_eq!(far(vec![(1 << 63) | (1 << 52)]), None);
        assert_eq!(far(vec![(1 << 63) | ((1 << 52) - 1)]), Some(5));
        // Ten: six ones and 60 zeros, of which two are in the next word.
        assert_eq!(halvings(10), 72);
        assert_eq!(far(vec![!0 << 58, (1 << 62) - 1]), Some(10));
        assert_eq!(far(vec![!0 << 58, 1 << 62]), None);
        // 64 ones and more: k = 68 needs 3335 bits.
        let mut words = vec![u64::MAX];
        words.extend(vec![0; 60]);
        assert_eq!(far(words), Some(68));
        for k in 0..2000 {
            assert!(halvings(k) as f64 * std::f64::consts::LN_2 <= 0.5 * (k * k) as f64 + 1e-9);
        }
    }

    #[test]
    fn the_rest_of_the_digits_can_reject() {
        // One head, then tails: rejected. None, or two: kept.
        let (k, head) = (3, 5);
        let keeps = |words: &[u64]| {
            keeps_rest(k, head, &mut Digits(Vec::new()), &mut ScriptedNoise::new(words.to_vec()))
        };
        // Digits of x', the uniform they are compared with, the place; then 31 bits that are not zero.
        assert!(!keeps(&[u64::MAX, u64::MAX - 1, 0, 1 << 63]));
        assert!(keeps(&[u64::MAX - 1, u64::MAX]));
        // Heads, then heads: 31 zeros, a uniform, a place, and one of two; then tails.
        assert!(keeps(&[u64::MAX, 0, 0, 0, 0, 0, 0, 1 << 63]));
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
    fn the_largest_sigma_is_a_power_of_two_and_rounds_by_the_first_digits_alone() {
        let largest = sampler(1 << 40);
        for bad in [0, (1 << 40) + 1, u64::MAX] {
            assert!(RoundedGaussian::new("sigma", bad).is_err());
        }
        // sigma x_0 is `head` / 2^24: no digit that follows can carry one from below a half to it.
        let rounded =
            |head| largest.rounded(3, head, &mut Digits(Vec::new()), &mut ScriptedNoise::new(vec![]));
        assert_eq!(rounded((1 << 23) - 1), 3 << 40);
        assert_eq!(rounded(1 << 23), (3 << 40) + 1);
        assert_eq!(rounded(u64::MAX), 4 << 40);
        assert_eq!(largest.settled_by_head(proposal(0, false), u64::MAX), Some(1 << 40));
        assert_eq!(largest.settled_by_head(proposal(144, true), u64::MAX), Some(-4 << 40));
    }
}
