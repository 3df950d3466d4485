//! Dense rows: eight at a time, so that each sum is loaded and stored once for eight additions.

use std::ops::Range;

use super::{Rewards, RowBlocks, RowMap};
use crate::matrix::Dense;
use crate::matrix::scalar::Real;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::zeros;
use crate::runtime::simd::{Level, Vectorised};

/// Rows added together. Eight streams are as many as hardware prefetchers follow well.
const GROUP: usize = 8;

/// One thread's sums: narrow ones for the rows since the last flush, wide ones for all before.
#[derive(Debug)]
pub struct DenseSums<T: Real> {
    narrow: Vec<T::Sum>,
    narrow_rows: usize,
    wide: Vec<i64>,
    probe: T::Sum,
}

impl<T: Real> DenseSums<T> {
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
        Ok(DenseSums {
            narrow: zeros(Dense::columns(self))?,
            narrow_rows: 0,
            wide: zeros(Dense::columns(self))?,
            probe: T::Sum::default(),
        })
    }

    fn add(
        &self,
        range: Range<usize>,
        rewards: Rewards<'_>,
        map: &RowMap<'_>,
        level: Level,
        sums: &mut DenseSums<T>,
    ) -> Result<()> {
        level.run(AddBlock { rows: *self, range, rewards, map, sums })
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
    sums: &'b mut DenseSums<T>,
}

impl<T: Real> Vectorised for AddBlock<'_, '_, T> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let AddBlock { rows, range, rewards, map, sums } = self;
        let mut group = [(0, T::ZERO); GROUP];
        let mut filled = 0;
        for i in range {
            let Some(reward) = rewards.get(i) else { continue };
            let row = rows.row(i);
            let factor: T = map.factor(map.theta().dot_dense(row), reward)?;
            if !factor.is_finite() {
                add_extreme_row(row, factor, sums);
                continue;
            }
            group[filled] = (i, factor);
            filled += 1;
            if filled == GROUP {
                add_group(rows, &group, sums);
                filled = 0;
            }
        }
        if filled > 0 {
            // The rest of the group repeats a row with factor 0: it adds nothing.
            let filler = (group[0].0, T::ZERO);
            group[filled..].fill(filler);
            add_group(rows, &group, sums);
        }
        if T::tripped(sums.probe) {
            return Err(Error::invalid("X must be finite"));
        }
        Ok(())
    }
}

#[inline(always)]
fn add_group<T: Real>(rows: Dense<'_, T>, group: &[(usize, T); GROUP], sums: &mut DenseSums<T>) {
    if sums.narrow_rows + GROUP > T::MOST_ROWS {
        sums.flush();
    }
    sums.narrow_rows += GROUP;
    let columns = sums.narrow.len();
    let row: [&[T]; GROUP] = group.map(|(i, _)| &rows.row(i)[..columns]);
    let factor: [T; GROUP] = group.map(|(_, factor)| factor);
    let mut probe = sums.probe;
    for (j, narrow) in sums.narrow.iter_mut().enumerate() {
        let mut sum = *narrow;
        for g in 0..GROUP {
            let x = row[g][j];
            sum = x.add_biased(factor[g], sum);
            probe = T::join(probe, x.probe());
        }
        *narrow = sum;
    }
    sums.probe = probe;
}

/// A row whose factor is infinite or NaN: products may be NaN, which the fast rounding does not allow for.
#[inline(never)]
fn add_extreme_row<T: Real>(row: &[T], factor: T, sums: &mut DenseSums<T>) {
    for (wide, x) in sums.wide.iter_mut().zip(row) {
        *wide += i64::from(x.quantise(factor));
        sums.probe = T::join(sums.probe, x.probe());
    }
}
