//! Gradients of all columns relative to what public columns say of a typical one, as exact integer sums.
//!
//! Row `i` has the numbers `(x_ij / unit_j - shift_i) * residual_i`, where `shift_i` is a sum of its public columns
//! with public weights. They are clipped to `[-clip, clip]`, expressed in steps of `clip / 2^15` and rounded:
//! replacing one row moves no sum by more than `2^16`.

use std::ops::Range;

use super::{checked_flags, checked_units};
use crate::matrix::scalar::{BLOCK_ROWS, LIMIT, Real};
use crate::matrix::{Csr, Dense, Index};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{with_room, zeros};
use crate::runtime::parallel::{Plan, add_up, in_blocks};
use crate::runtime::simd::Vectorised;

/// Largest shift: the largest f32 less any shift is still finite.
const LARGEST_SHIFT: f64 = 1e30;

/// Dense rows added together, so that each sum is loaded and stored once for all of them.
const GROUP: usize = 8;
/// What each row is multiplied with, and what is taken off it.
#[derive(Debug, Clone, Copy)]
pub struct Moved<'a> {
    /// Residuals. Private.
    pub residuals: &'a [f64],
    /// Taken off all coordinates of a row; NaN counts as 0. Private.
    pub shifts: Option<&'a [f64]>,
    /// Public sizes of columns.
    pub units: Option<&'a [f64]>,
    /// Bound on one row's number.
    pub clip: f64,
    /// A row with flag 0 is a row of zeros, and is not read.
    pub present: Option<&'a [u8]>,
    /// The row that the first residual and shift belong to; flags are those of all rows.
    pub first: usize,
}

impl Moved<'_> {
    /// Whether row `i` counts.
    #[inline(always)]
    fn counts(&self, i: usize) -> bool {
        self.present.is_none_or(|flags| flags[i] != 0)
    }

    /// Factor and shift of row `i`. The factor may be infinite or NaN, the shift is finite.
    #[inline(always)]
    fn of<T: Real>(&self, i: usize) -> (T, T) {
        let factor = T::from_f64(self.residuals[i - self.first] * LIMIT as f64 / self.clip);
        let shift = self.shifts.map_or(0.0, |shifts| shifts[i - self.first]);
        let shift = if shift.is_nan() { 0.0 } else { shift.clamp(-LARGEST_SHIFT, LARGEST_SHIFT) };
        (factor, T::from_f64(shift))
    }
}

/// Rows whose shifted gradients can be added up.
pub trait ShiftedRows: Sync {
    /// What the units are multiplied as.
    type Value: Real;
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
    /// Add the rows in `range`; `inverse` has one over each unit. To be called from code that is compiled for wide
    /// registers.
    ///
    /// # Errors
    /// If a value is not finite or a sparse row is not canonical.
    fn add(
        &self,
        range: Range<usize>,
        moved: Moved<'_>,
        inverse: Option<&[Self::Value]>,
        sums: &mut Self::Sums,
    ) -> Result<()>;
    /// The finished sums.
    ///
    /// # Errors
    /// If there is no memory for them.
    fn totals(&self, sums: Self::Sums) -> Result<Vec<i64>>;
}

/// Sum of every row's integers, one sum a column.
///
/// # Errors
/// If a value is not finite, a sparse row is not canonical, or lengths do not fit.
pub fn shifted_sums<R: ShiftedRows>(rows: &R, moved: Moved<'_>, plan: Plan) -> Result<Vec<i64>> {
    let (n, d) = (rows.rows(), rows.columns());
    if moved.first != 0 || moved.residuals.len() != n || moved.shifts.is_some_and(|shifts| shifts.len() != n)
    {
        return Err(Error::invalid("residuals and shifts must have one value for each row of X"));
    }
    checked_flags(moved.present, n)?;
    checked_units(moved.units, d)?;
    checked_clip(moved.clip)?;
    if n >= 1 << 46 {
        return Err(Error::invalid("X must have fewer than 2^46 rows"));
    }
    let inverse = inverse_units::<R::Value>(moved.units)?;
    let inverse = inverse.as_deref();
    let add = |range, sums: &mut R::Sums| plan.level.run(AddBlock { rows, range, moved, inverse, sums });
    let parts = in_blocks(n, rows.stored() / n.max(1), plan, || rows.zero_sums(), add)?;
    total(rows, parts)
}

