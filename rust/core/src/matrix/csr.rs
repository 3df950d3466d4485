//! Compressed sparse rows, as SciPy stores them.

use crate::matrix::scalar::Real;
use crate::runtime::error::{Error, Result};

/// A column or offset number of a sparse matrix: SciPy stores either width.
pub trait Index: Copy + Send + Sync + 'static {
    /// As a position; a negative number becomes one that is out of every range.
    fn position(self) -> usize;
}

impl Index for i32 {
    #[inline(always)]
    fn position(self) -> usize {
        self as isize as usize
    }
}

impl Index for i64 {
    #[inline(always)]
    fn position(self) -> usize {
        self as isize as usize
    }
}

/// Compressed sparse rows. Offsets are checked here; columns are checked by whoever reads them, since that
/// needs a pass over the data.
#[derive(Debug, Clone, Copy)]
pub struct Csr<'a, T, I> {
    offsets: &'a [I],
    columns_of: &'a [I],
    values: &'a [T],
    columns: usize,
}

impl<'a, T: Real, I: Index> Csr<'a, T, I> {
    /// View SciPy's `indptr`, `indices` and `data` as rows of `columns` columns.
    pub fn new(offsets: &'a [I], columns_of: &'a [I], values: &'a [T], columns: usize) -> Result<Self> {
        let ends_match = match (offsets.first(), offsets.last()) {
            (Some(first), Some(last)) => first.position() == 0 && last.position() <= values.len(),
            _ => false,
        };
        if !ends_match || offsets.windows(2).any(|pair| pair[0].position() > pair[1].position()) {
            return Err(Error::invalid("X.indptr must start at 0, never decrease and end within X.data"));
        }
        if columns_of.len() != values.len() {
            return Err(Error::invalid("X.indices and X.data must have the same length"));
        }
        Ok(Csr { offsets, columns_of, values, columns })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Stored values in all.
    pub fn stored(&self) -> usize {
        self.offsets[self.rows()].position()
    }

    /// Where row `i` begins among the stored values.
    #[inline(always)]
    pub fn first_of(&self, i: usize) -> usize {
        self.offsets[i].position()
    }

    /// Columns of the stored values from `first` on.
    #[inline(always)]
    pub fn columns_from(&self, first: usize) -> &'a [I] {
        &self.columns_of[first..]
    }

    /// Columns and values of row `i`.
    #[inline(always)]
    pub fn row(&self, i: usize) -> (&'a [I], &'a [T]) {
        let range = self.offsets[i].position()..self.offsets[i + 1].position();
        (&self.columns_of[range.clone()], &self.values[range])
    }

    /// Row `i`, canonical: columns strictly increasing and in range. A repeated column would let one row
    /// count twice.
    #[inline(always)]
    pub fn canonical_row(&self, i: usize) -> Result<(&'a [I], &'a [T])> {
        let (columns_of, values) = self.row(i);
        let in_range = columns_of.last().is_none_or(|last| last.position() < self.columns);
        let increasing = columns_of
            .iter()
            .zip(columns_of.get(1..).unwrap_or_default())
            .fold(true, |so_far, (a, b)| so_far & (a.position() < b.position()));
        if in_range && increasing {
            Ok((columns_of, values))
        } else {
            Err(Error::invalid(
                "X.indices must be in range and strictly increasing within each row \
                 (X.sum_duplicates() makes them so)",
            ))
        }
    }
}
