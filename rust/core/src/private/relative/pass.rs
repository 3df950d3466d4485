//! One pass over the rows of an episode: public columns are read, rewards are compared with what they say, and the
//! gradients of all columns are added up while the row is still in the cache.

use std::sync::{Mutex, PoisonError};

use super::shifted::{Moved, ShiftedRows, checked_clip, inverse_units, total};
use super::support::{Chosen, ColumnRows};
use super::{checked_flags, checked_units};
use crate::matrix::sigmoid::sigmoid;
use crate::private::gradient::Loss;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::with_room;
use crate::runtime::parallel::{Plan, for_each, threads_for};
use crate::runtime::simd::Vectorised;

/// Rows whose public columns are read before their gradients are added: they stay in the cache meanwhile.
const NEAR_ROWS: usize = 32;

/// Public columns of rows with at least this many values in all are asked for before their turn: reads that jump from
/// row to row are not foreseen by the processor. Fewer values are in a cache.
const FAR_VALUES: usize = 1 << 21;

/// Values of a block of rows that is handed to a thread.
const BLOCK_VALUES: usize = 1 << 18;

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
    /// A reward less what is foreseen, finite.
    #[inline(always)]
    fn residual(&self, foreseen: f64, reward: f64) -> f64 {
        let reward = self.range.map_or(reward, |(low, high)| reward.max(low).min(high));
        let left = match self.loss {
            Loss::Squared => reward - foreseen,
            Loss::Logistic => reward - sigmoid(foreseen),
        };
        if left.is_nan() { 0.0 } else { left.clamp(-LARGEST, LARGEST) }
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
        threads_for(plan.threads, n.saturating_mul(row_size), BLOCK_VALUES).min(n.div_ceil(block).max(1));
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
        let mut shifts = [0.0; NEAR_ROWS];
        let near = kept.support.chunks_mut(NEAR_ROWS * width).zip(kept.residuals.chunks_mut(NEAR_ROWS));
        for (part, (support, residuals)) in near.enumerate() {
            let start = first + part * NEAR_ROWS;
            for (offset, (row, residual)) in
                support.chunks_exact_mut(width).zip(residuals.iter_mut()).enumerate()
            {
                let i = start + offset;
                if far {
                    ColumnRows::prefetch(rows, i + NEAR_ROWS, chosen);
                }
                let row = &mut row[..filled];
                row.fill(0.0);
                (*residual, shifts[offset]) = (0.0, 0.0);
                if present.is_some_and(|flags| flags[i] == 0) {
                    continue;
                }
                row[0] = public.one;
                rows.read(i, chosen, |place, value| row[1 + place] = value)?;
                if let Some(units) = public.units {
                    row[1..].iter_mut().zip(public.columns).for_each(|(value, j)| *value /= units[*j]);
                }
                *residual = public.residual(weighted(row, public.weights), rewards[i]);
                shifts[offset] = public.shift.map_or(0.0, |shift| weighted(row, shift));
            }
            let shifts = public.shift.map(|_| &shifts[..residuals.len()]);
            let moved =
                Moved { residuals, shifts, units: public.units, clip: public.clip, present, first: start };
            rows.add(start..start + moved.residuals.len(), moved, inverse, sums)?;
        }
        Ok(())
    }
}

/// Values times weights, added up in their order.
#[inline(always)]
fn weighted(values: &[f64], weights: &[f64]) -> f64 {
    values.iter().zip(weights).fold(0.0, |sum, (value, weight)| sum + value * weight)
}