struct AddBlock<'a, 'b, R: ShiftedRows> {
    rows: &'a R,
    range: Range<usize>,
    moved: Moved<'a>,
    inverse: Option<&'a [R::Value]>,
    sums: &'b mut R::Sums,
}

impl<R: ShiftedRows> Vectorised for AddBlock<'_, '_, R> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        self.rows.add(self.range, self.moved, self.inverse, self.sums)
    }
}

/// The sum of all threads' sums, one a column.
pub(super) fn total<R: ShiftedRows>(rows: &R, parts: Vec<R::Sums>) -> Result<Vec<i64>> {
    if parts.is_empty() {
        return zeros(rows.columns());
    }
    add_up(parts.into_iter().map(|sums| rows.totals(sums)))
}

/// Check that a clip is finite and above zero.
pub(super) fn checked_clip(clip: f64) -> Result<()> {
    if clip.is_finite() && clip > 0.0 {
        return Ok(());
    }
    Err(Error::invalid(format!("clip must be a finite number above 0, got {clip}")))
}

/// One over each unit, in the rows' own precision.
pub(super) fn inverse_units<T: Real>(units: Option<&[f64]>) -> Result<Option<Vec<T>>> {
    let Some(units) = units else { return Ok(None) };
    let mut inverse = with_room(units.len())?;
    inverse.extend(units.iter().map(|unit| T::from_f64(1.0 / unit).finite()));
    Ok(Some(inverse))
}

/// One thread's sums of dense rows: narrow ones for the rows since the last flush, wide ones for all before.
#[derive(Debug)]
pub struct DenseSums<T: Real> {
    narrow: Vec<T::Sum>,
    narrow_rows: usize,
    wide: Vec<i64>,
    /// Whether a value was not finite.
    refused: bool,
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

impl<T: Real> ShiftedRows for Dense<'_, T> {
    type Value = T;
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
            refused: false,
        })
    }

    #[inline(always)]
    fn add(
        &self,
        range: Range<usize>,
        moved: Moved<'_>,
        inverse: Option<&[T]>,
        sums: &mut DenseSums<T>,
    ) -> Result<()> {
        let mut group = [(0, T::ZERO, T::ZERO); GROUP];
        let mut filled = 0;
        for i in range.filter(|i| moved.counts(*i)) {
            let (factor, shift) = moved.of::<T>(i);
            if !factor.is_finite() {
                add_extreme(self.row(i), factor, shift, inverse, sums);
                continue;
            }
            group[filled] = (i, factor, shift);
            filled += 1;
            if filled == GROUP {
                add_group(*self, &group, moved.shifts.is_some(), inverse, sums);
                filled = 0;
            }
        }
        if filled > 0 {
            // The rest of the group repeats a row with factor 0: it adds nothing.
            let filler = (group[0].0, T::ZERO, T::ZERO);
            group[filled..].fill(filler);
            add_group(*self, &group, moved.shifts.is_some(), inverse, sums);
        }
        if sums.refused {
            return Err(Error::invalid("X must be finite"));
        }
        Ok(())
    }

    fn totals(&self, mut sums: DenseSums<T>) -> Result<Vec<i64>> {
        sums.flush();
        Ok(sums.wide)
    }
}

/// A row's number, factor and shift.
type Member<T> = (usize, T, T);

/// Add eight rows with finite factors. Differences are finite, so no product is NaN: see [`LARGEST_SHIFT`] for rows
/// as they are; divided by units they may be infinite and are brought back.
#[inline(always)]
fn add_group<T: Real>(
    rows: Dense<'_, T>,
    group: &[Member<T>; GROUP],
    shifted: bool,
    inverse: Option<&[T]>,
    sums: &mut DenseSums<T>,
) {
    if sums.narrow_rows + GROUP > T::MOST_ROWS {
        sums.flush();
    }
    sums.narrow_rows += GROUP;
    // Three loops, each without a question in it: most rows have neither units nor a shift.
    match inverse {
        None if shifted => add_numbers(rows, group, sums, |x, _, shift| x.less(shift)),
        None => add_numbers(rows, group, sums, |x, _, _| x),
        Some(inverse) => {
            let inverse = &inverse[..sums.narrow.len()];
            add_numbers(rows, group, sums, |x, j, shift| x.times(inverse[j]).less(shift).finite());
        }
    }
}

