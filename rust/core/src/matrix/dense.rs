//! Dense rows in C order.

use crate::matrix::scalar::Real;
use crate::runtime::error::{Error, Result};

/// A dense matrix in C order.
#[derive(Debug, Clone, Copy)]
pub struct Dense<'a, T> {
    values: &'a [T],
    rows: usize,
    columns: usize,
}

impl<'a, T: Real> Dense<'a, T> {
    /// View `values` as `rows` rows of `columns` each.
    pub fn new(values: &'a [T], rows: usize, columns: usize) -> Result<Self> {
        if rows.checked_mul(columns) != Some(values.len()) {
            return Err(Error::invalid("X must hold rows * columns values"));
        }
        Ok(Dense { values, rows, columns })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Row `i`.
    #[inline(always)]
    pub fn row(&self, i: usize) -> &'a [T] {
        self.rows_from(i, 1)
    }

    /// `count` rows from row `first` on, one after the other.
    #[inline(always)]
    pub fn rows_from(&self, first: usize, count: usize) -> &'a [T] {
        &self.values[first * self.columns..(first + count) * self.columns]
    }
}
