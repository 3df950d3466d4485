//! Bindings of the private regression.
//!
//! `door_seed` and `noiseless` are the test door: with either, nothing is private. `fliphat.kernels.niht` never
//! passes them.

use fliphat_core::private::gradient::{Plan, Rewards, RowBlocks};
use fliphat_core::private::niht::{Settings, Step, Threshold, niht};
use fliphat_core::public::theta::Theta;
use fliphat_core::runtime::error::Result;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::matrix::{AnyRows, with_rows};
use crate::noise::door::with_noise;
use crate::noise::release::peeler;
use crate::private::gradient::loss_named;
use crate::private::niht_from_sums::require_sums_of_rows;
use crate::runtime::Raised;

/// Public parameters of a private fit, as Python passes them.
#[pyclass(frozen, module = "fliphat._native")]
pub(crate) struct FitSettings {
    pub(crate) settings: Settings,
}

#[pymethods]
impl FitSettings {
    #[new]
    #[pyo3(signature = (
        *, sparsity, iterations, step_size, l1_radius, clip, reward_clip, loss,
        mechanism, pick_scale, value_noise, value_scale, noiseless=false
    ))]
    #[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
    fn new(
        sparsity: usize,
        iterations: usize,
        step_size: f64,
        l1_radius: f64,
        clip: f64,
        reward_clip: f64,
        loss: &str,
        mechanism: &str,
        pick_scale: u64,
        value_noise: &str,
        value_scale: u64,
        noiseless: bool,
    ) -> PyResult<Self> {
        let threshold = if noiseless {
            Threshold::NotPrivate
        } else {
            let peeler = peeler(mechanism, pick_scale, value_noise, value_scale).map_err(Raised::from)?;
            Threshold::Private(peeler)
        };
        let loss = loss_named(loss)?;
        Ok(FitSettings {
            settings: Settings {
                sparsity,
                iterations,
                step_size,
                l1_radius,
                clip,
                reward_clip,
                loss,
                threshold,
            },
        })
    }
}

/// Columns and values of a sparse vector, in Python.
type SparseVector<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);

/// A public estimate and its past, on their way to Python: columns and values of each iterate.
type Iterates = Vec<(Vec<usize>, Vec<f64>)>;

fn fit<R: RowBlocks>(
    rows: &R,
    rewards: Rewards<'_>,
    start: Theta,
    settings: &Settings,
    threads: Option<usize>,
    door: Option<(u64, u64)>,
) -> Result<Iterates> {
    let plan = Plan { threads, ..Plan::default() };
    let mut iterates = Iterates::new();
    let keep = |theta: &Theta| iterates.push((theta.support().to_vec(), theta.values().to_vec()));
    with_noise!(door, |noise| niht(rows, rewards, start, settings, noise, plan, keep))?;
    Ok(iterates)
}

/// Fit privately; every iterate is returned, as columns and values.
#[pyfunction]
#[pyo3(signature = (rows, y, start, settings, present=None, threads=None, door=None))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn niht_fit<'py>(
    py: Python<'py>,
    rows: AnyRows<'py>,
    y: PyReadonlyArray1<'py, f64>,
    start: PyReadonlyArray1<'py, f64>,
    settings: &FitSettings,
    present: Option<PyReadonlyArray1<'py, u8>>,
    threads: Option<usize>,
    door: Option<(u64, u64)>,
) -> PyResult<Vec<SparseVector<'py>>> {
    let present = present.as_ref().map(|flags| flags.as_slice()).transpose()?;
    let (y, start, settings) = (y.as_slice()?, start.as_slice()?, &settings.settings);
    let iterates = with_rows!(rows, |rows| py.detach(|| {
        let rewards = Rewards::new(y, present)?;
        fit(&rows, rewards, Theta::from_dense(start)?, settings, threads, door)
    }))
    .map_err(Raised::from)?;
    let to_arrays = |(columns, values): (Vec<usize>, Vec<f64>)| {
        let columns = columns.into_iter().map(|column| column as i64).collect();
        (PyArray1::from_vec(py, columns), PyArray1::from_vec(py, values))
    };
    Ok(iterates.into_iter().map(to_arrays).collect())
}

/// One iteration from sums computed elsewhere: adds the noise, once.
#[pyfunction]
#[pyo3(signature = (theta, sums, rows, settings, door=None))]
pub(crate) fn niht_step<'py>(
    py: Python<'py>,
    theta: PyReadonlyArray1<'py, f64>,
    sums: PyReadonlyArray1<'py, i64>,
    rows: usize,
    settings: &FitSettings,
    door: Option<(u64, u64)>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (theta, sums, settings) = (theta.as_slice()?, sums.as_slice()?, &settings.settings);
    let step = || -> Result<Theta> {
        require_sums_of_rows(sums, rows)?;
        let mut step = Step::new(settings, rows, sums.len())?;
        let theta = fliphat_core::private::niht::inside_ball(Theta::from_dense(theta)?, settings.l1_radius)?;
        with_noise!(door, |noise| step.take(&theta, sums.to_vec(), noise))
    };
    let next = py.detach(step).map_err(Raised::from)?;
    Ok(PyArray1::from_vec(py, next.to_dense()))
}
