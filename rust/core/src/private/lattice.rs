//! The integer lattice on which an estimate minus its gradient is exact.
//!
//! One lattice unit is the change of a coordinate when one sum changes by one: `unit = step_size * step / n`,
//! `step = clip / 2^15`. In these units the gradient step is a subtraction of integers, so the sensitivity of
//! the result is that of the sums, exactly.

use crate::matrix::scalar::LIMIT;
use crate::runtime::error::{Error, Result};

/// Coordinates stay below `2^62`, so that sums of two of them, and noise, fit an i64.
const REACH: f64 = (1u64 << 62) as f64;

/// A lattice on which no coordinate can overflow.
#[derive(Debug, Clone, Copy)]
pub struct Lattice {
    unit: f64,
}

impl Lattice {
    /// The lattice of a fit on `rows` rows.
    ///
    /// # Errors
    /// If a parameter is not finite and above zero, or `l1_radius / unit + rows * 2^15` is not safely below
    /// `2^62`: a coordinate that wraps would move by far more than the sensitivity.
    pub fn new(rows: usize, step_size: f64, clip: f64, l1_radius: f64) -> Result<Self> {
        for (name, value) in [("step_size", step_size), ("clip", clip), ("l1_radius", l1_radius)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::invalid(format!("{name} must be a finite number above 0, got {value}")));
            }
        }
        if rows == 0 {
            return Err(Error::invalid("X must have at least one row"));
        }
        let unit = step_size * (clip / LIMIT as f64) / rows as f64;
        // The margin covers every rounding on the way, of `unit`, of the quotient and of `place`.
        let reach = (l1_radius / unit + rows as f64 * LIMIT as f64) * (1.0 + 1e-9) + 2.0;
        // The last condition keeps every released point a finite number: refusing one would depend on the noise.
        if !(unit.is_normal() && reach < REACH && (unit * REACH).is_finite()) {
            return Err(Error::invalid(format!(
                "l1_radius / unit + rows * 2**15 must be below 2**62, with unit = step_size * clip / (2**15 * rows); \
                 got l1_radius = {l1_radius}, step_size = {step_size}, clip = {clip}, rows = {rows}"
            )));
        }
        Ok(Lattice { unit })
    }

    /// The lattice point nearest to a public coordinate of an estimate inside the l1 ball.
    pub fn place(&self, coordinate: f64) -> i64 {
        (coordinate / self.unit).round_ties_even() as i64
    }

    /// The coordinate at a released lattice point.
    pub fn value(&self, point: i64) -> f64 {
        point as f64 * self.unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placing_is_within_half_a_unit() {
        let lattice = Lattice::new(1000, 0.5, 2.0, 4.0).expect("small");
        for coordinate in [0.0, 1.0, -3.999, 4.0, 1e-12] {
            let back = lattice.value(lattice.place(coordinate));
            assert!((back - coordinate).abs() <= 0.5 * lattice.value(1) * (1.0 + 1e-9));
        }
    }

    #[test]
    fn what_could_overflow_is_refused() {
        assert!(Lattice::new(10, 1.0, 1.0, 1e13).is_ok());
        assert!(Lattice::new(10, 1.0, 1.0, 1e14).is_err());
        assert!(Lattice::new(1 << 45, 1.0, 1.0, 1.0).is_ok());
        assert!(Lattice::new(1 << 46, 1.0, 1.0, 1.0).is_err());
        assert!(Lattice::new(0, 1.0, 1.0, 1.0).is_err());
        assert!(Lattice::new(10, 1e-300, 1e-20, 1.0).is_err());
        assert!(Lattice::new(10, 1e308, 1.0, 1.0).is_err());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Lattice::new(10, bad, 1.0, 1.0).is_err());
            assert!(Lattice::new(10, 1.0, bad, 1.0).is_err());
            assert!(Lattice::new(10, 1.0, 1.0, bad).is_err());
        }
    }
}
