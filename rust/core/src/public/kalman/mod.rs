//! What a fit that knows public columns learns from a release: a Kalman step, and which columns stay.
//!
//! | letter | meaning |
//! |---|---|
//! | k, m | columns known before; with the constant before them and the new ones behind them, `m` in all |
//! | theta, P | coefficients, and the covariance of what is not known of them |
//! | G, W | second moments, and the precision of each |
//! | H | G, drawn to what is typical by what is noise in it, with no small eigenvalue |
//! | F | what a change of theta does to the released gradient |
//!
//! Public numbers in, public numbers out: floats, in a fixed order of operations.

mod square;

use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{copied, with_room, zeros};
use square::{product, raised, solve, transposed};

/// What was known before, of the constant and `k` columns; the constant's column has the value 1.
#[derive(Debug, Clone, Copy)]
pub struct Before<'a> {
    /// Coefficients.
    pub theta: &'a [f64],
    /// P, row after row.
    pub covariance: &'a [f64],
    /// G, row after row.
    pub moments: &'a [f64],
    /// W, row after row; of moments whose constant is [`Rule::one`].
    pub precision: &'a [f64],
}

/// What was released of all `m`, and what it was released in; the constant's column has the value [`Rule::one`].
#[derive(Debug, Clone, Copy)]
pub struct Released<'a> {
    /// Gradient, in the coordinates of `whiten`.
    pub gradient: &'a [f64],
    /// Second moments, row after row.
    pub moments: &'a [f64],
    /// Prior means of the new coefficients.
    pub start: &'a [f64],
    /// Coordinates of the gradient, `m` times `m`.
    pub whiten: &'a [f64],
    /// What second moments are drawn to, `m` times `m`.
    pub typical: &'a [f64],
}

/// Constants of the step. Deviations are in standard deviations.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Value of the constant's column.
    pub one: f64,
    /// Precision of a released second moment.
    pub weight: f64,
    /// Variance of second moments about what is typical.
    pub spread: f64,
    /// Variance of a second moment by sampling.
    pub sampling: f64,
    /// Precision that everything has at least.
    pub faint: f64,
    /// Smallest eigenvalue of H.
    pub smallest: f64,
    /// What clipping leaves of a gradient.
    pub gain: f64,
    /// Variance of the gradient.
    pub noise: f64,
    /// Prior variance of a new coefficient.
    pub doubt: f64,
    /// Added to the constant's variance.
    pub drift_of_one: f64,
    /// Added to the variance of every other coefficient.
    pub drift: f64,
    /// Deviations below which a column goes.
    pub prune: f64,
    /// Deviations from which a new column counts as found.
    pub stand_out: f64,
    /// Columns that stay at most.
    pub most: usize,
}

/// What is known after the step, of what stays.
#[derive(Debug, Clone, PartialEq)]
pub struct After {
    /// Which of all `m` stay; the constant always does.
    pub keep: Vec<bool>,
    /// New columns that stay and stand out.
    pub found: usize,
    /// See [`Before`], with the columns that stay.
    pub theta: Vec<f64>,
    /// See [`Before`].
    pub covariance: Vec<f64>,
    /// See [`Before`].
    pub moments: Vec<f64>,
    /// See [`Before`].
    pub precision: Vec<f64>,
    /// Mean square of what the step changes in a row's sum of coefficients times values.
    pub explained: f64,
    /// Mean square of what is not known of that sum.
    pub unknown: f64,
}

impl Before<'_> {
    /// Number of columns with the constant.
    fn checked(&self) -> Result<usize> {
        let m = self.theta.len();
        let square = m.checked_mul(m);
        if m == 0 || [self.covariance, self.moments, self.precision].iter().any(|a| Some(a.len()) != square) {
            return Err(Error::invalid("covariance, moments and precision must be square, as long as theta"));
        }
        Ok(m)
    }
}

