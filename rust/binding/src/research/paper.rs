//! Binding of the float gradient that the paper's algorithms read: not private.

use fliphat_core::public::theta::Theta;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::matrix::{Matrix, with_dense};
use crate::runtime::Raised;

/// The gradient of the mean squared loss in floats; not private.
#[pyfunction]
pub(crate) fn squared_loss_gradient<'py>(
    py: Python<'py>,
    rows: Matrix<'py>,
    y: PyReadonlyArray1<'py, f64>,
    theta: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (y, theta) = (y.as_slice()?, theta.as_slice()?);
    let gradient = with_dense!(rows, |rows| py.detach(|| {
        fliphat_core::research::paper::squared_loss_gradient(&rows, y, &Theta::from_dense(theta)?)
    }))
    .map_err(Raised::from)?;
    Ok(PyArray1::from_vec(py, gradient))
}
