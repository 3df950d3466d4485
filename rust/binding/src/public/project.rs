//! Binding of the l1 projection.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::runtime::{Raised, level};

/// Project `v` on the l1 ball of `radius`.
#[pyfunction]
#[pyo3(signature = (v, radius, simd=None))]
pub(crate) fn project_l1<'py>(
    py: Python<'py>,
    v: PyReadonlyArray1<'py, f64>,
    radius: f64,
    simd: Option<&str>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (slice, level) = (v.as_slice()?, level(simd)?);
    let projected = py
        .detach(|| fliphat_core::public::project::project_l1(slice, radius, level))
        .map_err(Raised::from)?;
    Ok(PyArray1::from_vec(py, projected))
}
