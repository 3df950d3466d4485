//! Completing a row whose cells at a few known columns are drawn already.

use std::ops::Range;

use crate::research::simulate::conditional::Dependence;
use crate::runtime::error::Result;
use crate::runtime::memory::zeros;

/// Rows that are linked side by side.
pub const LANES: usize = 4;

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
            for gap in &self.gaps {
                let (right, columns) = (cells[gap.right], gap.columns.clone());
                let others = self.right_weights[columns.clone()].iter().zip(&self.spreads[columns.clone()]);
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

    fn chained(&self) -> bool {
        matches!(self.dependence, Dependence::Chain(_))
    }

    /// Turn the draws of completed rows of a chain, one row after the other, into cells that depend on those
    /// before. Each waits for the one before, so four rows go side by side.
    pub fn link(&self, rows: &mut [f32]) {
        if !self.chained() {
            return;
        }
        let mut fours = rows.chunks_exact_mut(LANES * self.spreads.len());
        for four in &mut fours {
            self.link_four(four);
        }
        for row in fours.into_remainder().chunks_exact_mut(self.spreads.len()) {
            for gap in &self.gaps {
                let (mut before, right) = (row[gap.left], row[gap.right]);
                for (cell, step) in row[gap.columns.clone()].iter_mut().zip(self.steps(gap)) {
                    before = step.next(before, right, *cell);
                    *cell = before;
                }
            }
        }
    }

    fn link_four(&self, rows: &mut [f32]) {
        let (front, back) = rows.split_at_mut(rows.len() / 2);
        let (a, b) = front.split_at_mut(front.len() / 2);
        let (c, d) = back.split_at_mut(back.len() / 2);
        for gap in &self.gaps {
            let mut before = [a[gap.left], b[gap.left], c[gap.left], d[gap.left]];
            let right = [a[gap.right], b[gap.right], c[gap.right], d[gap.right]];
            let columns = gap.columns.clone();
            let (a, b) = (a[columns.clone()].iter_mut(), b[columns.clone()].iter_mut());
            let (c, d) = (c[columns.clone()].iter_mut(), d[columns].iter_mut());
            for ((((a, b), c), d), step) in a.zip(b).zip(c).zip(d).zip(self.steps(gap)) {
                for (lane, cell) in [a, b, c, d].into_iter().enumerate() {
                    before[lane] = step.next(before[lane], right[lane], *cell);
                    *cell = before[lane];
                }
            }
        }
    }

    fn steps(&self, gap: &Gap) -> impl Iterator<Item = Link> {
        let columns = gap.columns.clone();
        let others = self.right_weights[columns.clone()].iter().zip(&self.spreads[columns.clone()]);
        self.left_weights[columns].iter().zip(others).map(|(left, (right, spread))| Link {
            left: *left,
            right: *right,
            spread: *spread,
        })
    }
}

/// Weights of one column of a chain.
struct Link {
    left: f32,
    right: f32,
    spread: f32,
}

impl Link {
    #[inline(always)]
    fn next(&self, before: f32, right: f32, draw: f32) -> f32 {
        // What does not wait for the cell before is summed first.
        self.left * before + (self.right * right + self.spread * draw)
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
