//! What a linear model of each arm needs, from rows cut to a ball: exact integer sums, in one pass.
//!
//! A row has integers `q` in the ball of the map's radius R, a reward `r` of at most [`board::STEPS`] = P steps and a
//! group. Its group's block gets `q r`, `r`, `q` and 1, and where they are asked for the squares of `q`, cut to a
//! ball of their own. What of `q` is above zero and what is below goes to sums of all rows.
//!
//! **By how much one row moves them.** Rows `(q, r)` and `(p, s)`, weights `b` with H = b R, B = b P and C = R P:
//! - one group: `|q r - p s|^2 + H^2 (r - s)^2 + B^2 |q - p|^2` is convex in each of q, p, r, s, so it is largest with
//!   all of them at their limits and, linear in q'p, with p = q or p = -q: `4 R^2 P^2 (1 + b^2)`, for s = -r and for s = r;
//! - two groups: twice `R^2 P^2 + H^2 P^2 + B^2 R^2 + C^2`, which is the same number.
//!
//! So with noise sigma on `q r`, sigma / H on `r`, sigma / B on `q` and sigma / C on the counts, one row costs
//! `2 R P sqrt(1 + b^2) / sigma`, whatever b is. Squares, and both halves of q, have no entry below zero: they move by
//! at most sqrt(2) times the radius of their ball.

use std::ops::Range;

use super::{BallMap, BallRows, MOST_ROWS};
use crate::private::board::{self, steps};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::zeros;
use crate::runtime::parallel::{Plan, add_up, in_blocks};
use crate::runtime::simd::{Vectorised, rounded_to_zero};

/// Squares are divided by this, so that those of a row fit 16 bits as its integers do.
pub const SQUARE_UNIT: i64 = 1 << 15;

/// Each row's group and reward, and what is summed. Lengths are those of the rows.
#[derive(Debug, Clone, Copy)]
pub struct ArmRows<'a> {
    /// Private; moved to -1/2..1/2 by `range`, and to its ends beyond it, NaN to the middle.
    pub rewards: &'a [f64],
    /// Where rewards are expected.
    pub range: board::Range,
    /// From 0 to `count - 1`, but for rows with flag 0.
    pub group_of: &'a [i64],
    /// Number of groups.
    pub count: usize,
    /// A row with flag 0 leaves nothing anywhere, and is not read.
    pub present: Option<&'a [u8]>,
    /// Whether the halves of `q` are summed over all rows.
    pub halves: bool,
    /// Radius of the ball of squares, where they are summed.
    pub squares: Option<i64>,
    /// Whether the numbers of the [`board`] are summed over all rows.
    pub board: bool,
}

impl ArmRows<'_> {
    /// Whether row `i` counts.
    pub(crate) fn counts(&self, i: usize) -> bool {
        self.present.is_none_or(|flags| flags[i] != 0)
    }

    /// # Errors
    /// If lengths are not those of `n` rows, or a group is out of range.
    pub(crate) fn check(&self, n: usize) -> Result<()> {
        if self.rewards.len() != n || self.group_of.len() != n {
            return Err(Error::invalid("rewards and arms must have one value for each row of X"));
        }
        if self.present.is_some_and(|flags| flags.len() != n) {
            return Err(Error::invalid("present must have one flag for each row"));
        }
        let within = |(i, group): (usize, &i64)| !self.counts(i) || (0..self.count as i64).contains(group);
        if !self.group_of.iter().enumerate().all(within) {
            return Err(Error::invalid("arms must be from 0 to the number of arms less 1"));
        }
        Ok(())
    }

    /// Sums of one group.
    fn block(&self, width: usize) -> usize {
        2 * (width + 1) + if self.squares.is_some() { width } else { 0 }
    }
}

/// For each group sums of `q r`, `r`, `q`, 1 and squares; then, for all, what of `q` is above zero and what is below, and
/// the numbers of the board.
///
/// # Errors
/// If lengths do not fit, a group is out of range, the ball of squares is larger than `radius^2` in units of
/// [`SQUARE_UNIT`], the map has a constant or a sparse row is not canonical.
pub fn arm_sums<R: BallRows>(rows: &R, asked: ArmRows<'_>, map: &BallMap, plan: Plan) -> Result<Vec<i64>> {
    let n = rows.rows();
    asked.check(n)?;
    if map.dimension() != rows.columns() || n >= MOST_ROWS || map.one.is_some() {
        return Err(Error::invalid("X must have the columns of the map and fewer than 2**31 rows"));
    }
    if asked.squares.is_some_and(|radius| !(1..=SQUARE_UNIT).contains(&radius)) {
        return Err(Error::invalid(format!("squares must be an integer from 1 to {SQUARE_UNIT}")));
    }
    let width = map.width();
    let behind = if asked.halves { 2 * width } else { 0 } + if asked.board { board::WIDTH } else { 0 };
    let size = asked.count.checked_mul(asked.block(width)).and_then(|all| all.checked_add(behind));
    let size = size.ok_or(Error::Memory)?;
    let start = || Ok(Sums { totals: zeros(size)?, values: zeros(width)?, integers: zeros(width)? });
    let parts = in_blocks(n, 4 * width, plan, start, |range, sums| {
        plan.level.run(AddBlock { rows, range, asked, map, sums })
    })?;
    add_up(parts.into_iter().map(|sums| Ok(sums.totals)))
}