#[inline(always)]
fn add_numbers<T: Real>(
    rows: Dense<'_, T>,
    group: &[Member<T>; GROUP],
    sums: &mut DenseSums<T>,
    number: impl Fn(T, usize, T) -> T,
) {
    let columns = sums.narrow.len();
    let row = |g: usize| &rows.row(group[g].0)[..columns];
    // Zipped, and not by number: with a question for each row the compiler leaves the last columns to a slower loop.
    let upper = row(0).iter().zip(row(1)).zip(row(2)).zip(row(3));
    let lower = row(4).iter().zip(row(5)).zip(row(6)).zip(row(7));
    let mut probe = T::Sum::default();
    for ((j, narrow), ((((a, b), c), d), (((e, f), g), h))) in
        sums.narrow.iter_mut().enumerate().zip(upper.zip(lower))
    {
        let mut sum = *narrow;
        for (x, (_, factor, shift)) in [a, b, c, d, e, f, g, h].into_iter().zip(group) {
            sum = number(*x, j, *shift).add_biased(*factor, sum);
        }
        // In pairs: none waits for all before it.
        let all = a.plus(*b).plus(c.plus(*d)).plus(e.plus(*f).plus(g.plus(*h)));
        *narrow = sum;
        probe = T::join(probe, all.probe());
    }
    // A value that is not finite leaves no sum finite. Large ones may do so, too: then each is looked at.
    if T::tripped(probe) {
        sums.refused |= (0..GROUP).map(row).any(|row| !row.iter().all(|x| x.is_finite()));
    }
}

/// A row whose factor is infinite or NaN: products may be NaN, which the fast rounding does not allow for.
#[inline(never)]
fn add_extreme<T: Real>(row: &[T], factor: T, shift: T, inverse: Option<&[T]>, sums: &mut DenseSums<T>) {
    for (j, (wide, x)) in sums.wide.iter_mut().zip(row).enumerate() {
        *wide += i64::from(number(*x, j, inverse, shift).quantise(factor));
        sums.refused |= !x.is_finite();
    }
}

/// A value divided by its column's unit, less the shift.
#[inline(always)]
fn number<T: Real>(x: T, column: usize, inverse: Option<&[T]>, shift: T) -> T {
    match inverse {
        None => x.less(shift),
        Some(inverse) => x.times(inverse[column]).less(shift).finite(),
    }
}

/// One thread's sums of sparse rows: what zeros of the rows give to every column, and where a value is stored the
/// difference to that.
#[derive(Debug)]
pub struct SparseSums {
    zeros: i64,
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

impl<T: Real, I: Index> ShiftedRows for Csr<'_, T, I> {
    type Value = T;
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
        Ok(SparseSums { zeros: 0, narrow: zeros(Csr::columns(self))?, narrow_rows: 0, wide: Vec::new() })
    }

    #[inline(always)]
    fn add(
        &self,
        range: Range<usize>,
        moved: Moved<'_>,
        inverse: Option<&[T]>,
        sums: &mut SparseSums,
    ) -> Result<()> {
        for i in range.filter(|i| moved.counts(*i)) {
            let (columns, values) = self.canonical_row(i)?;
            if values.iter().fold(false, |bad, x| bad | !x.is_finite()) {
                return Err(Error::invalid("X must be finite"));
            }
            let (factor, shift) = moved.of::<T>(i);
            let zero = T::ZERO.less(shift).quantise(factor);
            sums.zeros += i64::from(zero);
            // A difference of two integers is up to twice as large as one.
            if sums.narrow_rows == BLOCK_ROWS / 2 {
                sums.flush()?;
            }
            sums.narrow_rows += 1;
            for (column, x) in columns.iter().zip(values) {
                let column = column.position();
                sums.narrow[column] += number(*x, column, inverse, shift).quantise(factor) - zero;
            }
        }
        Ok(())
    }

    fn totals(&self, sums: SparseSums) -> Result<Vec<i64>> {
        let mut totals = with_room(sums.narrow.len())?;
        let zero = sums.zeros;
        if sums.wide.is_empty() {
            totals.extend(sums.narrow.into_iter().map(|narrow| zero + i64::from(narrow)));
        } else {
            let both = sums.wide.into_iter().zip(sums.narrow);
            totals.extend(both.map(|(wide, narrow)| zero + wide + i64::from(narrow)));
        }
        Ok(totals)
    }
}
