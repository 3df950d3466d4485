//! Public columns of all rows, dense and in f64.

use std::ops::Range;

use crate::matrix::scalar::Real;
use crate::matrix::{Csr, Dense, Index};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::with_room;
use crate::runtime::parallel::{Plan, for_each, threads_for};
use crate::runtime::simd::prefetch;

/// Below this many values one thread is faster.
const SERIAL_BELOW: usize = 1 << 16;

/// Rows handed to a thread at a time.
const BLOCK_ROWS: usize = 1 << 11;

/// Rows whose public columns can be read.
pub trait ColumnRows: Sync {
    /// Number of rows.
    fn rows(&self) -> usize;
    /// Number of columns.
    fn columns(&self) -> usize;
    /// Call `put` with the place and the value of each chosen column of row `i`; those that are not stored are zero.
    ///
    /// # Errors
    /// If a sparse row is not canonical.
    fn read(&self, i: usize, chosen: &Chosen, put: impl FnMut(usize, f64)) -> Result<()>;
    /// Write the chosen columns of all rows of a range to `columns`, each to its place, from the first row on; those
    /// that are not stored are left as they are.
    ///
    /// # Errors
    /// If a sparse row is not canonical.
    #[inline(always)]
    fn read_all<const W: usize>(
        &self,
        range: Range<usize>,
        chosen: &Chosen,
        columns: &mut [[f64; W]],
    ) -> Result<()> {
        range
            .enumerate()
            .try_for_each(|(r, i)| self.read(i, chosen, |place, value| columns[place][r] = value))
    }
    /// Ask for the chosen columns of row `i`, if there is such a row, before they are read.
    fn prefetch(&self, i: usize, chosen: &Chosen);
}

/// Public columns in ascending order, each with its place in the result.
#[derive(Debug)]
pub struct Chosen(Vec<(usize, usize)>);

impl Chosen {
    /// Check and sort `columns` of rows with `dimension` columns.
    ///
    /// # Errors
    /// If one is repeated or out of range.
    pub fn new(columns: &[usize], dimension: usize) -> Result<Self> {
        let mut sorted = with_room(columns.len())?;
        sorted.extend(columns.iter().enumerate().map(|(place, column)| (*column, place)));
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0].0 == pair[1].0)
            || sorted.last().is_some_and(|last| last.0 >= dimension)
        {
            return Err(Error::invalid("columns must be different from each other and columns of X"));
        }
        Ok(Chosen(sorted))
    }
}

impl<T: Real> ColumnRows for Dense<'_, T> {
    fn rows(&self) -> usize {
        Dense::rows(self)
    }

    fn columns(&self) -> usize {
        Dense::columns(self)
    }

    #[inline(always)]
    fn read(&self, i: usize, chosen: &Chosen, mut put: impl FnMut(usize, f64)) -> Result<()> {
        let row = self.row(i);
        for (column, place) in &chosen.0 {
            put(*place, row[*column].to_f64());
        }
        Ok(())
    }

    /// Column after column: fewer questions than row after row.
    #[inline(always)]
    fn read_all<const W: usize>(
        &self,
        range: Range<usize>,
        chosen: &Chosen,
        columns: &mut [[f64; W]],
    ) -> Result<()> {
        let (values, width) = (self.rows_from(range.start, range.len()), Dense::columns(self));
        for (column, place) in &chosen.0 {
            let to = &mut columns[*place][..range.len()];
            // By index: a stepping iterator is not compiled into so few instructions.
            for (r, value) in to.iter_mut().enumerate() {
                *value = values[r * width + column].to_f64();
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn prefetch(&self, i: usize, chosen: &Chosen) {
        if i < Dense::rows(self) {
            let row = self.row(i);
            for (column, _) in &chosen.0 {
                prefetch(&row[*column]);
            }
        }
    }
}

impl<T: Real, I: Index> ColumnRows for Csr<'_, T, I> {
    fn rows(&self) -> usize {
        Csr::rows(self)
    }

    fn columns(&self) -> usize {
        Csr::columns(self)
    }

    #[inline(always)]
    fn read(&self, i: usize, chosen: &Chosen, mut put: impl FnMut(usize, f64)) -> Result<()> {
        let (columns, values) = self.canonical_row(i)?;
        for (column, place) in &chosen.0 {
            if let Ok(at) = columns.binary_search_by_key(column, |column| column.position()) {
                put(*place, values[at].to_f64());
            }
        }
        Ok(())
    }

    /// Sparse rows lie one after the other, which the processor foresees.
    #[inline(always)]
    fn prefetch(&self, _: usize, _: &Chosen) {}
}

/// Write columns of all rows, each divided by its unit, to `out`: `width` values a row, of which those from
/// `first` on are written.
///
/// # Errors
/// If a column is repeated or out of range, lengths do not fit or a sparse row is not canonical.
pub fn gather_columns<R: ColumnRows>(
    rows: &R,
    columns: &[usize],
    units: Option<&[f64]>,
    out: &mut [f64],
    width: usize,
    first: usize,
    plan: Plan,
) -> Result<()> {
    let chosen = Chosen::new(columns, rows.columns())?;
    if units.is_some_and(|units| units.len() != columns.len()) {
        return Err(Error::invalid("units must be one number for each column"));
    }
    let fits = first.checked_add(columns.len()).is_some_and(|end| end <= width);
    if !fits || rows.rows().checked_mul(width) != Some(out.len()) {
        return Err(Error::invalid("out must have one row for each row of X and room for the columns"));
    }
    let block = plan.block_rows.unwrap_or(BLOCK_ROWS).max(1);
    let threads = threads_for(plan.threads, rows.rows() * columns.len().max(1), SERIAL_BELOW);
    let jobs = out.chunks_mut((block * width).max(1)).enumerate();
    for_each(threads, jobs, |(number, part)| {
        for (offset, row) in part.chunks_exact_mut(width).enumerate() {
            let to = &mut row[first..first + columns.len()];
            to.fill(0.0);
            rows.read(number * block + offset, &chosen, |place, value| to[place] = value)?;
            if let Some(units) = units {
                to.iter_mut().zip(units).for_each(|(value, unit)| *value /= unit);
            }
        }
        Ok(())
    })
}
