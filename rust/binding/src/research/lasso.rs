//! Binding of the Lasso's coordinate descent.

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::matrix::InOrder;
use crate::runtime::Raised;

/// Minimise `w'Gw/2 - c'w + penalty |w|_1`; the weights, full sweeps and the violation left.
#[pyfunction]
pub(crate) fn lasso_fit<'py>(
    py: Python<'py>,
    gram: PyReadonlyArray2<'py, f64>,
    correlations: PyReadonlyArray1<'py, f64>,
    penalty: f64,
    start: PyReadonlyArray1<'py, f64>,
    tolerance: f64,
    most_sweeps: usize,
) -> PyResult<(Bound<'py, PyArray1<f64>>, usize, f64)> {
    let (gram, correlations, start) = (gram.in_order()?, correlations.as_slice()?, start.as_slice()?);
    let fit = py
        .detach(|| {
            fliphat_core::research::lasso::lasso(gram, correlations, penalty, start, tolerance, most_sweeps)
        })
        .map_err(Raised::from)?;
    Ok((PyArray1::from_vec(py, fit.weights), fit.sweeps, fit.violation))
}
