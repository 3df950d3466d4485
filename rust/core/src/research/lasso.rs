//! The Lasso from a Gram matrix, by coordinate descent. Not private: for baselines only.
//!
//! Minimises `w'Gw/2 - c'w + penalty |w|_1` with `G = X'X` and `c = X'y`. The slopes `c - Gw` are kept up to
//! date, so that a coordinate that stays where it is costs one comparison and one that moves costs one row
//! of G. Sweeps over the active coordinates alternate with sweeps over all of them, until no coordinate
//! breaks the optimality conditions by more than a tolerance.

use crate::runtime::error::{Error, Result};

/// Sweeps over active coordinates between two sweeps over all.
const ACTIVE_SWEEPS: usize = 50;

/// Where coordinate descent stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The minimiser.
    pub weights: Vec<f64>,
    /// Sweeps over all coordinates.
    pub sweeps: usize,
    /// The largest break of the optimality conditions, in units of the penalty.
    pub violation: f64,
}

/// Minimise from `start` until the violation is at most `tolerance` or after `most_sweeps` full sweeps.
///
/// # Errors
/// If shapes do not fit, or `penalty` is not a finite number above zero.
pub fn lasso(
    gram: &[f64],
    correlations: &[f64],
    penalty: f64,
    start: &[f64],
    tolerance: f64,
    most_sweeps: usize,
) -> Result<Fit> {
    let d = correlations.len();
    if gram.len() != d * d || start.len() != d {
        return Err(Error::invalid("gram must be a square matrix with a row for each correlation and start"));
    }
    if !(penalty.is_finite() && penalty > 0.0) {
        return Err(Error::invalid(format!("penalty must be a finite number above 0, got {penalty}")));
    }
    let mut descent = Descent { gram, penalty, weights: start.to_vec(), slopes: correlations.to_vec() };
    for (j, weight) in start.iter().enumerate() {
        if *weight != 0.0 {
            descent.shift(j, *weight);
        }
    }
    let all: Vec<usize> = (0..d).collect();
    let mut fit = Fit { weights: Vec::new(), sweeps: 0, violation: descent.violation(&all) };
    while fit.violation > tolerance && fit.sweeps < most_sweeps {
        descent.sweep(&all);
        let active: Vec<usize> = all.iter().copied().filter(|j| descent.weights[*j] != 0.0).collect();
        for _ in 0..ACTIVE_SWEEPS {
            if descent.violation(&active) <= tolerance {
                break;
            }
            descent.sweep(&active);
        }
        fit.sweeps += 1;
        fit.violation = descent.violation(&all);
    }
    fit.weights = descent.weights;
    Ok(fit)
}

struct Descent<'a> {
    gram: &'a [f64],
    penalty: f64,
    weights: Vec<f64>,
    slopes: Vec<f64>,
}

impl Descent<'_> {
    fn row(&self, j: usize) -> &[f64] {
        &self.gram[j * self.weights.len()..][..self.weights.len()]
    }

    /// Account for weight `j` having grown by `change`.
    fn shift(&mut self, j: usize, change: f64) {
        let d = self.weights.len();
        for (slope, g) in self.slopes.iter_mut().zip(&self.gram[j * d..][..d]) {
            *slope -= change * g;
        }
    }

    fn sweep(&mut self, coordinates: &[usize]) {
        for &j in coordinates {
            let curvature = self.row(j)[j];
            let old = self.weights[j];
            let pull = self.slopes[j] + curvature * old;
            // A column of zeros explains nothing, whatever its weight.
            let new = if pull.abs() > self.penalty && curvature > 0.0 {
                (pull.abs() - self.penalty).copysign(pull) / curvature
            } else {
                0.0
            };
            if new != old {
                self.weights[j] = new;
                self.shift(j, new - old);
            }
        }
    }

    fn violation(&self, coordinates: &[usize]) -> f64 {
        let mut largest = 0.0_f64;
        for &j in coordinates {
            let weight = self.weights[j];
            let broken = if weight == 0.0 && self.row(j)[j] == 0.0 {
                0.0
            } else if weight == 0.0 {
                self.slopes[j].abs() - self.penalty
            } else {
                (self.slopes[j] - self.penalty.copysign(weight)).abs()
            };
            largest = largest.max(broken);
        }
        largest / self.penalty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(gram: &[f64], correlations: &[f64], penalty: f64) -> Vec<f64> {
        let start = vec![0.0; correlations.len()];
        lasso(gram, correlations, penalty, &start, 1e-12, 1000).map(|fit| fit.weights).unwrap_or_default()
    }

    #[test]
    fn independent_columns_are_thresholded_one_by_one() {
        assert_eq!(fit(&[2.0, 0.0, 0.0, 4.0], &[3.0, -6.0], 1.0), vec![1.0, -1.25]);
        assert_eq!(fit(&[2.0, 0.0, 0.0, 4.0], &[3.0, -6.0], 6.0), vec![0.0, 0.0]);
        assert_eq!(fit(&[2.0, 0.0, 0.0, 0.0], &[3.0, 9.0], 1.0)[0], 1.0);
    }

    #[test]
    fn optimality_holds_for_correlated_columns() {
        let (d, penalty) = (30, 0.4);
        let mut gram = vec![0.0; d * d];
        for i in 0..d {
            for j in 0..d {
                gram[i * d + j] = 0.7_f64.powi(i.abs_diff(j) as i32);
            }
        }
        let correlations: Vec<f64> = (0..d).map(|j| ((j * 37) % 11) as f64 / 5.0 - 1.0).collect();
        let weights = fit(&gram, &correlations, penalty);
        assert!(weights.iter().any(|w| *w != 0.0) && weights.contains(&0.0));
        for j in 0..d {
            let slope = correlations[j] - (0..d).map(|k| gram[j * d + k] * weights[k]).sum::<f64>();
            if weights[j] == 0.0 {
                assert!(slope.abs() <= penalty * (1.0 + 1e-9));
            } else {
                assert!((slope - penalty.copysign(weights[j])).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn a_good_start_needs_no_sweep() {
        let (gram, correlations) = ([2.0, 0.5, 0.5, 4.0], [3.0, -6.0]);
        let first = lasso(&gram, &correlations, 1.0, &[0.0, 0.0], 1e-9, 100).unwrap_or_else(|_| panic!());
        let again = lasso(&gram, &correlations, 1.0, &first.weights, 1e-8, 100).unwrap_or_else(|_| panic!());
        assert!(first.sweeps > 0 && again.sweeps == 0 && again.weights == first.weights);
    }

    #[test]
    fn bad_arguments_are_refused() {
        assert!(lasso(&[1.0, 0.0], &[1.0, 1.0], 1.0, &[0.0, 0.0], 1e-6, 10).is_err());
        for penalty in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(lasso(&[1.0], &[1.0], penalty, &[0.0], 1e-6, 10).is_err());
        }
    }
}
