//! Bindings of statistics of rows cut to an l2 ball.

use fliphat_core::private::ball::{self, ArmRows, BallMap, Groups};
use fliphat_core::private::board;
use fliphat_core::private::gradient::Plan;
use fliphat_core::runtime::error::Result;
use fliphat_core::runtime::memory::with_room;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::matrix::{AnyRows, with_rows};
use crate::runtime::{Raised, level};

type Sums<'py> = Bound<'py, PyArray1<i64>>;

/// A negative column becomes one that is out of every range.
fn map(columns: &[i64], scales: &[f64], one: Option<f64>, radius: i64, dimension: usize) -> Result<BallMap> {
    let mut positions = with_room(columns.len())?;
    positions.extend(columns.iter().map(|column| usize::try_from(*column).unwrap_or(usize::MAX)));
    BallMap::new(&positions, scales, one, radius, dimension)
}

/// Integer sums of second moments, row after row of the result.
#[pyfunction]
#[pyo3(signature = (
    rows, columns, scales, one, radius, present=None, threads=None, block_rows=None, simd=None, centers=None
))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn second_moments<'py>(
    py: Python<'py>,
    rows: AnyRows<'py>,
    columns: PyReadonlyArray1<'py, i64>,
    scales: PyReadonlyArray1<'py, f64>,
    one: Option<f64>,
    radius: i64,
    present: Option<PyReadonlyArray1<'py, u8>>,
    threads: Option<usize>,
    block_rows: Option<usize>,
    simd: Option<&str>,
    centers: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Sums<'py>> {
    let (columns, scales) = (columns.as_slice()?, scales.as_slice()?);
    let present = present.as_ref().map(|flags| flags.as_slice()).transpose()?;
    let centers = centers.as_ref().map(|centers| centers.as_slice()).transpose()?;
    let plan = Plan { threads, block_rows, level: level(simd)? };
    let sums = with_rows!(rows, |rows| py.detach(|| {
        let map = map(columns, scales, one, radius, rows.columns())?;
        let map = if let Some(centers) = centers { map.with_centers(centers)? } else { map };
        ball::second_moments(&rows, &map, present, plan)
    }));
    Ok(PyArray1::from_vec(py, sums.map_err(Raised::from)?))
}

/// Integer sums of gradients cut to a ball, arm after arm.
#[pyfunction]
#[pyo3(signature = (
    rows, residuals, arms, count, columns, scales, one, radius, present=None, threads=None, block_rows=None,
    simd=None
))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn ball_gradient<'py>(
    py: Python<'py>,
    rows: AnyRows<'py>,
    residuals: PyReadonlyArray1<'py, f64>,
    arms: PyReadonlyArray1<'py, i64>,
    count: usize,
    columns: PyReadonlyArray1<'py, i64>,
    scales: PyReadonlyArray1<'py, f64>,
    one: Option<f64>,
    radius: i64,
    present: Option<PyReadonlyArray1<'py, u8>>,
    threads: Option<usize>,
    block_rows: Option<usize>,
    simd: Option<&str>,
) -> PyResult<Sums<'py>> {
    let (columns, scales) = (columns.as_slice()?, scales.as_slice()?);
    let (residuals, group_of) = (residuals.as_slice()?, arms.as_slice()?);
    let present = present.as_ref().map(|flags| flags.as_slice()).transpose()?;
    let plan = Plan { threads, block_rows, level: level(simd)? };
    let groups = Groups { residuals, group_of, count, present };
    let sums = with_rows!(rows, |rows| py.detach(|| {
        let map = map(columns, scales, one, radius, rows.columns())?;
        ball::ball_gradient(&rows, groups, &map, plan)
    }));
    Ok(PyArray1::from_vec(py, sums.map_err(Raised::from)?))
}

/// Integer sums of what a linear model of each arm needs: arm after arm, then both halves of all rows.
#[pyfunction]
#[pyo3(signature = (
    rows, rewards, arms, count, centers, scales, radius, halves, squares, present=None, threads=None,
    block_rows=None, simd=None
))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn arm_sums<'py>(
    py: Python<'py>,
    rows: AnyRows<'py>,
    rewards: PyReadonlyArray1<'py, f64>,
    arms: PyReadonlyArray1<'py, i64>,
    count: usize,
    centers: PyReadonlyArray1<'py, f64>,
    scales: PyReadonlyArray1<'py, f64>,
    radius: i64,
    halves: bool,
    squares: Option<i64>,
    present: Option<PyReadonlyArray1<'py, u8>>,
    threads: Option<usize>,
    block_rows: Option<usize>,
    simd: Option<&str>,
) -> PyResult<Sums<'py>> {
    let (centers, scales) = (centers.as_slice()?, scales.as_slice()?);
    let (rewards, group_of) = (rewards.as_slice()?, arms.as_slice()?);
    let present = present.as_ref().map(|flags| flags.as_slice()).transpose()?;
    let plan = Plan { threads, block_rows, level: level(simd)? };
    let range = board::Range::new(-0.5, 0.5).map_err(Raised::from)?;
    let asked = ArmRows { rewards, range, group_of, count, present, halves, squares, board: false };
    let sums = with_rows!(rows, |rows| py.detach(|| {
        // The first columns of a row; what is behind them is not read.
        let mut columns = with_room(scales.len())?;
        columns.extend(0..scales.len());
        let map = BallMap::new(&columns, scales, None, radius, rows.columns())?.with_centers(centers)?;
        ball::arm_sums(&rows, asked, &map, plan)
    }));
    Ok(PyArray1::from_vec(py, sums.map_err(Raised::from)?))
}
