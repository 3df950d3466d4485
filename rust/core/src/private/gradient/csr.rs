//! Sparse rows: only stored values are touched, and sums of half a million columns stay in the cache.

use std::ops::Range;

use super::{Rewards, RowBlocks, RowMap};
use crate::matrix::scalar::{BLOCK_ROWS, Real};
use crate::matrix::{Csr, Index};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{with_room, zeros};
use crate::runtime::simd::{Level, Vectorised};

/// Values that are rounded before the first of them is added. Additions that nothing comes between wait for the
/// cache together, and a list of 32 KB stays in the second one.
const TOGETHER: usize = 1 << 13;

/// One thread's sums: integers that are not added yet, `i32` for the rows since the last flush (half the cache of `i64`), wide for all before;
/// empty until there are such, since fresh memory costs more than the few rows of a short fit.
#[derive(Debug)]
pub struct SparseSums {
    rounded: Vec<i32>,
    waiting: usize,
    narrow: Vec<i32>,
    narrow_rows: usize,
    wide: Vec<i64>,
}

impl SparseSums {
    /// Add the rounded values, whose columns are these.
    #[inline(always)]
    fn add<I: Index>(&mut self, columns: &[I]) {
        let narrow = &mut self.narrow[..];
        for (column, q) in columns.iter().zip(&self.rounded[..self.waiting]) {
            narrow[column.position()] += q;
        }
        self.waiting = 0;
    }

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
        let rounded = zeros(TOGETHER.min(Csr::stored(self)))?;
        let narrow = zeros(Csr::columns(self))?;
        Ok(SparseSums { rounded, waiting: 0, narrow, narrow_rows: 0, wide: Vec::new() })
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
        // Rounded values are those of stored ones from `start` on.
        let mut start = 0;
        for i in range {
            // A row that is not there is not looked at.
            let Some(reward) = rewards.get(i) else { continue };
            let (columns, values) = rows.canonical_row(i)?;
            if T::tripped(values.iter().fold(T::Sum::default(), |all, x| T::join(all, x.probe()))) {
                return Err(Error::invalid("X must be finite"));
            }
            let factor: T = map.factor(map.theta().dot_sparse(columns, values), reward)?;
            let (first, full) = (rows.first_of(i), sums.narrow_rows == BLOCK_ROWS);
            if start + sums.waiting != first || sums.waiting + values.len() > TOGETHER || full {
                sums.add(rows.columns_from(start));
                start = first;
            }
            if full {
                sums.flush()?;
            }
            sums.narrow_rows += 1;
            for (part, values) in values.chunks(TOGETHER).enumerate() {
                if part > 0 {
                    sums.add(rows.columns_from(start));
                    start = first + part * TOGETHER;
                }
                let rounded = sums.rounded[sums.waiting..].iter_mut().zip(values);
                if factor.is_finite() {
                    for (q, x) in rounded {
                        *q = x.quantise_finite(factor);
                    }
                } else {
                    for (q, x) in rounded {
                        *q = x.quantise(factor);
                    }
                }
                sums.waiting += values.len();
            }
        }
        sums.add(rows.columns_from(start));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Loss, clipped_sums};
    use super::*;
    use crate::matrix::Dense;
    use crate::public::theta::Theta;
    use crate::runtime::parallel::Plan;

    /// Rows longer than the list of rounded values, rows that fill it, empty ones and ones that are not there.
    #[test]
    fn rows_of_any_length_give_the_sums_of_dense_ones() {
        let d = 2 * TOGETHER + 100;
        let lengths = [3, d, 0, TOGETHER, TOGETHER - 1, 1, 7, TOGETHER + 1, 0, 50, 60];
        let (mut offsets, mut columns, mut values) = (vec![0i32], Vec::new(), Vec::new());
        let mut dense = vec![0f32; lengths.len() * d];
        for (i, length) in lengths.into_iter().enumerate() {
            for k in 0..length {
                let (column, value) = (k * d / length, ((i * 31 + k * 7) % 13) as f32 - 6.0);
                columns.push(column as i32);
                values.push(value);
                dense[i * d + column] = value;
            }
            offsets.push(columns.len() as i32);
        }
        let theta = Theta::from_pairs([(0, 0.5), (7, -1.0), (d / 2, 0.25)], d).expect("valid");
        // One factor is infinite.
        let y: Vec<f64> = (0..lengths.len()).map(|i| if i == 9 { 1e300 } else { i as f64 - 4.0 }).collect();
        let map = RowMap::new(&theta, 2.0, f64::INFINITY, Loss::Squared).expect("valid");
        let sparse = Csr::new(&offsets, &columns, &values, d).expect("valid");
        let dense = Dense::new(&dense, lengths.len(), d).expect("shape");
        for absent in [vec![], vec![0], vec![3, 4], vec![2, 6, 10], vec![1, 5, 7]] {
            let present: Vec<u8> = (0..lengths.len()).map(|i| u8::from(!absent.contains(&i))).collect();
            let rewards = || Rewards::new(&y, Some(&present)).expect("valid");
            for block_rows in [None, Some(1), Some(4)] {
                let plan = Plan { block_rows, ..Plan::default() };
                assert_eq!(
                    clipped_sums(&sparse, rewards(), &map, plan),
                    clipped_sums(&dense, rewards(), &map, plan),
                    "without {absent:?}"
                );
            }
        }
    }
}
