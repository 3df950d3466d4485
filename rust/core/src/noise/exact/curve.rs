//! Whether a point is under the curve exp(-x^2/2): decided by integers, with as many digits of the point as it takes.

use std::cmp::Ordering;

use super::scaled_exp::ScaledExp;
use super::wide;
use crate::noise::entropy::NoiseSource;

/// Binary digits in [0, 1), 64 at a time, drawn when they are first looked at.
#[derive(Default)]
pub(super) struct Digits(pub(super) Vec<u64>);

impl Digits {
    pub(super) fn word(&mut self, index: usize, noise: &mut impl NoiseSource) -> u64 {
        while self.0.len() <= index {
            self.0.push(noise.next_u64());
        }
        self.0[index]
    }

    /// Whether the number times `scale` is at least `distance`, for 0 < `distance` < `scale` < 2^96: digits of the quotient
    /// by long division.
    #[cold]
    pub(super) fn reach(&mut self, distance: u128, scale: u128, noise: &mut impl NoiseSource) -> bool {
        debug_assert!(distance < scale && scale < 1 << 96);
        let mut remainder = distance;
        for index in 0.. {
            let mut digit = 0;
            for _ in 0..2 {
                remainder <<= 32;
                digit = (digit << 32) | (remainder / scale) as u64;
                remainder %= scale;
            }
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

/// The place x = `scale` (`head` + rest) / (`divisor` 2^`bits`).
pub(super) struct Place {
    pub(super) scale: u64,
    pub(super) divisor: u64,
    pub(super) head: u128,
    pub(super) bits: u32,
    pub(super) rest: Digits,
}

/// The height y = (`head` + rest) / 2^`bits`.
pub(super) struct Height {
    pub(super) head: u64,
    pub(super) bits: u64,
    pub(super) rest: Digits,
}

/// Whether y < exp(-x^2/2).
///
/// Given the digits drawn so far, each of x and y lies in a cell. The curve falls, so the point is under it if the top of y's
/// cell is below a lower bound at the end of x's cell, and not under it if the bottom is above an upper bound at
/// the start. Otherwise a word more of each shrinks both cells 2^64 times. Terminates with probability one:
/// the curve has no area.
#[cold]
pub(super) fn is_under(place: &mut Place, height: &mut Height, noise: &mut impl NoiseSource) -> bool {
    loop {
        let (x_words, y_words) = (place.rest.0.len(), height.rest.0.len());
        // Bounds have a limb after the point for each word, and two to spare.
        let limbs = x_words.max(y_words) + 2 + (height.bits / 64) as usize;
        let (bottom, top) = height.cell(limbs);
        let (start, end) = place.cell();
        let lower = place.curve(end).bounds(limbs).0;
        if wide::compare(&top, &lower) != Ordering::Greater {
            return true;
        }
        let mut upper = vec![0; limbs + 1];
        upper[limbs] = 1 << 63;
        // At 0 the curve is 1, which is rational.
        if start.iter().any(|&limb| limb != 0) {
            upper = place.curve(start).bounds(limbs).1;
        }
        if wide::compare(&bottom, &upper) != Ordering::Less {
            return false;
        }
        place.rest.word(x_words, noise);
        height.rest.word(y_words, noise);
    }
}

impl Place {
    /// Integers n and n + 1 with x between `scale` n / (`divisor` 2^(`bits` + 64 words)) and the same of n + 1.
    fn cell(&self) -> (Vec<u64>, Vec<u64>) {
        let mut start: Vec<u64> = self.rest.0.iter().rev().copied().collect();
        start.extend([self.head as u64, (self.head >> 64) as u64, 0]);
        let mut end = start.clone();
        wide::add(&mut end, &[1]);
        (start, end)
    }

    /// exp(-x^2/2) at `scale` n / (`divisor` 2^(`bits` + 64 words)).
    fn curve(&self, mut n: Vec<u64>) -> ScaledExp {
        n.push(0);
        wide::scale(&mut n, self.scale);
        let mut square = n.clone();
        square.resize(2 * n.len(), 0);
        let numerator = wide::multiply(&square, &n, 0);
        let mut divisors = vec![self.divisor, self.divisor, 2, 1 << self.bits, 1 << self.bits];
        // 2^128 for each word.
        divisors.extend(vec![1 << 32; 4 * self.rest.0.len()]);
        ScaledExp { numerator, divisors, shift: 0 }
    }
}

impl Height {
    /// The ends of y's cell times 2^63, with `limbs` limbs after the point and one before.
    fn cell(&self, limbs: usize) -> (Vec<u64>, Vec<u64>) {
        let mut bottom: Vec<u64> = self.rest.0.iter().rev().copied().collect();
        bottom.push(self.head);
        bottom.resize(limbs + 2, 0);
        let mut top = bottom.clone();
        wide::add(&mut top, &[1]);
        // Its unit is 2^-(bits + 64 words); that of the bounds 2^-(63 + 64 limbs).
        let shift = 63 + 64 * (limbs as i64 - self.rest.0.len() as i64) - self.bits as i64;
        for end in [&mut bottom, &mut top] {
            wide::shift(end, shift);
            end.truncate(limbs + 1);
        }
        (bottom, top)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::entropy::predictable::{ScriptedNoise, SeededNoise};

    fn place(scale: u64, divisor: u64, head: u128) -> Place {
        Place { scale, divisor, head, bits: 52, rest: Digits::default() }
    }

    #[test]
    fn points_far_from_the_curve_need_no_further_digit() {
        let mut noise = SeededNoise::new(3, 0);
        let mut sides = [0; 2];
        for _ in 0..2000 {
            let (head, y) = (noise.next_u64() >> 12, noise.next_u64() >> 24);
            let divisor = 1 + (noise.next_u64() >> 40);
            let scale = divisor * (1 + (noise.next_u64() >> 62)) + 1;
            let x = scale as f64 * head as f64 / (divisor as f64 * 2f64.powi(52));
            let distance = (-0.5 * x * x).exp() - y as f64 * 2f64.powi(-40);
            if distance.abs() < 1e-9 {
                continue;
            }
            let mut height = Height { head: y, bits: 40, rest: Digits::default() };
            let none = &mut ScriptedNoise::new(vec![]);
            assert_eq!(
                is_under(&mut place(scale, divisor, u128::from(head)), &mut height, none),
                distance > 0.0
            );
            assert_eq!(none.words_drawn, 0);
            sides[usize::from(distance > 0.0)] += 1;
        }
        assert!(sides.iter().all(|count| *count > 200), "{sides:?}");
    }

    #[test]
    fn digits_decide_next_to_the_curve() {
        // At x = 1 + (rest) 2^-52 the curve is 0.6065306597126334... less 0.6065 (rest) 2^-52. This is its expansion.
        let at_one = 0x9b45_97e3_7cb0_4ff3u64;
        let under = |y: u64, words: Vec<u64>| {
            let mut height = Height { head: y, bits: 64, rest: Digits::default() };
            let noise = &mut ScriptedNoise::new(words);
            (is_under(&mut place(1, 1, 1 << 52), &mut height, noise), noise.words_drawn)
        };
        // 64 digits of y are finer than 52 of x: x decides. 0.6065 * 2^12 = 2484 units of y.
        assert_eq!(under(at_one + 1, vec![]), (false, 0));
        assert_eq!(under(at_one - 2486, vec![]), (true, 0));
        assert_eq!(under(at_one - 2000, vec![0, 0]), (true, 2));
        assert_eq!(under(at_one - 2000, vec![u64::MAX, 0]), (false, 2));
        assert_eq!(under(at_one - 1242, vec![1 << 62, 0]), (true, 2));
        assert_eq!(under(at_one - 1242, vec![3 << 62, 0]), (false, 2));
    }

    #[test]
    fn at_zero_everything_below_one_is_under_and_nothing_above() {
        let under = |head: u64, rest: Vec<u64>| {
            let mut height = Height { head, bits: 40, rest: Digits::default() };
            is_under(&mut place(1, 1, 0), &mut height, &mut ScriptedNoise::new(rest))
        };
        assert!(under((1 << 40) - 1, vec![]));
        assert!(!under(1 << 40, vec![]));
        assert!(!under((1 << 40) + 7, vec![]));
    }

    #[test]
    fn heights_with_many_leading_zeros() {
        // exp(-50) = 2^-72.13: at x = 10 a height of 80 zeros is under it, and half of 2^-71 is not.
        let under = |bits: u64, words: Vec<u64>| {
            let mut height = Height { head: 0, bits, rest: Digits::default() };
            is_under(&mut place(1, 1, 10 << 52), &mut height, &mut ScriptedNoise::new(words))
        };
        assert!(under(80, vec![]));
        assert!(!under(71, vec![0, 1 << 63]));
        assert!(under(71, vec![0, 1 << 60]));
    }

    #[test]
    fn a_quotient_is_compared_digit_by_digit() {
        let reach = |rest: u64, distance, scale| {
            Digits(vec![rest]).reach(distance, scale, &mut ScriptedNoise::new(vec![]))
        };
        assert!(reach(1 << 63, 5, 10) && !reach((1 << 63) - 1, 5, 10));
        assert!(!reach(u64::MAX / 3 * 2 - 1, 2, 3) && reach(u64::MAX / 3 * 2 + 1, 2, 3));
        let wide = 1 << 90;
        assert!(reach(3 << 62, wide / 4 * 3, wide) && !reach((3 << 62) - 1, wide / 4 * 3, wide));
    }
}
