//! Scores that columns are picked by where every arm has coefficients of its own: exact integers, in one pass.
//!
//! A row's residual is its reward less what the public columns explain of it for its arm. For each arm k and column j the
//! integers `q_ij = rint(clamp(x_ij residual_i 2^15 / clip, -2^15, 2^15))` of the arm's rows are added up to `G_kj`, and
//! column j scores `sum_k |G_kj|`.
//!
//! **By how much one row moves a score.** A row has one arm. Replaced by one of the same arm it moves one `G_kj` by at
//! most 2^16, by one of another arm two of them by at most 2^15 each; and `| |a| - |b| | <= |a - b|`. So no score moves by
//! more than 2^16, whatever number of arms there is: all of them say which columns matter at the price of one.
//!
//! The integers are bitwise a function of the row and of public numbers: storage, position and threads change nothing.

use std::ops::Range;

use super::ball::{ArmRows, BallMap, BallRows, MOST_ROWS};
use super::relative::numbers::ValueRows;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::zeros;
use crate::runtime::parallel::{Plan, add_up, in_blocks};

/// Largest size of one row's integer; a score moves by at most twice that.
pub const LIMIT: f64 = 32768.0;

/// Rows that columns can be picked from.
pub trait CandidateRows: BallRows + ValueRows {}
impl<R: BallRows + ValueRows> CandidateRows for R {}

/// What the public columns explain of a reward from -1/2 to 1/2, and the clip of what they do not. Public.
#[derive(Debug, Clone, Copy)]
pub struct Explained<'a> {
    /// For each group a weight of the integers of each public column, and its level last.
    pub weights: &'a [f64],
    /// Largest size of a value times a residual.
    pub clip: f64,
    /// Columns that are scored are those before this one.
    pub candidates: usize,
}

/// A score for each candidate. `map` is that of the public columns, if there are any.
///
/// # Errors
/// If lengths do not fit, a group is out of range, `clip` is not finite and above 0 or a sparse row is not canonical.
pub fn column_scores<R: CandidateRows>(
    rows: &R,
    asked: ArmRows<'_>,
    map: Option<&BallMap>,
    explained: Explained<'_>,
    plan: Plan,
) -> Result<Vec<i64>> {
    let (n, width) = (BallRows::rows(rows), map.map_or(0, BallMap::width));
    asked.check(n)?;
    let Explained { weights, clip, candidates } = explained;
    if n >= MOST_ROWS || candidates > BallRows::columns(rows) {
        return Err(Error::invalid("X must have a column for each candidate and fewer than 2**31 rows"));
    }
    if weights.len() != asked.count * (width + 1) || weights.iter().any(|weight| !weight.is_finite()) {
        return Err(Error::invalid(
            "weights must be finite, for each arm one of each public column and a level",
        ));
    }
    if !(clip.is_finite() && clip > 0.0) {
        return Err(Error::invalid("clip must be finite and above 0"));
    }
    let size = asked.count.checked_mul(candidates).ok_or(Error::Memory)?;
    let start = || Ok(Block { sums: zeros(size)?, values: zeros(width)?, integers: zeros(width)? });
    let work = ValueRows::stored(rows) / n.max(1) + 1;
    let parts =
        in_blocks(n, work, plan, start, |range, block| add(rows, range, asked, map, explained, block))?;
    let sums = add_up(parts.into_iter().map(|block| Ok(block.sums)))?;
    let mut scores: Vec<i64> = zeros(candidates)?;
    for arm in sums.chunks_exact(candidates.max(1)) {
        scores.iter_mut().zip(arm).for_each(|(score, sum)| *score += sum.abs());
    }
    Ok(scores)
}

struct Block {
    sums: Vec<i64>,
    values: Vec<f64>,
    integers: Vec<i32>,
}

fn add<R: CandidateRows>(
    rows: &R,
    range: Range<usize>,
    asked: ArmRows<'_>,
    map: Option<&BallMap>,
    explained: Explained<'_>,
    block: &mut Block,
) -> Result<()> {
    let width = block.integers.len();
    for i in range.filter(|i| asked.counts(*i)) {
        let group = asked.group_of[i] as usize;
        let (weights, level) = explained.weights[group * (width + 1)..][..width + 1].split_at(width);
        let mut expected = level[0];
        if let Some(map) = map {
            rows.gather(i, map, &mut block.values)?;
            map.quantise(&mut block.values, 1.0, &mut block.integers);
            for (weight, q) in weights.iter().zip(&block.integers) {
                expected += weight * f64::from(*q);
            }
        }
        let moved = asked.range.moved(asked.rewards[i]);
        let reward = if moved.is_nan() { 0.0 } else { moved.clamp(-0.5, 0.5) };
        let factor = (reward - expected) * LIMIT / explained.clip;
        let sums = &mut block.sums[group * explained.candidates..][..explained.candidates];
        rows.visit(i, |column, value| {
            if let Some(sum) = sums.get_mut(column) {
                // What is no number counts as 0.
                *sum += (value * factor).clamp(-LIMIT, LIMIT).round_ties_even() as i64;
            }
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Dense;
    use crate::private::board;

    fn scores(rows: &[f64], rewards: &[f64], group_of: &[i64], weights: &[f64]) -> Vec<i64> {
        let range = board::Range::new(0.0, 1.0).expect("valid");
        let asked = ArmRows {
            rewards,
            range,
            group_of,
            count: 2,
            present: None,
            halves: false,
            squares: None,
            board: false,
        };
        let rows = Dense::new(rows, rewards.len(), 3).expect("valid");
        let explained = Explained { weights, clip: 1.0, candidates: 2 };
        column_scores(&rows, asked, None, explained, Plan::default()).expect("valid")
    }

    #[test]
    fn arms_are_added_by_their_sizes_and_the_last_column_is_no_candidate() {
        // Residuals of 1/2 and -1/2: the second column says the opposite of each arm.
        let found = scores(&[1.0, 0.5, 9.0, 1.0, 0.25, 9.0], &[1.0, 0.0], &[0, 1], &[0.0, 0.0]);
        assert_eq!(found, [32768, 16384 / 2 + 16384 / 4]);
        // A level that explains all of the reward leaves nothing.
        assert_eq!(scores(&[1.0, 0.5, 9.0], &[1.0], &[0], &[0.5, 0.0]), [0, 0]);
    }

    #[test]
    fn both_kinds_of_neighbours_reach_the_bound() {
        let most = [9.0, 9.0, 0.0];
        let bound = 2 * LIMIT as i64;
        let same = |reward| scores(&[most, most].concat(), &[1.0, reward], &[0, 0], &[0.0, 0.0])[0];
        assert_eq!(same(1.0) - same(0.0), bound);
        // It adds to what the others of its arm say, and takes off what those of the other one do.
        let rows = [most, most, most].concat();
        let other = |group| scores(&rows, &[1.0, 0.0, 1.0], &[0, 1, group], &[0.0, 0.0])[0];
        assert_eq!((other(0) - other(1)).abs(), bound);
    }

    #[test]
    fn what_is_no_number_counts_as_zero() {
        let found = scores(&[f64::NAN, f64::INFINITY, 0.0], &[1.0], &[0], &[0.0, 0.0]);
        assert_eq!(found, [0, 32768]);
        assert_eq!(scores(&[1.0, 1.0, 0.0], &[f64::NAN], &[1], &[0.0, 0.0]), [0, 0]);
    }
}
