//! Bindings of what a fit that knows public columns asks of rows.

use fliphat_core::private::gradient::Plan;
use fliphat_core::private::relative::numbers::{self, Ruler};
use fliphat_core::private::relative::pass::{self, Kept, Public};
use fliphat_core::private::relative::settled::{self, Measure, Settled};
use fliphat_core::private::relative::shifted::{self, Moved};
use fliphat_core::private::relative::support;
use fliphat_core::runtime::error::Result;
use fliphat_core::runtime::memory::with_room;
use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1,
    PyReadwriteArray2,
};
use pyo3::prelude::*;

use crate::matrix::{AnyRows, InOrder, in_order_mut, with_rows};
use crate::private::gradient::loss_named;
use crate::runtime::{Raised, level};

/// A negative column becomes one that is out of every range.
fn positions(columns: &[i64]) -> Result<Vec<usize>> {
    let mut positions = with_room(columns.len())?;
    positions.extend(columns.iter().map(|column| usize::try_from(*column).unwrap_or(usize::MAX)));
    Ok(positions)
}

/// Write columns of all rows into `out`, from its column `first` on.
#[pyfunction]
#[pyo3(signature = (rows, columns, units, out, first, threads=None, block_rows=None))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn gather_columns<'py>(
    py: Python<'py>,
    rows: AnyRows<'py>,
    columns: PyReadonlyArray1<'py, i64>,
    units: Option<PyReadonlyArray1<'py, f64>>,
    mut out: PyReadwriteArray2<'py, f64>,
    first: usize,
    threads: Option<usize>,
    block_rows: Option<usize>,
) -> PyResult<()> {
    let columns = columns.as_slice()?;
    let units = units.as_ref().map(|units| units.as_slice()).transpose()?;
    let width = out.as_array().ncols();
    let out = in_order_mut(&mut out)?;
    let plan = Plan { threads, block_rows, ..Plan::default() };
    let done = with_rows!(rows, |rows| py
        .detach(|| { support::gather_columns(&rows, &positions(columns)?, units, out, width, first, plan) }));
    Ok(done.map_err(Raised::from)?)
}

/// Integer sums of gradients relative to public columns; columns and residuals are written into `out` and
/// `residuals`.
#[pyfunction]
#[pyo3(signature = (
    rows, y, columns, weights, shift, one, units, loss, range, clip, out, residuals, present=None, threads=None,
    block_rows=None, simd=None
))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn relative_gradient<'py>(
    py: Python<'py>,
    rows: AnyRows<'py>,
    y: PyReadonlyArray1<'py, f64>,
    columns: PyReadonlyArray1<'py, i64>,
    weights: PyReadonlyArray1<'py, f64>,
    shift: Option<PyReadonlyArray1<'py, f64>>,
    one: f64,
    units: Option<PyReadonlyArray1<'py, f64>>,
    loss: &str,
    range: Option<(f64, f64)>,
    clip: f64,
    mut out: PyReadwriteArray2<'py, f64>,
    mut residuals: PyReadwriteArray1<'py, f64>,
    present: Option<PyReadonlyArray1<'py, u8>>,
    threads: Option<usize>,
    block_rows: Option<usize>,
    simd: Option<&str>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (y, columns, weights) = (y.as_slice()?, columns.as_slice()?, weights.as_slice()?);
    let shift = shift.as_ref().map(|shift| shift.as_slice()).transpose()?;
    let units = units.as_ref().map(|units| units.as_slice()).transpose()?;
    let present = present.as_ref().map(|flags| flags.as_slice()).transpose()?;
    let width = out.as_array().ncols();
    let kept = Kept { support: in_order_mut(&mut out)?, width, residuals: residuals.as_slice_mut()? };
    let (loss, plan) = (loss_named(loss)?, Plan { threads, block_rows, level: level(simd)? });
    let sums = with_rows!(rows, |rows| py.detach(|| {
        let columns = positions(columns)?;
        let public = Public { one, columns: &columns, weights, shift, units, loss, range, clip };
        pass::relative_sums(&rows, y, present, public, kept, plan)
    }));
    Ok(PyArray1::from_vec(py, sums.map_err(Raised::from)?))
}

