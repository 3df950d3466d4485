//! Blocks of rows handed to threads. Sums are integers: who adds what, and when, changes nothing.

use std::ops::Range;

use super::{Rewards, RowMap};
use crate::runtime::error::Result;
use crate::runtime::parallel::{Plan, add_up, in_blocks};
use crate::runtime::simd::Level;

/// A matrix that can add a range of its rows to integer sums.
pub trait RowBlocks: Sync {
    /// One thread's sums.
    type Sums: Send;

    /// Number of rows.
    fn rows(&self) -> usize;
    /// Number of columns.
    fn columns(&self) -> usize;
    /// Values stored in all rows.
    fn stored(&self) -> usize;
    /// Sums that are all zero.
    ///
    /// # Errors
    /// If there is no memory for them.
    fn zero_sums(&self) -> Result<Self::Sums>;
    /// Add the rows in `range`.
    fn add(
        &self,
        range: Range<usize>,
        rewards: Rewards<'_>,
        map: &RowMap<'_>,
        level: Level,
        sums: &mut Self::Sums,
    ) -> Result<()>;
    /// All sums at once, where rows are so wide that threads had better share columns.
    ///
    /// # Errors
    /// As for [`super::clipped_sums`].
    fn by_columns(&self, _rewards: Rewards<'_>, _map: &RowMap<'_>, _plan: Plan) -> Option<Result<Vec<i64>>> {
        None
    }
    /// The finished sums.
    ///
    /// # Errors
    /// If there is no memory for them.
    fn totals(&self, sums: Self::Sums) -> Result<Vec<i64>>;
}

pub(super) fn sum<R: RowBlocks>(
    rows: &R,
    rewards: Rewards<'_>,
    map: &RowMap<'_>,
    plan: Plan,
) -> Result<Vec<i64>> {
    if let Some(sums) = rows.by_columns(rewards, map, plan) {
        return sums;
    }
    let row_size = rows.stored() / rows.rows().max(1);
    let add = |range, sums: &mut R::Sums| rows.add(range, rewards, map, plan.level, sums);
    let parts = in_blocks(rows.rows(), row_size, plan, || rows.zero_sums(), add)?;
    add_up(parts.into_iter().map(|sums| rows.totals(sums)))
}