/// Learn from a release.
///
/// # Errors
/// If lengths do not fit, or numbers are so large that a result is not finite.
pub fn step(before: Before<'_>, released: Released<'_>, rule: Rule) -> Result<After> {
    let (known, m) = (before.checked()?, released.gradient.len());
    let squares = [released.moments, released.whiten, released.typical];
    if known + released.start.len() != m || squares.iter().any(|a| Some(a.len()) != m.checked_mul(m)) {
        return Err(Error::invalid(
            "moments, whiten and typical must be square, with a row for the constant, each column known and each new one",
        ));
    }
    let unit = |i: usize| if i == 0 { rule.one } else { 1.0 };
    let (moments, precision) = joined(before, released, rule, known, m)?;
    let h = drawn(&moments, &precision, released.typical, rule, m)?;
    // Prior: what is known, and new coefficients about their prior means.
    let (mut now, mut p): (Vec<f64>, Vec<f64>) = (zeros(m)?, zeros(m * m)?);
    (0..m).for_each(|i| p[i * m + i] = rule.doubt);
    for i in 0..known {
        now[i] = before.theta[i] / unit(i);
        for j in 0..known {
            p[i * m + j] = before.covariance[i * known + j] / (unit(i) * unit(j));
        }
    }
    let mut start = copied(&now)?;
    start[known..].copy_from_slice(released.start);
    // The step.
    let mut f = product(released.whiten, &h, m)?;
    f.iter_mut().for_each(|x| *x *= rule.gain);
    let seen = product(&f, &p, m)?;
    let mut spread = product(&seen, &transposed(&f, m)?, m)?;
    (0..m).for_each(|i| spread[i * m + i] += rule.noise);
    let mut gain = copied(&seen)?;
    solve(&mut spread, &mut gain, m)?;
    let gain = transposed(&gain, m)?;
    let ahead = |i: usize| (0..m).map(|j| f[i * m + j] * (start[j] - now[j])).sum::<f64>();
    let mut surprise: Vec<f64> = with_room(m)?;
    surprise.extend((0..m).map(|i| released.gradient[i] - ahead(i)));
    let mut theta = start;
    for (theta, row) in theta.iter_mut().zip(gain.chunks_exact(m)) {
        *theta += row.iter().zip(&surprise).map(|(x, y)| x * y).sum::<f64>();
    }
    let learned = product(&gain, &seen, m)?;
    p.iter_mut().zip(&learned).for_each(|(p, less)| *p -= less);
    for i in 0..m {
        for j in 0..i {
            let middle = (p[i * m + j] + p[j * m + i]) / 2.0;
            (p[i * m + j], p[j * m + i]) = (middle, middle);
        }
        p[i * m + i] += if i == 0 { rule.drift_of_one } else { rule.drift };
    }
    if !theta.iter().chain(&p).all(|x| x.is_finite()) {
        return Err(Error::invalid("released numbers must be so small that a step from them is finite"));
    }
    let (keep, found) = kept(&theta, &p, known, rule)?;
    let stays = |i: usize| if keep[i] { theta[i] } else { 0.0 };
    let mut explained = 0.0;
    for i in 0..m {
        let moved = (0..m).map(|j| h[i * m + j] * (stays(j) - now[j])).sum::<f64>();
        explained += (stays(i) - now[i]) * moved;
    }
    let unknown = p.iter().zip(&h).map(|(x, y)| x * y).sum();
    let places = || (0..m).filter(|i| keep[*i]);
    let square = |of: &dyn Fn(usize, usize) -> f64| -> Result<Vec<f64>> {
        let mut out = with_room(m * m)?;
        out.extend(places().flat_map(|i| places().map(move |j| of(i, j))));
        Ok(out)
    };
    let mut coefficients = with_room(m)?;
    coefficients.extend(places().map(|i| theta[i] * unit(i)));
    Ok(After {
        found,
        theta: coefficients,
        covariance: square(&|i, j| p[i * m + j] * (unit(i) * unit(j)))?,
        moments: square(&|i, j| moments[i * m + j] / (unit(i) * unit(j)))?,
        precision: square(&|i, j| precision[i * m + j])?,
        explained,
        unknown,
        keep,
    })
}

/// Second moments that were known and those that are new, by their precisions; and the precisions of both together.
fn joined(
    before: Before<'_>,
    released: Released<'_>,
    rule: Rule,
    known: usize,
    m: usize,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let (mut moments, mut precision): (Vec<f64>, Vec<f64>) = (zeros(m * m)?, zeros(m * m)?);
    let unit = |i: usize| if i == 0 { rule.one } else { 1.0 };
    for i in 0..m {
        for j in 0..m {
            let (mut sum, mut sure) = (0.0, 0.0);
            if i < known && j < known {
                sure = before.precision[i * known + j];
                sum = before.moments[i * known + j] * (unit(i) * unit(j)) * sure;
            }
            let all = sure + rule.weight;
            moments[i * m + j] = (sum + released.moments[i * m + j] * rule.weight) / all;
            precision[i * m + j] = all;
        }
    }
    moments[0] = rule.one * rule.one;
    Ok((moments, precision))
}

/// H.
fn drawn(moments: &[f64], precision: &[f64], typical: &[f64], rule: Rule, m: usize) -> Result<Vec<f64>> {
    let mut h = with_room(m * m)?;
    h.extend(moments.iter().zip(precision).zip(typical).enumerate().map(
        |(place, ((moment, sure), typical))| {
            let other = 1.0 / sure.max(rule.faint) + rule.sampling;
            let trust = if place == 0 { 1.0 } else { rule.spread / (rule.spread + other) };
            trust * moment + (1.0 - trust) * typical
        },
    ));
    raised(&h, rule.smallest, m)
}

