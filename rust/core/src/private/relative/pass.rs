//! One pass over the rows of an episode: public columns are read, rewards are compared with what they say, and the
//! gradients of all columns are added up while the row is still in the cache.

use std::sync::{Mutex, PoisonError};

use super::shifted::{Moved, ShiftedRows, checked_clip, inverse_units, total};
use super::support::{Chosen, ColumnRows};
use super::{checked_flags, checked_units};
use crate::matrix::sigmoid::sigmoid;
use crate::private::gradient::Loss;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{with_room, zeros};
use crate::runtime::parallel::{Plan, for_each, threads_for};
use crate::runtime::simd::Vectorised;

/// Rows whose public columns are read before their gradients are added: they stay in the cache meanwhile.
const NEAR_ROWS: usize = 32;

/// Public columns of rows with at least this many values in all are asked for before their turn: reads that jump from
/// row to row are not foreseen by the processor. Fewer values are in a cache.
const FAR_VALUES: usize = 1 << 21;

/// Values of a block of rows that is handed to a thread.
const BLOCK_VALUES: usize = 1 << 18;

/// Below this many values one thread is faster: they take about 55 us, and a second one that is started after 30 us
/// would save less than that.
const SERIAL_BELOW: usize = 1 << 19;

/// Largest residual: it survives being multiplied with 0.
const LARGEST: f64 = 1e300;

/// What is public about a row's reward.
#[derive(Debug, Clone, Copy)]
pub struct Public<'a> {
    /// Value of the constant column before the public ones.
    pub one: f64,
    /// Public columns.
    pub columns: &'a [usize],
    /// Weights of the constant and the public columns in what a row's reward should be.
    pub weights: &'a [f64],
    /// Weights of the same in what is taken off all coordinates of a row.
    pub shift: Option<&'a [f64]>,
    /// Public sizes of all columns.
    pub units: Option<&'a [f64]>,
    /// How the weighted sum becomes a reward.
    pub loss: Loss,
    /// Rewards outside are moved to its ends.
    pub range: Option<(f64, f64)>,
    /// Bound on one row's number.
    pub clip: f64,
}

/// What is kept of each row for the steps that follow. Private.
#[derive(Debug)]
pub struct Kept<'a> {
    /// `width` values a row: the constant, the public columns, and room that is left as it is.
    pub support: &'a mut [f64],
    /// See `support`.
    pub width: usize,
    /// What the public columns leave of each reward; 0 where none came.
    pub residuals: &'a mut [f64],
}

impl Public<'_> {
    /// Turn rewards into what is left of them, finite, where weighted sums of columns are `foreseen`.
    #[inline(always)]
    fn less_foreseen(&self, foreseen: &[f64; NEAR_ROWS], rewards: &mut [f64; NEAR_ROWS]) {
        if let Some((low, high)) = self.range {
            rewards.iter_mut().for_each(|reward| *reward = reward.max(low).min(high));
        }
        match self.loss {
            Loss::Squared => rewards.iter_mut().zip(foreseen).for_each(|(reward, at)| *reward -= at),
            Loss::Logistic => {
                rewards.iter_mut().zip(foreseen).for_each(|(reward, at)| *reward -= sigmoid(*at));
            }
        }
        for left in rewards {
            *left = if left.is_nan() { 0.0 } else { left.clamp(-LARGEST, LARGEST) };
        }
    }
}

/// Integer sums of [`shifted`](super::shifted), with residuals and shifts from the rows' public columns.
///
/// # Errors
/// If lengths do not fit, a value is not finite or a sparse row is not canonical.
pub fn relative_sums<R: ColumnRows + ShiftedRows>(
    rows: &R,
    rewards: &[f64],
    present: Option<&[u8]>,
    public: Public<'_>,
    kept: Kept<'_>,
    plan: Plan,
) -> Result<Vec<i64>> {
    let (n, d, filled) = (ShiftedRows::rows(rows), ShiftedRows::columns(rows), 1 + public.columns.len());
    let chosen = Chosen::new(public.columns, d)?;
    checked_flags(present, n)?;
    checked_units(public.units, d)?;
    checked_clip(public.clip)?;
    if rewards.len() != n || kept.residuals.len() != n {
        return Err(Error::invalid("y must have one reward for each row of X"));
    }
    if kept.width < filled || n.checked_mul(kept.width) != Some(kept.support.len()) {
        return Err(Error::invalid("out must have one row for each row of X and room for the columns"));
    }
    if public.weights.len() != filled || public.shift.is_some_and(|shift| shift.len() != filled) {
        return Err(Error::invalid("weights must have one number for the constant and each column"));
    }
    let inverse = inverse_units::<R::Value>(public.units)?;
    let row_size = (rows.stored() / n.max(1)).max(1);
    let block = plan.block_rows.unwrap_or(BLOCK_VALUES / row_size).max(1);
    let threads =
        threads_for(plan.threads, n.saturating_mul(row_size), SERIAL_BELOW).min(n.div_ceil(block).max(1));
    let width = kept.width;
    let jobs =
        kept.support.chunks_mut((block * width).max(1)).zip(kept.residuals.chunks_mut(block)).enumerate();
    // Each thread takes sums from here and puts them back: there are never more than threads.
    let all = Mutex::new(with_room(threads)?);
    let taken = || all.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let inverse = inverse.as_deref();
    for_each(threads, jobs, |(number, (support, residuals))| {
        let mut sums = match taken() {
            Some(sums) => sums,
            None => rows.zero_sums()?,
        };
        let kept = Kept { support, width, residuals };
        let first = number * block;
        let work = AddBlock {
            rows,
            rewards,
            present,
            public,
            chosen: &chosen,
            inverse,
            kept,
            first,
            sums: &mut sums,
        };
        plan.level.run(work)?;
        all.lock().unwrap_or_else(PoisonError::into_inner).push(sums);
        Ok(())
    })?;
    total(rows, all.into_inner().unwrap_or_else(PoisonError::into_inner))
}

