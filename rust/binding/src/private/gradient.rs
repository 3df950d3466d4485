//! Bindings of the clipped integer gradient.

use fliphat_core::private::gradient::{self, Loss, Plan, Rewards, RowMap};
use fliphat_core::public::theta::Theta;
use fliphat_core::runtime::error::Error;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::matrix::{AnyRows, with_rows};
use crate::private::sums::to_bytes;
use crate::runtime::{Raised, level};

pub(crate) fn loss_named(name: &str) -> PyResult<Loss> {
    match name {
        "squared" => Ok(Loss::Squared),
        "logistic" => Ok(Loss::Logistic),
        _ => {
            Err(Raised::from(Error::invalid(format!("loss must be 'squared' or 'logistic', got {name:?}"))))?
        }
    }
}

/// Integer sums of clipped gradients of a part of all rows, as bytes.
#[pyfunction]
#[pyo3(signature = (rows, y, theta, clip, reward_clip, loss, threads=None))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn partial_gradient<'py>(
    py: Python<'py>,
    rows: AnyRows<'py>,
    y: PyReadonlyArray1<'py, f64>,
    theta: PyReadonlyArray1<'py, f64>,
    clip: f64,
    reward_clip: f64,
    loss: &str,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (y, theta) = (y.as_slice()?, theta.as_slice()?);
    let (loss, plan) = (loss_named(loss)?, Plan { threads, ..Plan::default() });
    let sums = with_rows!(rows, |rows| py.detach(|| {
        let theta = Theta::from_dense(theta)?;
        let map = RowMap::new(&theta, clip, reward_clip, loss)?;
        gradient::clipped_sums(&rows, Rewards::new(y, None)?, &map, plan)
    }));
    Ok(to_bytes(py, &sums.map_err(Raised::from)?))
}

/// Integer sums of clipped gradients.
#[pyfunction]
#[pyo3(signature = (
    rows, y, theta, clip, reward_clip, loss, present=None, threads=None, block_rows=None, simd=None
))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn clipped_sums<'py>(
    py: Python<'py>,
    rows: AnyRows<'py>,
    y: PyReadonlyArray1<'py, f64>,
    theta: PyReadonlyArray1<'py, f64>,
    clip: f64,
    reward_clip: f64,
    loss: &str,
    present: Option<PyReadonlyArray1<'py, u8>>,
    threads: Option<usize>,
    block_rows: Option<usize>,
    simd: Option<&str>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (y, theta) = (y.as_slice()?, theta.as_slice()?);
    let present = present.as_ref().map(|flags| flags.as_slice()).transpose()?;
    let (loss, plan) = (loss_named(loss)?, Plan { threads, block_rows, level: level(simd)? });
    let sums = with_rows!(rows, |rows| py.detach(|| {
        let theta = Theta::from_dense(theta)?;
        let map = RowMap::new(&theta, clip, reward_clip, loss)?;
        gradient::clipped_sums(&rows, Rewards::new(y, present)?, &map, plan)
    }));
    Ok(PyArray1::from_vec(py, sums.map_err(Raised::from)?))
}
