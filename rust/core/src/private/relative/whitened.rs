//! Gradients on public columns in coordinates of their own, as exact integer sums.

use std::ops::Range;

use super::checked_flags;
use crate::matrix::scalar::{LIMIT, Real};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::zeros;
use crate::runtime::parallel::{Plan, add_up, in_blocks};
use crate::runtime::simd::Vectorised;

/// Coordinates computed together.
const LANES: usize = 8;

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
    let m = values.len().checked_div(n).unwrap_or(0);
    if n == 0 || m == 0 || m * n != values.len() || m.checked_mul(m) != Some(whiten.len()) {
        return Err(Error::invalid("whiten must be square, with one row for each column of X"));
    }
    checked_flags(present, n)?;
    if !(clip.is_finite() && clip > 0.0) {
        return Err(Error::invalid(format!("clip must be a finite number above 0, got {clip}")));
    }
    // Column after column, in whole lanes: a row's value is multiplied with one number for each coordinate.
    let stride = m.next_multiple_of(LANES);
    let mut weights: Vec<f64> = zeros(m * stride)?;
    for (c, row) in whiten.chunks_exact(m).enumerate() {
        row.iter().enumerate().for_each(|(j, weight)| weights[j * stride + c] = *weight);
    }
    let start = || zeros(stride);
    let parts = in_blocks(n, m.saturating_mul(m) / 2, plan, start, |range, totals| {
        let rows = Rows { values, residuals, present, columns: m };
        plan.level.run(AddBlock { rows, range, weights: &weights, clip, totals });
        Ok(())
    })?;
    let mut sums = add_up(parts.into_iter().map(Ok))?;
    sums.truncate(m);
    Ok(sums)
}

#[derive(Clone, Copy)]
struct Rows<'a> {
    values: &'a [f64],
    residuals: &'a [f64],
    present: Option<&'a [u8]>,
    columns: usize,
}

struct AddBlock<'a, 'b> {
    rows: Rows<'a>,
    range: Range<usize>,
    weights: &'a [f64],
    clip: f64,
    totals: &'b mut [i64],
}

impl Vectorised for AddBlock<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let AddBlock { rows, range, weights, clip, totals } = self;
        let (m, stride) = (rows.columns, totals.len());
        for (lanes, totals) in totals.chunks_exact_mut(LANES).enumerate() {
            let (mut biased, mut count) = ([0i64; LANES], 0);
            for i in range.clone() {
                if rows.present.is_some_and(|flags| flags[i] == 0) {
                    continue;
                }
                let mut coordinates = [0.0f64; LANES];
                let weights = weights[lanes * LANES..].chunks(stride);
                for (value, weights) in rows.values[i * m..][..m].iter().zip(weights) {
                    for (coordinate, weight) in coordinates.iter_mut().zip(&weights[..LANES]) {
                        *coordinate += value * weight;
                    }
                }
                let factor = rows.residuals[i] * LIMIT as f64 / clip;
                let numbers =
                    coordinates.map(|c| if c.is_nan() { 0.0 } else { c }).map(|c| c.clamp(-LARGEST, LARGEST));
                if factor.is_finite() {
                    // Neither is NaN or infinite, so that their product is a number: what the fast rounding needs.
                    for (sum, number) in biased.iter_mut().zip(numbers) {
                        *sum = number.add_biased(factor, *sum);
                    }
                    count += 1;
                } else {
                    for (total, number) in totals.iter_mut().zip(numbers) {
                        *total += i64::from(number.quantise(factor));
                    }
                }
            }
            for (total, sum) in totals.iter_mut().zip(biased) {
                *total += f64::unbiased(sum, count);
            }
        }
    }
}
