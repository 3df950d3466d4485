//! Bindings of scoring and arm selection.

use fliphat_core::gradient::Theta;
use fliphat_core::select;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{Indices, Matrix, Values, with_csr, with_dense};
use crate::errors::Raised;

/// Score of every dense row.
#[pyfunction]
pub(crate) fn scores_dense<'py>(
    py: Python<'py>,
    contexts: Matrix<'py>,
    theta: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let theta = theta.as_slice()?;
    let scores =
        with_dense!(contexts, |rows| py.detach(|| select::scores(&rows, &Theta::from_dense(theta)?)));
    Ok(PyArray1::from_vec(py, scores.map_err(Raised::from)?))
}

/// Score of every sparse row.
#[pyfunction]
pub(crate) fn scores_csr<'py>(
    py: Python<'py>,
    indptr: Indices<'py>,
    indices: Indices<'py>,
    data: Values<'py>,
    columns: usize,
    theta: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let theta = theta.as_slice()?;
    let scores = with_csr!(indptr, indices, data, columns, |rows| {
        py.detach(|| select::scores(&rows, &Theta::from_dense(theta)?))
    });
    Ok(PyArray1::from_vec(py, scores.map_err(Raised::from)?))
}

/// Best arm of each round of `arms` dense rows; one random word a round.
#[pyfunction]
pub(crate) fn select_arms_dense<'py>(
    py: Python<'py>,
    contexts: Matrix<'py>,
    arms: usize,
    theta: PyReadonlyArray1<'py, f64>,
    words: PyReadonlyArray1<'py, u64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (theta, words) = (theta.as_slice()?, words.as_slice()?);
    let chosen = with_dense!(contexts, |rows| {
        py.detach(|| select::select_arms(&rows, arms, &Theta::from_dense(theta)?, words))
    });
    Ok(PyArray1::from_vec(py, chosen.map_err(Raised::from)?))
}

/// Best arm of each round of `arms` sparse rows; one random word a round.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn select_arms_csr<'py>(
    py: Python<'py>,
    indptr: Indices<'py>,
    indices: Indices<'py>,
    data: Values<'py>,
    columns: usize,
    arms: usize,
    theta: PyReadonlyArray1<'py, f64>,
    words: PyReadonlyArray1<'py, u64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (theta, words) = (theta.as_slice()?, words.as_slice()?);
    let chosen = with_csr!(indptr, indices, data, columns, |rows| {
        py.detach(|| select::select_arms(&rows, arms, &Theta::from_dense(theta)?, words))
    });
    Ok(PyArray1::from_vec(py, chosen.map_err(Raised::from)?))
}