/// Which of all stay, and how many new ones stay and stand out.
fn kept(theta: &[f64], p: &[f64], known: usize, rule: Rule) -> Result<(Vec<bool>, usize)> {
    let m = theta.len();
    let deviation = |i: usize| p[i * m + i].max(0.0).sqrt();
    let mut keep = with_room(m)?;
    keep.extend((0..m).map(|i| i == 0 || theta[i].abs() >= rule.prune * deviation(i)));
    // The largest stays, whatever is not known of it; of equal ones the first.
    let larger = |one: usize, two: usize| if theta[two].abs() > theta[one].abs() { two } else { one };
    if let Some(largest) = (1..m).reduce(larger) {
        keep[largest] = true;
    }
    let mut order: Vec<usize> = with_room(m)?;
    order.extend((1..m).filter(|i| keep[*i]));
    order.sort_by(|one, two| theta[*two].abs().total_cmp(&theta[*one].abs()));
    order.iter().skip(rule.most).for_each(|i| keep[*i] = false);
    let stands_out = |i: &usize| keep[*i] && theta[*i].abs() >= rule.stand_out * deviation(*i);
    let found = (known..m).filter(stands_out).count();
    Ok((keep, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule {
        one: 1.0,
        weight: 1e6,
        spread: 0.05,
        sampling: 0.0,
        faint: 1e-12,
        smallest: 0.15,
        gain: 1.0,
        noise: 1e-4,
        doubt: 0.25,
        drift_of_one: 0.0,
        drift: 0.0,
        prune: 0.8,
        stand_out: 2.0,
        most: 3,
    };

    fn identity(m: usize) -> Vec<f64> {
        (0..m * m).map(|i| f64::from(u8::from(i % (m + 1) == 0))).collect()
    }

    /// A step from nothing to the coefficients of a gradient, with columns that have nothing in common.
    fn from_nothing(gradient: &[f64], rule: Rule) -> Result<After> {
        let (m, one) = (gradient.len(), [1.0]);
        let moments = identity(m);
        let before = Before { theta: &[0.0], covariance: &one, moments: &one, precision: &[0.0] };
        let start = vec![0.0; m - 1];
        let released =
            Released { gradient, moments: &moments, start: &start, whiten: &moments, typical: &moments };
        step(before, released, rule)
    }

    #[test]
    fn a_certain_gradient_is_believed_and_small_columns_go() {
        let after = from_nothing(&[0.2, 1.0, 0.0005, -0.5], RULE).expect("valid");
        assert_eq!((after.keep, after.found), (vec![true, true, false, true], 2));
        for (found, expected) in after.theta.iter().zip([0.2, 1.0, -0.5]) {
            assert!((found - expected).abs() < 1e-3);
        }
        assert_eq!([after.covariance.len(), after.moments.len(), after.precision.len()], [9; 3]);
        assert!((after.explained - 1.29).abs() < 1e-2 && after.unknown < 1e-3);
    }

    #[test]
    fn at_most_so_many_stay_and_the_largest_always_does() {
        let after = from_nothing(&[0.0, 0.3, -0.9, 0.5, 0.4], Rule { most: 2, ..RULE }).expect("valid");
        assert_eq!(after.keep, [true, false, true, true, false]);
        let noisy = Rule { noise: 1e6, ..RULE };
        let after = from_nothing(&[0.0, 0.3, 0.9, 0.3], noisy).expect("valid");
        assert_eq!((after.keep, after.found), (vec![true, false, true, false], 0));
        // Nothing stands out, and equal ones are not told apart: the first.
        let after = from_nothing(&[0.0, 0.3, 0.3], noisy).expect("valid");
        assert_eq!(after.keep, [true, true, false]);
    }

    #[test]
    fn lengths_that_do_not_fit_and_numbers_that_are_not_finite_are_refused() {
        let (one, two) = ([1.0], identity(2));
        let before = Before { theta: &one, covariance: &one, moments: &one, precision: &one };
        let released =
            Released { gradient: &[1.0, 1.0], moments: &two, start: &one, whiten: &two, typical: &two };
        assert!(step(before, released, RULE).is_ok());
        for wrong in [
            Before { theta: &[], ..before },
            Before { covariance: &two, ..before },
            Before { moments: &[], ..before },
            Before { precision: &two, ..before },
        ] {
            assert!(step(wrong, released, RULE).is_err());
        }
        for wrong in [
            Released { gradient: &one, ..released },
            Released { moments: &one, ..released },
            Released { start: &two, ..released },
            Released { whiten: &one, ..released },
            Released { typical: &one, ..released },
            Released { gradient: &[f64::NAN, 0.0], ..released },
            Released { moments: &[f64::NAN; 4], ..released },
        ] {
            assert!(step(before, wrong, RULE).is_err());
        }
    }
}
