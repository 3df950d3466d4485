//! Completing a row whose cells at a few known columns are drawn already.

use std::ops::Range;

use crate::research::simulate::conditional::Dependence;
use crate::runtime::error::Result;
use crate::runtime::memory::zeros;
use crate::runtime::simd::{Level, Vectorised};

/// Rows that are linked side by side.
pub const LANES: usize = 8;

/// Columns between two known ones that depend on the same earlier cells, and those cells.
#[derive(Debug, Clone)]
struct Gap {
    columns: Range<usize>,
    left: usize,
    right: usize,
}

/// Weights for every column, shared by all rows with the same known columns.
#[derive(Debug, Clone)]
pub struct RowCompletion {
    known: Vec<usize>,
    gaps: Vec<Gap>,
    left_weights: Vec<f32>,
    right_weights: Vec<f32>,
    spreads: Vec<f32>,
    dependence: Dependence,
    /// Fresh draws are the row already.
    trivial: bool,
}

impl RowCompletion {
    /// For `known` columns in ascending order; `scale` multiplies every coordinate.
    ///
    /// # Errors
    /// If there is no memory for the weights.
    pub fn new(dependence: Dependence, known: &[usize], dimension: usize, scale: f64) -> Result<Self> {
        let (mut left_weights, mut right_weights) = (zeros(dimension)?, zeros(dimension)?);
        let mut spreads = zeros(dimension)?;
        let mut gaps = Vec::with_capacity(known.len() + 1);
        let mut start = 0;
        for end in known.iter().copied().chain([dimension]) {
            let right = (end < dimension).then_some(end);
            for column in start..end {
                let step = dependence.step(column, column.checked_sub(1), right, dimension);
                left_weights[column] = step.left_weight as f32;
                right_weights[column] = step.right_weight as f32;
                spreads[column] = (step.spread * scale) as f32;
            }
            while start < end {
                let step = dependence.step(start, start.checked_sub(1), right, dimension);
                let stop = dependence.run_end(start).min(end);
                gaps.push(Gap { columns: start..stop, left: step.left, right: step.right });
                start = stop;
            }
            start = end + 1;
        }
        let trivial = dependence == Dependence::Independent && scale == 1.0;
        let known = known.to_vec();
        Ok(RowCompletion { known, gaps, left_weights, right_weights, spreads, dependence, trivial })
    }

    /// Put into a row of fresh draws what is known of it. `cells` holds the known columns, and after the last
    /// column the factors that columns share. The rest of a chain is left to [`link`](Self::link).
    #[inline]
    pub fn complete(&self, cells: &[f32], row: &mut [f32]) {
        if !self.trivial && !self.chained() {
            self.fill_gaps(row, |gap, _| cells[gap.right]);
        }
        for column in &self.known {
            row[*column] = cells[*column];
        }
    }

    /// Add to each draw of a row what the known cell on its right says of it.
    #[inline(always)]
    fn fill_gaps(&self, row: &mut [f32], right: impl Fn(&Gap, &[f32]) -> f32) {
        for gap in &self.gaps {
            let (right, columns) = (right(gap, row), gap.columns.clone());
            let others = self.right_weights[columns.clone()].iter().zip(&self.spreads[columns.clone()]);
            // Cells that do not wait for each other: the compiler may do many at once.
            for (cell, (right_weight, spread)) in row[columns].iter_mut().zip(others) {
                *cell = right_weight * right + spread * *cell;
            }
        }
    }

    fn chained(&self) -> bool {
        matches!(self.dependence, Dependence::Chain(_))
    }

    /// Turn the draws of completed rows of a chain, one row after the other, into cells that depend on those
    /// before. Each waits for the one before, so several rows go side by side.
    pub fn link(&self, rows: &mut [f32]) {
        if !self.chained() {
            return;
        }
        let d = self.spreads.len();
        // What does not wait for the cell before comes first.
        for row in rows.chunks_exact_mut(d) {
            Level::best().run(Gaps { completion: self, row });
        }
        let mut groups = rows.chunks_exact_mut(LANES * d);
        for group in &mut groups {
            self.link_rows::<LANES>(group);
        }
        for row in groups.into_remainder().chunks_exact_mut(d) {
            self.link_rows::<1>(row);
        }
    }

    fn link_rows<const N: usize>(&self, rows: &mut [f32]) {
        let mut lanes = rows.chunks_exact_mut(self.spreads.len());
        let mut lanes: [&mut [f32]; N] = std::array::from_fn(|_| lanes.next().unwrap_or_default());
        for gap in &self.gaps {
            let mut before: [f32; N] = std::array::from_fn(|lane| lanes[lane][gap.left]);
            let weights = &self.left_weights[gap.columns.clone()];
            let mut cells = lanes.each_mut().map(|lane| &mut lane[gap.columns.clone()][..weights.len()]);
            for (j, weight) in weights.iter().enumerate() {
                for (before, cells) in before.iter_mut().zip(&mut cells) {
                    *before = weight * *before + cells[j];
                    cells[j] = *before;
                }
            }
        }
    }
}

/// A row of a chain whose cells do not know their neighbours on the left yet.
struct Gaps<'a> {
    completion: &'a RowCompletion,
    row: &'a mut [f32],
}

impl Vectorised for Gaps<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.completion.fill_gaps(self.row, |gap, row| row[gap.right]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completed_row_follows_the_steps_one_by_one() {
        let (d, scale) = (9, 2.0);
        let draws: Vec<f32> = (0..d).map(|j| (j as f32 * 1.7).sin()).collect();
        for dependence in [
            Dependence::Independent,
            Dependence::Chain(-0.7),
            Dependence::Shared { rho: 0.4, width: 9 },
            Dependence::Shared { rho: 0.4, width: 4 },
        ] {
            for known in [vec![], vec![0], vec![8], vec![2, 3, 6], (0..9).collect()] {
                let mut cells = vec![0.0f32; d];
                cells.extend((0..dependence.factors(d)).map(|factor| 0.9 - 0.5 * factor as f32));
                for column in &known {
                    cells[*column] = 0.3 * (*column as f32) - 1.0;
                }
                let completion = RowCompletion::new(dependence, &known, d, scale).expect("memory");
                let mut rows = draws.repeat(LANES + 1);
                for row in rows.chunks_exact_mut(d) {
                    completion.complete(&cells, row);
                }
                completion.link(&mut rows);
                let row = &rows[..d];
                assert!(rows.chunks_exact(d).all(|other| other == row), "four at once or one");

                let rest: Vec<usize> = (0..d).filter(|column| !known.contains(column)).collect();
                let mut slow: Vec<f64> = cells.iter().map(|x| f64::from(*x)).collect();
                for step in dependence.steps(&rest, &mut known.clone(), d) {
                    slow[step.cell] = step.left_weight * slow[step.left]
                        + step.right_weight * slow[step.right]
                        + step.spread * scale * f64::from(draws[step.cell]);
                }
                for (fast, slow) in row.iter().zip(&slow) {
                    assert!((f64::from(*fast) - slow).abs() < 2e-6, "{dependence:?} {known:?}");
                }
            }
        }
    }
}
