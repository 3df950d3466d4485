//! Binding of the step that a fit learns by.

use fliphat_core::public::kalman::{Before, Released, Rule, step};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::matrix::InOrder;
use crate::runtime::Raised;

/// Which stay, how many were found, coefficients, covariance, moments, precision, what is explained and unknown.
type AfterTuple<'py> = (
    Bound<'py, PyArray1<bool>>,
    usize,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    f64,
    f64,
);

/// Learn from a release; `rule` has the constants in the order of the core's fields.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn kalman_step<'py>(
    py: Python<'py>,
    theta: PyReadonlyArray1<'py, f64>,
    covariance: PyReadonlyArray2<'py, f64>,
    moments: PyReadonlyArray2<'py, f64>,
    precision: PyReadonlyArray2<'py, f64>,
    gradient: PyReadonlyArray1<'py, f64>,
    fresh: PyReadonlyArray2<'py, f64>,
    start: PyReadonlyArray1<'py, f64>,
    whiten: PyReadonlyArray2<'py, f64>,
    typical: PyReadonlyArray2<'py, f64>,
    rule: [f64; 13],
    most: usize,
) -> PyResult<AfterTuple<'py>> {
    let [
        one,
        weight,
        spread,
        sampling,
        faint,
        smallest,
        gain,
        noise,
        doubt,
        drift_of_one,
        drift,
        prune,
        stand_out,
    ] = rule;
    let rule = Rule {
        one,
        weight,
        spread,
        sampling,
        faint,
        smallest,
        gain,
        noise,
        doubt,
        drift_of_one,
        drift,
        prune,
        stand_out,
        most,
    };
    let before = Before {
        theta: theta.as_slice()?,
        covariance: covariance.in_order()?,
        moments: moments.in_order()?,
        precision: precision.in_order()?,
    };
    let released = Released {
        gradient: gradient.as_slice()?,
        moments: fresh.in_order()?,
        start: start.as_slice()?,
        whiten: whiten.in_order()?,
        typical: typical.in_order()?,
    };
    let after = py.detach(|| step(before, released, rule)).map_err(Raised::from)?;
    let m = after.theta.len();
    let square = |values| PyArray1::from_vec(py, values).reshape([m, m]);
    Ok((
        PyArray1::from_vec(py, after.keep),
        after.found,
        PyArray1::from_vec(py, after.theta),
        square(after.covariance)?,
        square(after.moments)?,
        square(after.precision)?,
        after.explained,
        after.unknown,
    ))
}