/// Integer sums of gradients less a shift of each row.
#[pyfunction]
#[pyo3(signature = (
    rows, residuals, clip, shifts=None, units=None, present=None, threads=None, block_rows=None, simd=None
))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn shifted_gradient<'py>(
    py: Python<'py>,
    rows: AnyRows<'py>,
    residuals: PyReadonlyArray1<'py, f64>,
    clip: f64,
    shifts: Option<PyReadonlyArray1<'py, f64>>,
    units: Option<PyReadonlyArray1<'py, f64>>,
    present: Option<PyReadonlyArray1<'py, u8>>,
    threads: Option<usize>,
    block_rows: Option<usize>,
    simd: Option<&str>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let residuals = residuals.as_slice()?;
    let shifts = shifts.as_ref().map(|shifts| shifts.as_slice()).transpose()?;
    let units = units.as_ref().map(|units| units.as_slice()).transpose()?;
    let present = present.as_ref().map(|flags| flags.as_slice()).transpose()?;
    let plan = Plan { threads, block_rows, level: level(simd)? };
    let moved = Moved { residuals, shifts, units, clip, present, first: 0 };
    let sums = with_rows!(rows, |rows| py.detach(|| shifted::shifted_sums(&rows, moved, plan)));
    Ok(PyArray1::from_vec(py, sums.map_err(Raised::from)?))
}

/// Gradient, moments and size.
type SettledTuple<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray2<i64>>, i64);

/// Integer sums of gradients in coordinates of their own, second moments and sizes of residuals.
#[pyfunction]
#[pyo3(signature = (
    rows, columns, support, residuals, whiten, clip, radius, scale, cap, units=None, present=None, threads=None,
    block_rows=None, simd=None
))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn settled_sums<'py>(
    py: Python<'py>,
    rows: AnyRows<'py>,
    columns: PyReadonlyArray1<'py, i64>,
    support: PyReadonlyArray2<'py, f64>,
    residuals: PyReadonlyArray1<'py, f64>,
    whiten: PyReadonlyArray2<'py, f64>,
    clip: f64,
    radius: i64,
    scale: f64,
    cap: f64,
    units: Option<PyReadonlyArray1<'py, f64>>,
    present: Option<PyReadonlyArray1<'py, u8>>,
    threads: Option<usize>,
    block_rows: Option<usize>,
    simd: Option<&str>,
) -> PyResult<SettledTuple<'py>> {
    let columns = columns.as_slice()?;
    let units = units.as_ref().map(|units| units.as_slice()).transpose()?;
    let present = present.as_ref().map(|flags| flags.as_slice()).transpose()?;
    let (filled, width) = (support.as_array().ncols(), whiten.as_array().ncols());
    let (support, residuals, whiten) = (support.in_order()?, residuals.as_slice()?, whiten.in_order()?);
    let plan = Plan { threads, block_rows, level: level(simd)? };
    let sums = with_rows!(rows, |rows| py.detach(|| {
        let columns = positions(columns)?;
        let settled = Settled { support, filled, columns: &columns, units, residuals, present };
        settled::settled_sums(&rows, settled, Measure { whiten, clip, radius, scale, cap }, plan)
    }));
    let sums = sums.map_err(Raised::from)?;
    let moments = PyArray1::from_vec(py, sums.moments).reshape([width, width])?;
    Ok((PyArray1::from_vec(py, sums.gradient), moments, sums.size))
}

/// Integer sums of three numbers of whole rows.
#[pyfunction]
#[pyo3(signature = (rows, size, octaves, units=None, present=None, threads=None, block_rows=None))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn row_numbers<'py>(
    py: Python<'py>,
    rows: AnyRows<'py>,
    size: f64,
    octaves: f64,
    units: Option<PyReadonlyArray1<'py, f64>>,
    present: Option<PyReadonlyArray1<'py, u8>>,
    threads: Option<usize>,
    block_rows: Option<usize>,
) -> PyResult<[i64; 3]> {
    let units = units.as_ref().map(|units| units.as_slice()).transpose()?;
    let present = present.as_ref().map(|flags| flags.as_slice()).transpose()?;
    let plan = Plan { threads, block_rows, ..Plan::default() };
    let ruler = Ruler { size, octaves, units };
    let sums = with_rows!(rows, |rows| py.detach(|| numbers::row_numbers(&rows, ruler, present, plan)));
    Ok(sums.map_err(Raised::from)?)
}
