//! Dense rows: eight at a time, so that each sum is loaded and stored once for eight additions.

use std::ops::Range;

use super::{Rewards, RowBlocks, RowMap};
use crate::matrix::Dense;
use crate::matrix::scalar::Real;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{with_room, zeros};
use crate::runtime::parallel::{Plan, SERIAL_BELOW, for_each, threads_for};
use crate::runtime::simd::rows::GROUP;
use crate::runtime::simd::{Level, Vectorised};

/// Columns of a tile of wide rows: its sums stay in the second cache, and each row's part is long enough for
/// hardware prefetchers.
const TILE: usize = 1 << 13;

/// A group of up to so many values is asked for while the one before it is added.
const NEAR: usize = 1 << 13;

/// From so many columns on, threads share columns, not rows.
const WIDE: usize = 4 * TILE;

/// One thread's sums: narrow ones for the rows since the last flush, wide ones for all before.
#[derive(Debug)]
pub struct DenseSums<T: Real> {
    narrow: Vec<T::Sum>,
    narrow_rows: usize,
    wide: Vec<i64>,
    /// Whether all values so far were finite.
    finite: bool,
}

impl<T: Real> DenseSums<T> {
    fn new(columns: usize) -> Result<Self> {
        Ok(DenseSums { narrow: zeros(columns)?, narrow_rows: 0, wide: zeros(columns)?, finite: true })
    }

    fn flush(&mut self) {
        for (wide, narrow) in self.wide.iter_mut().zip(&mut self.narrow) {
            *wide += T::unbiased(*narrow, self.narrow_rows);
            *narrow = T::Sum::default();
        }
        self.narrow_rows = 0;
    }
}

impl<T: Real> RowBlocks for Dense<'_, T> {
    type Sums = DenseSums<T>;

    fn rows(&self) -> usize {
        Dense::rows(self)
    }

    fn columns(&self) -> usize {
        Dense::columns(self)
    }

    fn stored(&self) -> usize {
        Dense::rows(self) * Dense::columns(self)
    }

    fn zero_sums(&self) -> Result<DenseSums<T>> {
        DenseSums::new(Dense::columns(self))
    }

    fn add(
        &self,
        range: Range<usize>,
        rewards: Rewards<'_>,
        map: &RowMap<'_>,
        level: Level,
        sums: &mut DenseSums<T>,
    ) -> Result<()> {
        level.run(AddBlock { rows: *self, range, rewards, map, level, sums })
    }

    fn by_columns(&self, rewards: Rewards<'_>, map: &RowMap<'_>, plan: Plan) -> Option<Result<Vec<i64>>> {
        let wide = Dense::columns(self) >= WIDE && plan.block_rows.is_none();
        wide.then(|| tile_sums(*self, rewards, map, plan))
    }

    fn totals(&self, mut sums: DenseSums<T>) -> Result<Vec<i64>> {
        sums.flush();
        Ok(sums.wide)
    }
}

struct AddBlock<'a, 'b, T: Real> {
    rows: Dense<'a, T>,
    range: Range<usize>,
    rewards: Rewards<'a>,
    map: &'a RowMap<'a>,
    level: Level,
    sums: &'b mut DenseSums<T>,
}

impl<T: Real> Vectorised for AddBlock<'_, '_, T> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let AddBlock { rows, range, rewards, map, level, sums } = self;
        let present = range.filter_map(|i| {
            let reward = rewards.get(i)?;
            Some(map.factor(map.theta().dot_dense(rows.row(i)), reward).map(|factor| (i, factor)))
        });
        sums.add(present, |i| rows.row(i), level)
    }
}

impl<T: Real> DenseSums<T> {
    /// Add rows, given by their numbers and factors; `row` has those of their values that are summed.
    #[inline(always)]
    fn add<'a>(
        &mut self,
        present: impl Iterator<Item = Result<(usize, T)>>,
        row: impl Fn(usize) -> &'a [T],
        level: Level,
    ) -> Result<()> {
        let mut group = [(0, T::ZERO); GROUP];
        let mut filled = 0;
        for counted in present {
            let (i, factor) = counted?;
            if !factor.is_finite() {
                self.add_extreme_row(row(i), factor);
                continue;
            }
            group[filled] = (i, factor);
            filled += 1;
            if filled == GROUP {
                self.add_group(&group, &row, level);
                filled = 0;
            }
        }
        if filled > 0 {
            // The rest of the group repeats a row with factor 0: it adds nothing.
            let filler = (group[0].0, T::ZERO);
            group[filled..].fill(filler);
            self.add_group(&group, &row, level);
        }
        if self.finite { Ok(()) } else { Err(Error::invalid("X must be finite")) }
    }

    #[inline(always)]
    fn add_group<'a>(&mut self, group: &[(usize, T); GROUP], row: impl Fn(usize) -> &'a [T], level: Level) {
        if self.narrow_rows + GROUP > T::MOST_ROWS {
            self.flush();
        }
        self.narrow_rows += GROUP;
        let rows = group.map(|(i, _)| row(i));
        // The next group lies behind this one. Long rows are left to the hardware.
        let next = GROUP * self.narrow.len();
        let ahead = if next <= NEAR { next } else { 0 };
        self.finite &= level.add_rows(rows, &group.map(|(_, factor)| factor), ahead, &mut self.narrow);
    }

    /// A row whose factor is infinite or NaN: products may be NaN, which the fast rounding does not allow for.
    #[inline(never)]
    fn add_extreme_row(&mut self, row: &[T], factor: T) {
        for (wide, x) in self.wide.iter_mut().zip(row) {
            *wide += i64::from(x.quantise(factor));
            self.finite &= x.is_finite();
        }
    }
}

/// Sums of rows with very many columns, tile of columns after tile: sums stay near, and threads need none of their own.
fn tile_sums<T: Real>(
    rows: Dense<'_, T>,
    rewards: Rewards<'_>,
    map: &RowMap<'_>,
    plan: Plan,
) -> Result<Vec<i64>> {
    let mut present: Vec<(usize, T)> = with_room(rows.rows())?;
    for i in 0..rows.rows() {
        if let Some(reward) = rewards.get(i) {
            present.push((i, map.factor(map.theta().dot_dense(rows.row(i)), reward)?));
        }
    }
    let mut totals: Vec<i64> = zeros(rows.columns())?;
    let threads = threads_for(plan.threads, rows.rows().saturating_mul(rows.columns()), SERIAL_BELOW);
    let level = plan.level;
    for_each(threads, totals.chunks_mut(TILE).enumerate(), |(tile, totals)| {
        level.run(AddTile { rows, present: &present, first: tile * TILE, level, totals })
    })?;
    Ok(totals)
}

struct AddTile<'a, 'b, T> {
    rows: Dense<'a, T>,
    /// Rows that count, with their factors.
    present: &'a [(usize, T)],
    /// First column.
    first: usize,
    level: Level,
    totals: &'b mut [i64],
}

impl<T: Real> Vectorised for AddTile<'_, '_, T> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let AddTile { rows, present, first, level, totals } = self;
        let columns = first..first + totals.len();
        let mut sums = DenseSums::new(columns.len())?;
        sums.add(present.iter().copied().map(Ok), |i| &rows.row(i)[columns.clone()], level)?;
        sums.flush();
        totals.copy_from_slice(&sums.wide);
        Ok(())
    }
}
