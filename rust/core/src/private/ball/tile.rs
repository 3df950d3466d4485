//! Second moments of few columns: sixteen rows at a time, column after column.
//!
//! Rows of a handful of columns leave most of a wide register empty. Here a register holds one column of several
//! rows instead, from the float to the product; each row's floats are added in the same order as in
//! [`BallMap::quantise`](super::BallMap), so that its integers are the same.

use super::LANES;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::zeros;
use crate::runtime::simd::{DOTS, Level, rounded_to_zero};

/// Rows of a tile.
pub const TILE: usize = 16;

/// Rows whose products are added together at most: they stay in the nearest cache.
const BATCH: usize = 256;

/// Rows of a batch in a ball of `radius`: so many products of its largest integers fit 32 bits.
fn batch_rows(radius: i64) -> usize {
    // A 32-bit sum takes the products of every eighth row, and rows come in pairs.
    let each = (i64::from(i32::MAX) / (radius * radius)).max(2) as usize;
    (each.saturating_mul(TILE / 2) / TILE * TILE).min(BATCH)
}

/// Whether tiles are the faster way in a ball of `radius`: short batches spend their time on adding up.
pub(super) fn worth_tiles(radius: i64) -> bool {
    batch_rows(radius) >= BATCH / 2
}

/// Sums of `q q'` of rows that come tile by tile.
#[derive(Debug)]
pub struct TileMoments {
    width: usize,
    radius: i64,
    batch: usize,
    /// `batch` integers for each column.
    integers: Vec<i16>,
    rows: usize,
    /// Entries with `a <= b` are complete.
    totals: Vec<i64>,
    level: Level,
}

impl TileMoments {
    /// Sums that are all zero, of rows of `width` numbers cut to a ball of `radius`.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn new(width: usize, radius: i64, level: Level) -> Result<Self> {
        let batch = batch_rows(radius);
        let size = width.checked_mul(width).ok_or(Error::Memory)?;
        let (integers, totals) = (zeros(width.checked_mul(batch).ok_or(Error::Memory)?)?, zeros(size)?);
        Ok(TileMoments { width, radius, batch, integers, rows: 0, totals, level })
    }

    /// Add a tile: `values` holds the scaled numbers of sixteen rows, column after column. Rows of zeros add nothing.
    #[inline(always)]
    pub fn add(&mut self, values: &[f64]) {
        if self.rows == self.batch {
            self.flush();
        }
        let (columns, radius) = (values.as_chunks::<TILE>().0, self.radius as f64);
        // Plain loops over whole tiles: iterators are not always compiled for wide registers. A lane without a column
        // would add 0.
        let mut squares = [0.0; TILE];
        for first in 0..LANES.min(columns.len()) {
            let mut lane = [0.0; TILE];
            for column in columns[first..].iter().step_by(LANES) {
                for r in 0..TILE {
                    lane[r] += column[r] * column[r];
                }
            }
            for r in 0..TILE {
                squares[r] += lane[r];
            }
        }
        let mut factors = [0.0; TILE];
        for r in 0..TILE {
            let cut = radius / squares[r].sqrt();
            factors[r] = if squares[r] > radius * radius { cut } else { 1.0 };
        }
        let mut norms = [0.0; TILE];
        for (j, column) in columns.iter().enumerate() {
            let (integers, _) = self.integers[j * self.batch + self.rows..].as_chunks_mut::<TILE>();
            let integers = &mut integers[0];
            // Loops of one thing each: otherwise the compiler may convert number by number.
            let mut q = [0i32; TILE];
            for r in 0..TILE {
                q[r] = rounded_to_zero(column[r] * factors[r]);
            }
            for r in 0..TILE {
                // Sums of squares up to 2^53 are exact in a float, and one beyond stays beyond.
                norms[r] += f64::from(q[r]) * f64::from(q[r]);
            }
            for r in 0..TILE {
                integers[r] = q[r] as i16;
            }
        }
        let mut all = true;
        let mut kept = [false; TILE];
        for r in 0..TILE {
            // NaN and infinity anywhere in a row arrive in its square, too.
            kept[r] = squares[r].is_finite() & (norms[r] <= radius * radius);
            all &= kept[r];
        }
        if !all {
            self.forget(kept);
        }
        self.rows += TILE;
    }

    /// Turn rows of the last tile that are not kept into zeros.
    #[inline(never)]
    fn forget(&mut self, kept: [bool; TILE]) {
        for r in (0..TILE).filter(|r| !kept[*r]) {
            (0..self.width).for_each(|j| self.integers[j * self.batch + self.rows + r] = 0);
        }
    }

    /// Add the products of the batch to the sums.
    #[inline(always)]
    fn flush(&mut self) {
        let column = |j: usize| &self.integers[j * self.batch..][..self.rows];
        for a in 0..self.width {
            for first in (a..self.width).step_by(DOTS) {
                // Beyond the last column it is taken again, and nobody asks for its products.
                let others = std::array::from_fn(|k| column((first + k).min(self.width - 1)));
                let sums = self.level.dot_products(column(a), others);
                let totals = &mut self.totals[a * self.width + first..(a + 1) * self.width];
                totals.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
            }
        }
        self.rows = 0;
    }

    /// All sums, `width` times `width`, of which entries with `a <= b` are complete.
    pub fn totals(mut self) -> Vec<i64> {
        self.flush();
        self.totals
    }
}
