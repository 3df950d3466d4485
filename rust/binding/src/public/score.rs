//! Bindings of scoring and arm selection.

use fliphat_core::public::score;
use fliphat_core::public::theta::Theta;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::matrix::{AnyRows, with_rows};
use crate::runtime::Raised;

/// Score of every row.
#[pyfunction]
pub(crate) fn scores<'py>(
    py: Python<'py>,
    contexts: AnyRows<'py>,
    theta: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let theta = theta.as_slice()?;
    let scores = with_rows!(contexts, |rows| py.detach(|| score::scores(&rows, &Theta::from_dense(theta)?)));
    Ok(PyArray1::from_vec(py, scores.map_err(Raised::from)?))
}

/// Best arm of each round of `arms` rows; one random word a round.
#[pyfunction]
pub(crate) fn select_arms<'py>(
    py: Python<'py>,
    contexts: AnyRows<'py>,
    arms: usize,
    theta: PyReadonlyArray1<'py, f64>,
    words: PyReadonlyArray1<'py, u64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (theta, words) = (theta.as_slice()?, words.as_slice()?);
    let chosen = with_rows!(contexts, |rows| {
        py.detach(|| score::select_arms(&rows, arms, &Theta::from_dense(theta)?, words))
    });
    Ok(PyArray1::from_vec(py, chosen.map_err(Raised::from)?))
}
