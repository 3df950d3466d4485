//! What an episode of a dense fit asks of rows: one vector of the public columns, part after part.
//!
//! | part | integers |
//! |---|---|
//! | arms | for each group `q r`, `r`, `q` and 1: [`arm_sums`] |
//! | columns | what of `q` is above zero, and what is below |
//! | moments | `q q'` on and above the diagonal, row after row |
//! | squares | for each group `q * q`, cut to a ball |
//! | board | what was earned: [`board`] |
//!
//! Where few of many columns are public, more are picked first, by what their values say of what is not explained yet:
//! [`column_scores`]. The vector is then of those that were public and of those that were picked.

use std::borrow::Cow;

use crate::private::ball::{ArmRows, BallMap, BallRows, arm_sums, second_moments};
use crate::private::board;
use crate::private::candidates::{CandidateRows, Explained, column_scores};
use crate::private::episode::Sums;
use crate::private::gradient::Plan;
use crate::private::peel::ColumnPick;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::with_room;

/// A part of the vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // See the table of the module.
pub enum Part {
    Arms,
    Columns,
    Moments,
    Squares,
    Board,
}

/// What an episode asks of its rows, fixed before they are read. Public.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// How a row becomes integers.
    pub map: Map<'a>,
    /// What picks are made by, where columns are picked.
    pub explained: Option<Explained<'a>>,
    /// Number of groups.
    pub groups: usize,
    /// Where rewards are expected.
    pub range: board::Range,
    /// Parts in the order they are released.
    pub parts: &'a [Part],
    /// Radius of the ball of squares.
    pub square_radius: i64,
}

/// How a row becomes integers of the public columns, with room for those that are picked. Public.
#[derive(Debug, Clone, Copy)]
pub struct Map<'a> {
    /// Columns that are public already; those that are picked come behind them.
    pub columns: &'a [usize],
    /// What is taken off each column, and what it is then multiplied with.
    pub centers: &'a [f64],
    /// See `centers`.
    pub scales: &'a [f64],
    /// Radius of the ball.
    pub radius: i64,
}

impl Map<'_> {
    /// The map of the public columns and of those that were picked.
    ///
    /// # Errors
    /// If there is no center, or no scale, for one of them, or one breaks a rule of [`BallMap`].
    fn with(&self, picked: &[ColumnPick], dimension: usize) -> Result<BallMap> {
        let count = self.columns.len() + picked.len();
        let numbers = (self.scales.get(..count), self.centers.get(..count));
        let (Some(scales), Some(centers)) = numbers else {
            return Err(Error::invalid("centers and scales must have one number for each column"));
        };
        let mut columns = with_room(count)?;
        columns.extend_from_slice(self.columns);
        columns.extend(picked.iter().map(|pick| pick.column));
        BallMap::new(&columns, scales, None, self.radius, dimension)?.with_centers(centers)
    }
}

/// The private integers of rows of this process; they end with this value.
pub struct RowSums<'a, R> {
    /// Rows.
    pub rows: &'a R,
    /// Rewards, one a row.
    pub rewards: &'a [f64],
    /// Group of each row.
    pub groups: &'a [i64],
    /// A row with flag 0 leaves nothing anywhere, and is not read.
    pub present: Option<&'a [u8]>,
    /// What is asked of them.
    pub asked: &'a Asked<'a>,
    /// How the work is shared out.
    pub plan: Plan,
}

impl<R: CandidateRows> Sums for RowSums<'_, R> {
    type Error = Error;

    fn candidates(&mut self) -> Result<Cow<'_, [i64]>> {
        let Asked { map, explained, groups, range, .. } = *self.asked;
        let explained = explained.ok_or_else(|| Error::invalid("no columns are picked in this episode"))?;
        let dimension = BallRows::columns(self.rows);
        let map = if map.columns.is_empty() { None } else { Some(map.with(&[], dimension)?) };
        let asked = ArmRows {
            rewards: self.rewards,
            range,
            group_of: self.groups,
            count: groups,
            present: self.present,
            halves: false,
            squares: None,
            board: false,
        };
        column_scores(self.rows, asked, map.as_ref(), explained, self.plan).map(Cow::Owned)
    }

    fn vector(&mut self, picked: &[ColumnPick]) -> Result<Vec<i64>> {
        let Asked { map, groups, range, parts, square_radius, .. } = *self.asked;
        let map = &map.with(picked, BallRows::columns(self.rows))?;
        let asks = |part| parts.contains(&part);
        let squares = asks(Part::Squares);
        let asked = ArmRows {
            rewards: self.rewards,
            range,
            group_of: self.groups,
            count: groups,
            present: self.present,
            halves: asks(Part::Columns),
            squares: squares.then_some(square_radius),
            board: asks(Part::Board),
        };
        let found = arm_sums(self.rows, asked, map, self.plan)?;
        let width = map.width();
        let (own, block) = (2 * (width + 1), 2 * (width + 1) + if squares { width } else { 0 });
        let (arms, behind) = found.split_at(groups * block);
        let (halves, board) = behind.split_at(if asked.halves { 2 * width } else { 0 });
        let moments = if asks(Part::Moments) {
            second_moments(self.rows, map, self.present, self.plan)?
        } else {
            Vec::new()
        };
        let mut vector = with_room(arms.len() + behind.len() + moments.len())?;
        for part in parts {
            match part {
                Part::Arms => arms.chunks_exact(block).for_each(|arm| vector.extend_from_slice(&arm[..own])),
                Part::Squares => {
                    arms.chunks_exact(block).for_each(|arm| vector.extend_from_slice(&arm[own..]));
                }
                Part::Columns => vector.extend_from_slice(halves),
                Part::Board => vector.extend_from_slice(board),
                Part::Moments => {
                    let upper = |(i, row): (usize, &[i64])| vector.extend_from_slice(&row[i..]);
                    moments.chunks_exact(width).enumerate().for_each(upper);
                }
            }
        }
        Ok(vector)
    }
}
