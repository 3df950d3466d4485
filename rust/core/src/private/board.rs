//! What an episode earned: five integers a row, for the scoreboard.
//!
//! | number | of a row with a reward |
//! |---|---|
//! | 0 | its reward, moved to -1..1 and cut there, in steps of 1/P |
//! | 1 | P |
//! | 2 | the square of the first over P, rounded toward zero |
//! | 3 | P/2 where the reward had to be cut |
//! | 4 | P/2 where its context was cut to less than a quarter of its length |
//!
//! A row without a reward is five zeros. Replacing one row moves the sums by at most `sqrt(9/2) P`: rewards at both ends
//! are `2 P` apart and their squares alike; with u how far one is from the other's end, `(2 - u)^2 (1 + u^2)` is largest at
//! u = 0; both flags add `P^2 / 2`. Against a row without a reward it is `3 P^2 + P^2 / 2`.

use crate::runtime::error::{Error, Result};

/// P: steps of a reward from the middle of its range to either end.
pub const STEPS: i64 = 1 << 10;

/// Squared distance of two rows' integers at most.
pub const SENSITIVITY_SQUARED: i64 = 9 * STEPS * STEPS / 2;

/// Numbers of a row.
pub const WIDTH: usize = 5;

/// A row counts as cut if its squared length is above this many squares of what it is cut to.
pub const CUT: f64 = 16.0;

/// Where rewards are expected. Public.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    low: f64,
    high: f64,
}

impl Range {
    /// # Errors
    /// If the ends are not finite, or the second is not above the first.
    pub fn new(low: f64, high: f64) -> Result<Self> {
        if !(low.is_finite() && high.is_finite() && (high - low).is_finite() && low < high) {
            return Err(Error::invalid("a range of rewards must be two finite numbers, the lower one first"));
        }
        Ok(Range { low, high })
    }

    /// A reward moved to -1/2..1/2 and not yet cut.
    #[inline(always)]
    pub fn moved(&self, reward: f64) -> f64 {
        (reward - (self.low + self.high) / 2.0) / (self.high - self.low)
    }

    /// Add a row's integers.
    #[inline(always)]
    pub fn add(&self, board: &mut [i64], reward: f64, cut: bool) {
        let own = steps(self.moved(reward));
        board[0] += own;
        board[1] += STEPS;
        board[2] += own * own / STEPS;
        board[3] += if (self.low..=self.high).contains(&reward) { 0 } else { STEPS / 2 };
        board[4] += if cut { STEPS / 2 } else { 0 };
    }
}

/// A reward from -1/2 to 1/2 in steps; others are moved to the ends, NaN to the middle.
#[inline(always)]
pub fn steps(reward: f64) -> i64 {
    let clipped = if reward.is_nan() { 0.0 } else { reward.clamp(-0.5, 0.5) };
    (clipped * (2 * STEPS) as f64).round_ties_even() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_rows_are_further_apart_and_some_are_as_far() {
        let range = Range::new(-1.0, 3.0).expect("valid");
        let rewards = [-9.0, -1.0, 0.0, 1.0, 3.0, 9.0, f64::NAN, f64::INFINITY];
        let mut rows = vec![[0; WIDTH]];
        for reward in rewards {
            for cut in [false, true] {
                rows.push([0; WIDTH]);
                range.add(rows.last_mut().expect("pushed"), reward, cut);
            }
        }
        // Every third reward there is, with the flags that are furthest apart.
        for own in (-STEPS..=STEPS).step_by(3) {
            for flag in [0, STEPS / 2] {
                rows.push([own, STEPS, own * own / STEPS, flag, flag]);
            }
        }
        let apart = |a: &[i64; 5], b: &[i64; 5]| a.iter().zip(b).map(|(a, b)| (a - b).pow(2)).sum::<i64>();
        let largest = rows.iter().flat_map(|a| rows.iter().map(move |b| apart(a, b))).max();
        assert_eq!(largest, Some(SENSITIVITY_SQUARED));
    }

    #[test]
    fn ranges_are_two_numbers_in_order() {
        for (low, high) in [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (-1e308, 1e308)] {
            assert!(Range::new(low, high).is_err());
        }
    }
}
