//! Bindings of the clipped integer gradient.

use fliphat_core::error::{Error, Result};
use fliphat_core::gradient::{
    CsrRows, DenseRows, Loss, Plan, Rewards, RowBlocks, RowMap, Theta, clipped_sums,
};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{Indices, Matrix, Values, level, with_csr, with_dense};
use crate::errors::Raised;

/// Public arguments of the row map, and how the work is cut up.
struct Settings<'a> {
    y: &'a [f64],
    theta: &'a [f64],
    present: Option<&'a [u8]>,
    clip: f64,
    reward_clip: f64,
    loss: Loss,
    plan: Plan,
}

impl Settings<'_> {
    fn sums<R: RowBlocks>(&self, rows: &R) -> Result<Vec<i64>> {
        let theta = Theta::from_dense(self.theta)?;
        let map = RowMap::new(&theta, self.clip, self.reward_clip, self.loss)?;
        clipped_sums(rows, Rewards::new(self.y, self.present)?, &map, self.plan)
    }
}

pub(crate) fn loss_named(name: &str) -> PyResult<Loss> {
    match name {
        "squared" => Ok(Loss::Squared),
        "logistic" => Ok(Loss::Logistic),
        _ => {
            Err(Raised::from(Error::invalid(format!("loss must be 'squared' or 'logistic', got {name:?}"))))?
        }
    }
}

/// Integer sums of clipped gradients over dense rows.
#[pyfunction]
#[pyo3(signature = (x, y, theta, clip, reward_clip, loss, present=None, threads=None, block_rows=None, simd=None))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn clipped_sums_dense<'py>(
    py: Python<'py>,
    x: Matrix<'py>,
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
    let settings = Settings {
        y: y.as_slice()?,
        theta: theta.as_slice()?,
        present: present.as_ref().map(|flags| flags.as_slice()).transpose()?,
        clip,
        reward_clip,
        loss: loss_named(loss)?,
        plan: Plan { threads, block_rows, level: level(simd)? },
    };
    let sums = with_dense!(x, |rows| py.detach(|| settings.sums(&DenseRows(rows)))).map_err(Raised::from)?;
    Ok(PyArray1::from_vec(py, sums))
}

/// Integer sums of clipped gradients over sparse rows.
#[pyfunction]
#[pyo3(signature = (
    indptr, indices, data, columns, y, theta, clip, reward_clip, loss,
    present=None, threads=None, block_rows=None, simd=None
))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn clipped_sums_csr<'py>(
    py: Python<'py>,
    indptr: Indices<'py>,
    indices: Indices<'py>,
    data: Values<'py>,
    columns: usize,
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
    let settings = Settings {
        y: y.as_slice()?,
        theta: theta.as_slice()?,
        present: present.as_ref().map(|flags| flags.as_slice()).transpose()?,
        clip,
        reward_clip,
        loss: loss_named(loss)?,
        plan: Plan { threads, block_rows, level: level(simd)? },
    };
    let sums = with_csr!(indptr, indices, data, columns, |rows| py.detach(|| settings.sums(&CsrRows(rows))))
        .map_err(Raised::from)?;
    Ok(PyArray1::from_vec(py, sums))
}
