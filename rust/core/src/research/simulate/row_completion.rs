//! Completing a row whose cells at a few known columns are drawn already.

use std::ops::Range;

use crate::research::simulate::conditional::Dependence;
use crate::runtime::error::Result;
use crate::runtime::memory::zeros;

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

    /// Turn a row of fresh draws into a row of the environment. `cells` holds the known columns, and after the
    /// last column the factors that columns share.
    #[inline]
    pub fn complete(&self, cells: &[f32], row: &mut [f32]) {
        let chained = matches!(self.dependence, Dependence::Chain(_));
        for gap in self.gaps.iter().filter(|_| !self.trivial) {
            let (mut before, right) = (cells[gap.left], cells[gap.right]);
            let columns = gap.columns.clone();
            let weights = self.left_weights[columns.clone()].iter();
            let others = self.right_weights[columns.clone()].iter().zip(&self.spreads[columns.clone()]);
            if chained {
                for ((cell, left_weight), (right_weight, spread)) in
                    row[columns].iter_mut().zip(weights).zip(others)
                {
                    // What does not wait for the cell before is summed first.
                    before = left_weight * before + (right_weight * right + spread * *cell);
                    *cell = before;
                }
            } else {
                // Cells that do not wait for each other: the compiler may do many at once.
                for (cell, (right_weight, spread)) in row[columns].iter_mut().zip(others) {
                    *cell = right_weight * right + spread * *cell;
                }
            }
        }
        for column in &self.known {
            row[*column] = cells[*column];
        }
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
                let mut row = draws.clone();
                RowCompletion::new(dependence, &known, d, scale).expect("memory").complete(&cells, &mut row);

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
