//! A uniform number in [0, 1) that is revealed only as far as a question needs.

use std::cmp::Ordering;

use super::scaled_exp::ScaledExp;
use super::wide;
use crate::noise::entropy::NoiseSource;

/// 63 known bits, then 64 more for every word of `tail`, then bits nobody has looked at.
pub(super) struct LazyUniform {
    head: u64,
    tail: Vec<u64>,
}

impl LazyUniform {
    /// Starts from the first 63 bits.
    pub(super) fn new(head: u64) -> Self {
        debug_assert!(head < 1 << 63);
        LazyUniform { head, tail: Vec::new() }
    }

    fn reveal(&mut self, noise: &mut impl NoiseSource) {
        self.tail.push(noise.next_u64());
    }

    /// Whether the number is below `bound`, drawing the fewest words that settle it.
    ///
    /// Terminates with probability one: `bound` is irrational, so enough limbs tell on which side of a cell
    /// it lies or that it lies strictly inside, and in the last case a further word halves the doubt 64
    /// times.
    pub(super) fn is_below(&mut self, bound: &ScaledExp, noise: &mut impl NoiseSource) -> bool {
        // Two limbs more than the cell: its bounds are then 2^-50 of a cell wide.
        let mut limbs = self.tail.len() + 2;
        loop {
            let (lower, upper) = bound.bounds(limbs);
            let (cell, cell_end) = self.cell(limbs);
            let above_cell = wide::compare(&lower, &cell_end) != Ordering::Less;
            let under_cell = wide::compare(&upper, &cell) != Ordering::Greater;
            if above_cell || under_cell {
                return above_cell;
            }
            let starts_inside = wide::compare(&lower, &cell) != Ordering::Less;
            let ends_inside = wide::compare(&upper, &cell_end) != Ordering::Greater;
            if starts_inside && ends_inside {
                self.reveal(noise);
            }
            limbs += 1;
        }
    }

    /// The numbers that agree with the known bits, times 2^63, with `limbs` limbs after the point.
    fn cell(&self, limbs: usize) -> (Vec<u64>, Vec<u64>) {
        let mut start = vec![0; limbs + 1];
        for (limb, &word) in start.iter_mut().rev().zip(std::iter::once(&self.head).chain(&self.tail)) {
            *limb = word;
        }
        let mut end = start.clone();
        wide::add(&mut end[limbs - self.tail.len()..], &[1]);
        (start, end)
    }

    /// Roughly -ln of the number, after revealing a whole word beyond its first word that is not zero.
    ///
    /// A starting point for exact search, so the platform's logarithm is good enough.
    pub(super) fn rough_negative_log(&mut self, noise: &mut impl NoiseSource) -> f64 {
        let mut leading = self.head;
        while leading == 0 {
            self.reveal(noise);
            leading = self.tail[self.tail.len() - 1];
        }
        self.reveal(noise);
        let significant = (u128::from(leading) << 64) | u128::from(self.tail[self.tail.len() - 1]);
        let bits = 63 + 64 * self.tail.len();
        bits as f64 * std::f64::consts::LN_2 - (significant as f64).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::entropy::predictable::ScriptedNoise;

    /// floor(2^63 e^-1) and the following word of its expansion.
    const INVERSE_E: (u64, u64) = (0x2f16_ac6c_59de_6f8d, 0x5d6f_63c1_482a_7c86);

    fn is_below_inverse_e(head: u64, further: Vec<u64>) -> (bool, u64) {
        let mut noise = ScriptedNoise::new(further);
        let answer = LazyUniform::new(head).is_below(&ScaledExp::new(1, 1, 0), &mut noise);
        (answer, noise.words_drawn)
    }

    #[test]
    fn words_are_revealed_only_inside_the_cell_of_the_bound() {
        assert_eq!(is_below_inverse_e(INVERSE_E.0 - 1, vec![]), (true, 0));
        assert_eq!(is_below_inverse_e(INVERSE_E.0 + 1, vec![]), (false, 0));
        assert_eq!(is_below_inverse_e(INVERSE_E.0, vec![INVERSE_E.1 - 1]), (true, 1));
        assert_eq!(is_below_inverse_e(INVERSE_E.0, vec![INVERSE_E.1 + 1]), (false, 1));
        assert_eq!(is_below_inverse_e(INVERSE_E.0, vec![INVERSE_E.1, 0]), (true, 2));
        assert_eq!(is_below_inverse_e(INVERSE_E.0, vec![INVERSE_E.1, u64::MAX]), (false, 2));
    }

    #[test]
    fn a_bound_of_exp_minus_1000_waits_for_its_leading_zeros() {
        let bound = ScaledExp::new(1000, 1, 0);
        // exp(-1000) is about 2^-1442.7: 63 + 64 * 21 zero bits leave it inside, the 22nd word settles it.
        let mut words = vec![0; 21];
        words.push(u64::MAX);
        let mut noise = ScriptedNoise::new(words);
        assert!(!LazyUniform::new(0).is_below(&bound, &mut noise));
        assert_eq!(noise.words_drawn, 22);
        let mut noise = ScriptedNoise::new(vec![]);
        assert!(LazyUniform::new(0).is_below(&bound, &mut noise));
        assert_eq!(noise.words_drawn, 22);
    }
}
