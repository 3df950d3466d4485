//! Gradients on public columns in coordinates of their own, as exact integer sums.

use std::ops::Range;

use super::checked_flags;
use crate::matrix::scalar::{LIMIT, Real};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::zeros;
use crate::runtime::parallel::{Plan, add_up, in_blocks};
use crate::runtime::simd::Vectorised;

/// Largest coordinate: times a residual of 0 it is 0.
const LARGEST: f64 = 1e300;

/// Sums over rows of `(whiten v) * residual`, clipped to `[-clip, clip]` and rounded in steps of `clip / 2^15`.
///
/// `values` has `m` values a row, `whiten` is `m` times `m`, row after row. A row's coordinate is added up in the order
/// of its columns; NaN counts as 0. Replacing one row moves no sum by more than `2^16`.
///
/// # Errors
/// If lengths do not fit or `clip` is not finite and above 0.
pub fn whitened_sums(
    values: &[f64],
    residuals: &[f64],
    whiten: &[f64],
    clip: f64,
    present: Option<&[u8]>,
    plan: Plan,
) -> Result<Vec<i64>> {
    let n = residuals.len();
    let m = if n == 0 { 0 } else { values.len() / n };
    if n == 0 || m == 0 || m * n != values.len() || m.checked_mul(m) != Some(whiten.len()) {
        return Err(Error::invalid("whiten must be square, with one row for each column of X"));
    }
    checked_flags(present, n)?;
    if !(clip.is_finite() && clip > 0.0) {
        return Err(Error::invalid(format!("clip must be a finite number above 0, got {clip}")));
    }
    // Column after column: a row's value is multiplied with one number for each coordinate.
    let mut weights: Vec<f64> = zeros(m * m)?;
    for (c, row) in whiten.chunks_exact(m).enumerate() {
        row.iter().enumerate().for_each(|(j, weight)| weights[j * m + c] = *weight);
    }
    let start = || Ok((zeros(m)?, zeros(m)?));
    let parts = in_blocks(n, m.saturating_mul(m) / 2, plan, start, |range, (totals, coordinates)| {
        let rows = Rows { values, residuals, present };
        plan.level.run(AddBlock { rows, range, weights: &weights, clip, totals, coordinates });
        Ok(())
    })?;
    add_up(parts.into_iter().map(|(totals, _)| Ok(totals)))
}

#[derive(Clone, Copy)]
struct Rows<'a> {
    values: &'a [f64],
    residuals: &'a [f64],
    present: Option<&'a [u8]>,
}

struct AddBlock<'a, 'b> {
    rows: Rows<'a>,
    range: Range<usize>,
    weights: &'a [f64],
    clip: f64,
    totals: &'b mut Vec<i64>,
    coordinates: &'b mut Vec<f64>,
}

impl Vectorised for AddBlock<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let AddBlock { rows, range, weights, clip, totals, coordinates } = self;
        let m = totals.len();
        for i in range {
            if rows.present.is_some_and(|flags| flags[i] == 0) {
                continue;
            }
            coordinates.fill(0.0);
            for (value, weights) in rows.values[i * m..][..m].iter().zip(weights.chunks_exact(m)) {
                for (coordinate, weight) in coordinates.iter_mut().zip(weights) {
                    *coordinate += value * weight;
                }
            }
            let factor = rows.residuals[i] * LIMIT as f64 / clip;
            for (total, coordinate) in totals.iter_mut().zip(coordinates.iter()) {
                let coordinate = if coordinate.is_nan() { 0.0 } else { coordinate.clamp(-LARGEST, LARGEST) };
                *total += i64::from(coordinate.quantise(factor));
            }
        }
    }
}
