//! Sparse rows: only stored values are touched, and sums of half a million columns stay in the cache.

use std::ops::Range;

use super::{Rewards, RowBlocks, RowMap};
use crate::matrix::scalar::{BLOCK_ROWS, Real};
use crate::matrix::{Csr, Index};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{with_room, zeros};
use crate::runtime::simd::{Level, Vectorised};

/// Rows whose factors are computed before the first of them is added.
const TOGETHER: usize = 16;

/// One thread's sums: `i32` for the rows since the last flush (half the cache of `i64`), wide for all before;
/// empty until there are such, since fresh memory costs more than the few rows of a short fit.
#[derive(Debug)]
pub struct SparseSums {
    narrow: Vec<i32>,
    narrow_rows: usize,
    wide: Vec<i64>,
}

impl SparseSums {
    fn flush(&mut self) -> Result<()> {
        if self.wide.is_empty() {
            self.wide = zeros(self.narrow.len())?;
        }
        for (wide, narrow) in self.wide.iter_mut().zip(&mut self.narrow) {
            *wide += i64::from(*narrow);
            *narrow = 0;
        }
        self.narrow_rows = 0;
        Ok(())
    }
}

impl<T: Real, I: Index> RowBlocks for Csr<'_, T, I> {
    type Sums = SparseSums;

    fn rows(&self) -> usize {
        Csr::rows(self)
    }

    fn columns(&self) -> usize {
        Csr::columns(self)
    }

    fn stored(&self) -> usize {
        Csr::stored(self)
    }

    fn zero_sums(&self) -> Result<SparseSums> {
        Ok(SparseSums { narrow: zeros(Csr::columns(self))?, narrow_rows: 0, wide: Vec::new() })
    }

    fn add(
        &self,
        range: Range<usize>,
        rewards: Rewards<'_>,
        map: &RowMap<'_>,
        level: Level,
        sums: &mut SparseSums,
    ) -> Result<()> {
        level.run(AddBlock { rows: *self, range, rewards, map, sums })
    }

    fn totals(&self, mut sums: SparseSums) -> Result<Vec<i64>> {
        if sums.wide.is_empty() {
            let mut totals = with_room(sums.narrow.len())?;
            totals.extend(sums.narrow.into_iter().map(i64::from));
            return Ok(totals);
        }
        for (wide, narrow) in sums.wide.iter_mut().zip(sums.narrow) {
            *wide += i64::from(narrow);
        }
        Ok(sums.wide)
    }
}

struct AddBlock<'a, 'b, T, I> {
    rows: Csr<'a, T, I>,
    range: Range<usize>,
    rewards: Rewards<'a>,
    map: &'a RowMap<'a>,
    sums: &'b mut SparseSums,
}

impl<T: Real, I: Index> Vectorised for AddBlock<'_, '_, T, I> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let AddBlock { rows, range, rewards, map, sums } = self;
        let mut factors = [T::ZERO; TOGETHER];
        for first in range.clone().step_by(TOGETHER) {
            let group = first..(first + TOGETHER).min(range.end);
            // All factors first: additions that nothing comes between wait for the cache together.
            for (i, factor) in group.clone().zip(&mut factors) {
                // A row that is not there has no factor that its values are multiplied with.
                let Some(reward) = rewards.get(i) else { continue };
                let (columns, values) = rows.canonical_row(i)?;
                if T::tripped(values.iter().fold(T::Sum::default(), |all, x| T::join(all, x.probe()))) {
                    return Err(Error::invalid("X must be finite"));
                }
                *factor = map.factor(map.theta().dot_sparse(columns, values), reward)?;
            }
            if sums.narrow_rows + group.len() > BLOCK_ROWS {
                sums.flush()?;
            }
            sums.narrow_rows += group.len();
            for (i, factor) in group.zip(factors) {
                if rewards.get(i).is_none() {
                    continue;
                }
                let (columns, values) = rows.row(i);
                if !factor.is_finite() {
                    for (column, x) in columns.iter().zip(values) {
                        sums.narrow[column.position()] += x.quantise(factor);
                    }
                    continue;
                }
                for (column, x) in columns.iter().zip(values) {
                    sums.narrow[column.position()] += x.quantise_finite(factor);
                }
            }
        }
        Ok(())
    }
}