struct Sums {
    totals: Vec<i64>,
    values: Vec<f64>,
    integers: Vec<i32>,
}

struct AddBlock<'a, 'b, R> {
    rows: &'a R,
    range: Range<usize>,
    asked: ArmRows<'a>,
    map: &'a BallMap,
    sums: &'b mut Sums,
}

impl<R: BallRows> Vectorised for AddBlock<'_, '_, R> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let AddBlock { rows, range, asked, map, sums } = self;
        let width = map.width();
        let block = asked.block(width);
        let (groups, behind) = sums.totals.split_at_mut(asked.count * block);
        let (halves, board) = behind.split_at_mut(if asked.halves { 2 * width } else { 0 });
        let longest = board::CUT * (map.radius as f64).powi(2);
        for i in range.filter(|i| asked.counts(*i)) {
            rows.gather(i, map, &mut sums.values)?;
            if asked.board {
                let square = sums.values.iter().fold(0.0, |sum, value| sum + value * value);
                asked.range.add(board, asked.rewards[i], square.is_nan() || square > longest);
            }
            // A row of zeros has a reward and is counted.
            map.quantise(&mut sums.values, 1.0, &mut sums.integers);
            let (q, reward) = (&sums.integers, steps(asked.range.moved(asked.rewards[i])));
            let own = &mut groups[asked.group_of[i] as usize * block..][..block];
            let (gradient, own) = own.split_at_mut(width);
            own[0] += reward;
            let (means, own) = own[1..].split_at_mut(width);
            own[0] += 1;
            for ((gradient, mean), q) in gradient.iter_mut().zip(means).zip(q) {
                *gradient += i64::from(*q) * reward;
                *mean += i64::from(*q);
            }
            if asked.halves {
                let (above, below) = halves.split_at_mut(width);
                for ((above, below), q) in above.iter_mut().zip(below).zip(q) {
                    *above += i64::from((*q).max(0));
                    *below += i64::from((-*q).max(0));
                }
            }
            if let Some(radius) = asked.squares {
                add_squares(&mut own[1..], q, radius);
            }
        }
        Ok(())
    }
}

/// Add `q^2 / SQUARE_UNIT`, cut to length `radius`; the integers are checked, as a row's are.
#[inline(always)]
fn add_squares(totals: &mut [i64], q: &[i32], radius: i64) {
    let whole = |q: &i32| (i64::from(*q) * i64::from(*q)) / SQUARE_UNIT;
    let length: i64 = q.iter().map(|q| whole(q) * whole(q)).sum();
    if length <= radius * radius {
        totals.iter_mut().zip(q).for_each(|(total, q)| *total += whole(q));
        return;
    }
    let factor = radius as f64 / (length as f64).sqrt();
    let cut = |q: &i32| i64::from(rounded_to_zero(whole(q) as f64 * factor));
    if q.iter().map(|q| cut(q) * cut(q)).sum::<i64>() <= radius * radius {
        totals.iter_mut().zip(q).for_each(|(total, q)| *total += cut(q));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Dense;
    use crate::private::ball::MOST_RADIUS;
    use crate::runtime::simd::Level;

    fn sums(rows: &[f64], rewards: &[f64], group_of: &[i64], map: &BallMap) -> Vec<i64> {
        let range = board::Range::new(-0.5, 0.5).expect("valid");
        let asked = ArmRows {
            rewards,
            range,
            group_of,
            count: 2,
            present: None,
            halves: true,
            squares: Some(1 << 14),
            board: true,
        };
        let rows = Dense::new(rows, rewards.len(), 2).expect("valid");
        let plan = Plan { threads: Some(1), block_rows: None, level: Level::best() };
        arm_sums(&rows, asked, map, plan).expect("valid")
    }

    #[test]
    fn rows_are_moved_scaled_cut_and_added_to_their_arm() {
        let map = BallMap::new(&[0, 1], &[10.0, 10.0], None, 50, 2).expect("valid");
        let map = map.with_centers(&[1.0, 0.0]).expect("valid");
        // (3, 4) is at the radius, (30, 40) beyond it, and both come from columns moved by 1.
        let found = sums(&[4.0, 4.0, 31.0, -40.0], &[0.5, -0.25], &[0, 1], &map);
        let (p, half) = (board::STEPS, board::STEPS / 2);
        assert_eq!(found[..8], [30 * p, 40 * p, p, 30, 40, 1, 0, 0]);
        assert_eq!(found[8..16], [-30 * half, 40 * half, -half, 30, -40, 1, 0, 0]);
        assert_eq!(found[16..20], [60, 40, 0, 40]);
        assert_eq!(found[20..], [half, 2 * p, p + p / 4, 0, half]);
    }

    #[test]
    fn squares_are_in_their_ball_whatever_the_row() {
        for (x, y) in [(3e4, 0.0), (2e4, 2e4), (-1e4, 3e3), (1e300, 1.0), (f64::NAN, 1.0)] {
            let map = BallMap::new(&[0, 1], &[1.0, 1.0], None, MOST_RADIUS, 2).expect("valid");
            let found = sums(&[x, y], &[0.5], &[1], &map);
            let own = &found[8 + 6..16];
            assert!(own.iter().all(|one| *one >= 0));
            assert!(own.iter().map(|one| one * one).sum::<i64>() <= 1 << 28, "{x} {y}");
        }
    }
}