struct AddBlock<'a, 'b, R: ShiftedRows> {
    rows: &'a R,
    rewards: &'a [f64],
    present: Option<&'a [u8]>,
    public: Public<'a>,
    chosen: &'a Chosen,
    inverse: Option<&'a [R::Value]>,
    kept: Kept<'b>,
    first: usize,
    sums: &'b mut R::Sums,
}

impl<R: ColumnRows + ShiftedRows> Vectorised for AddBlock<'_, '_, R> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let AddBlock { rows, rewards, present, public, chosen, inverse, kept, first, sums } = self;
        let (width, filled) = (kept.width, 1 + public.columns.len());
        let far = rows.stored() >= FAR_VALUES;
        let mut tile = zeros(filled * NEAR_ROWS)?;
        let tile = tile.as_chunks_mut::<NEAR_ROWS>().0;
        let near = kept.support.chunks_mut(NEAR_ROWS * width).zip(kept.residuals.chunks_mut(NEAR_ROWS));
        for (part, (support, residuals)) in near.enumerate() {
            let start = first + part * NEAR_ROWS;
            let count = residuals.len();
            let counts = |i: usize| present.is_none_or(|flags| flags[i] != 0);
            if far {
                (start..start + count).for_each(|i| ColumnRows::prefetch(rows, i + NEAR_ROWS, chosen));
            }
            tile.iter_mut().for_each(|column| *column = [0.0; NEAR_ROWS]);
            let all = (start..start + count).all(counts);
            if all {
                tile[0][..count].fill(public.one);
                rows.read_all(start..start + count, chosen, &mut tile[1..])?;
            } else {
                for r in (0..count).filter(|r| counts(start + r)) {
                    tile[0][r] = public.one;
                    rows.read(start + r, chosen, |place, value| tile[1 + place][r] = value)?;
                }
            }
            if let Some(units) = public.units {
                for (column, j) in tile[1..].iter_mut().zip(public.columns) {
                    column.iter_mut().for_each(|value| *value /= units[*j]);
                }
            }
            let mut left = [0.0; NEAR_ROWS];
            left[..count].copy_from_slice(&rewards[start..start + count]);
            public.less_foreseen(&weighted(tile, public.weights), &mut left);
            if !all {
                (0..count).filter(|r| !counts(start + r)).for_each(|r| left[r] = 0.0);
            }
            residuals.copy_from_slice(&left[..count]);
            for (r, row) in support.chunks_exact_mut(width).enumerate() {
                for (to, column) in row.iter_mut().zip(tile.iter()) {
                    *to = column[r];
                }
            }
            let shifts = public.shift.map(|shift| weighted(tile, shift));
            let shifts = shifts.as_ref().map(|shifts| &shifts[..count]);
            let moved =
                Moved { residuals, shifts, units: public.units, clip: public.clip, present, first: start };
            rows.add(start..start + count, moved, inverse, sums)?;
        }
        Ok(())
    }
}

/// Columns of some rows, each number times the weight of its column, added up in the order of the columns.
#[inline(always)]
fn weighted(columns: &[[f64; NEAR_ROWS]], weights: &[f64]) -> [f64; NEAR_ROWS] {
    let mut sums = [0.0; NEAR_ROWS];
    for (column, weight) in columns.iter().zip(weights) {
        for r in 0..NEAR_ROWS {
            sums[r] += column[r] * weight;
        }
    }
    sums
}
