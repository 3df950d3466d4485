//! Gradients on public columns in coordinates of their own, as exact integer sums.

use crate::matrix::scalar::{LIMIT, Real};
use crate::private::ball::tile::TILE;
use crate::runtime::error::Result;
use crate::runtime::memory::{copied, zeros};

/// Largest coordinate: times a residual of 0 it is 0.
const LARGEST: f64 = 1e300;

/// What a row of `m` values costs, in values of a plain sum.
pub(super) fn work_on_row(m: usize) -> usize {
    m.saturating_mul(m.saturating_add(TILE / 2))
}

/// What a row's coordinates are multiplied with before they are rounded. It may be infinite or NaN.
#[inline(always)]
pub(super) fn factor(residual: f64, clip: f64) -> f64 {
    residual * LIMIT as f64 / clip
}

/// Sums over rows of `(whiten v) * residual`, clipped and rounded in steps of `clip / 2^15`.
///
/// Rows come sixteen at a time, column after column: a register holds one column of several rows. A row's coordinate is added
/// up in the order of its columns; NaN counts as 0. Replacing one row moves no sum by more than `2^16`.
#[derive(Debug)]
pub(super) struct WhitenedTiles {
    weights: Vec<f64>,
    width: usize,
    /// One sum for each coordinate and row of a tile.
    biased: Vec<i64>,
    tiles: usize,
    /// Rows with a factor that is not finite.
    extreme: Vec<i64>,
}

impl WhitenedTiles {
    pub(super) fn new(whiten: &[f64], width: usize) -> Result<Self> {
        let (biased, extreme) = (zeros(width * TILE)?, zeros(width)?);
        Ok(WhitenedTiles { weights: copied(whiten)?, width, biased, tiles: 0, extreme })
    }

    /// Add a tile; a row with factor 0 adds nothing.
    #[inline(always)]
    pub(super) fn add(&mut self, values: &[f64], factors: &[f64; TILE]) {
        // Plain loops over whole tiles: iterators are not always compiled for wide registers.
        let (mut finite, mut all_finite) = (*factors, true);
        for factor in &mut finite {
            all_finite &= factor.is_finite();
            *factor = if factor.is_finite() { *factor } else { 0.0 };
        }
        let columns = values.as_chunks::<TILE>().0;
        for (c, biased) in self.biased.as_chunks_mut::<TILE>().0.iter_mut().enumerate() {
            let weights = &self.weights[c * self.width..][..columns.len()];
            let mut numbers = [0.0f64; TILE];
            for (j, column) in columns.iter().enumerate() {
                for r in 0..TILE {
                    numbers[r] += column[r] * weights[j];
                }
            }
            for r in 0..TILE {
                numbers[r] = bounded(numbers[r]);
                // Neither number nor factor is NaN or infinite, so that their product is a number: what the fast
                // rounding needs.
                biased[r] = numbers[r].add_biased(finite[r], biased[r]);
            }
            if !all_finite {
                for r in (0..TILE).filter(|r| !factors[*r].is_finite()) {
                    self.extreme[c] += i64::from(numbers[r].quantise(factors[r]));
                }
            }
        }
        self.tiles += 1;
    }

    /// One sum for each coordinate.
    pub(super) fn totals(self) -> Vec<i64> {
        let mut totals = self.extreme;
        for (total, biased) in totals.iter_mut().zip(self.biased.chunks_exact(TILE)) {
            *total += biased.iter().map(|sum| f64::unbiased(*sum, self.tiles)).sum::<i64>();
        }
        totals
    }
}

/// Write a row's values to its place in a tile.
#[inline(always)]
pub(super) fn put(row: &[f64], r: usize, columns: &mut [[f64; TILE]]) {
    for (column, value) in columns.iter_mut().zip(row) {
        column[r] = *value;
    }
}

/// A coordinate within what times 0 is 0. Comparisons, so that each is one instruction.
#[inline(always)]
fn bounded(coordinate: f64) -> f64 {
    let number = if coordinate.is_nan() { 0.0 } else { coordinate };
    let below = if number > LARGEST { LARGEST } else { number };
    if below < -LARGEST { -LARGEST } else { below }
}
