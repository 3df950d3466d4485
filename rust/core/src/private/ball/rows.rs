//! Scaled values of a row at the public columns, dense or sparse.

use super::BallMap;
use crate::matrix::scalar::Real;
use crate::matrix::{Csr, Dense, Index};
use crate::runtime::error::Result;
use crate::runtime::simd::prefetch;

/// Bytes that come from memory together.
const LINE: usize = 64;

/// Rows that can be cut to a ball.
pub trait BallRows: Sync {
    /// Number of rows.
    fn rows(&self) -> usize;
    /// Number of columns.
    fn columns(&self) -> usize;
    /// Ask for row `i`, which will be read soon.
    fn ask_for(&self, i: usize);
    /// Write `(x_j - center_j) * scale_j` of row `i` at the map's columns.
    ///
    /// # Errors
    /// If a sparse row is not canonical.
    fn gather(&self, i: usize, map: &BallMap, values: &mut [f64]) -> Result<()>;
}

impl<T: Real> BallRows for Dense<'_, T> {
    fn rows(&self) -> usize {
        Dense::rows(self)
    }

    fn columns(&self) -> usize {
        Dense::columns(self)
    }

    #[inline(always)]
    fn ask_for(&self, i: usize) {
        self.row(i).iter().step_by(LINE / size_of::<T>()).for_each(prefetch);
    }

    #[inline(always)]
    fn gather(&self, i: usize, map: &BallMap, values: &mut [f64]) -> Result<()> {
        let row = self.row(i);
        if let Some(centers) = &map.centers {
            let moved = map.columns.iter().zip(centers).zip(&map.scales);
            for (value, ((column, center), scale)) in values.iter_mut().zip(moved) {
                *value = (row[*column].to_f64() - center) * scale;
            }
            return Ok(());
        }
        if let Some(first) = map.first {
            let row = &row[first..first + map.columns.len()];
            for ((value, x), scale) in values.iter_mut().zip(row).zip(&map.scales) {
                *value = x.to_f64() * scale;
            }
            return Ok(());
        }
        for ((value, column), scale) in values.iter_mut().zip(&map.columns).zip(&map.scales) {
            *value = row[*column].to_f64() * scale;
        }
        Ok(())
    }
}

impl<T: Real, I: Index> BallRows for Csr<'_, T, I> {
    fn rows(&self) -> usize {
        Csr::rows(self)
    }

    fn columns(&self) -> usize {
        Csr::columns(self)
    }

    #[inline(always)]
    fn ask_for(&self, _: usize) {}

    #[inline(always)]
    fn gather(&self, i: usize, map: &BallMap, values: &mut [f64]) -> Result<()> {
        let (columns, row) = self.canonical_row(i)?;
        match &map.centers {
            None => values[..map.columns.len()].fill(0.0),
            Some(centers) => {
                let moved = centers.iter().zip(&map.scales);
                values
                    .iter_mut()
                    .zip(moved)
                    .for_each(|(value, (center, scale))| *value = (0.0 - center) * scale);
            }
        }
        for (column, x) in columns.iter().zip(row) {
            if let Some(place) = map.place(column.position()) {
                let center = map.centers.as_ref().map_or(0.0, |centers| centers[place]);
                values[place] = (x.to_f64() - center) * map.scales[place];
            }
        }
        Ok(())
    }
}
