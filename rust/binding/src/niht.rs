//! Bindings of the private regression, and of the paper's.
//!
//! `door_seed` and `noiseless` are the test door: with either, nothing is private. `fliphat.kernels.niht` never
//! passes them.

use fliphat_core::error::Result;
use fliphat_core::gradient::{Plan, Rewards, RowBlocks, Theta};
use fliphat_core::niht::{Settings, Step, Threshold, niht};
use fliphat_core::paper::{FloatRows, PaperSettings, paper_niht};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{AnyRows, with_rows};
use crate::door::with_noise;
use crate::elsewhere::require_sums_of_rows;
use crate::errors::Raised;
use crate::gradient::loss_named;
use crate::noise::peeler;

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
        let theta = fliphat_core::niht::inside_ball(Theta::from_dense(theta)?, settings.l1_radius)?;
        with_noise!(door, |noise| step.take(&theta, sums.to_vec(), noise))
    };
    let next = py.detach(step).map_err(Raised::from)?;
    Ok(PyArray1::from_vec(py, next.to_dense()))
}

/// The paper's fit; not private. Returns the estimate.
#[pyfunction]
#[pyo3(signature = (
    rows, y, start, sparsity, iterations, step_size, l1_radius, reward_clip, noise_scale, present=None, door=None
))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn paper_fit<'py>(
    py: Python<'py>,
    rows: AnyRows<'py>,
    y: PyReadonlyArray1<'py, f64>,
    start: PyReadonlyArray1<'py, f64>,
    sparsity: usize,
    iterations: usize,
    step_size: f64,
    l1_radius: f64,
    reward_clip: f64,
    noise_scale: f64,
    present: Option<PyReadonlyArray1<'py, u8>>,
    door: Option<(u64, u64)>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let settings = PaperSettings { sparsity, iterations, step_size, l1_radius, reward_clip, noise_scale };
    let present = present.as_ref().map(|flags| flags.as_slice()).transpose()?;
    let (y, start) = (y.as_slice()?, start.as_slice()?);
    let theta = with_rows!(rows, |rows| py.detach(|| {
        fit_paper(&rows, Rewards::new(y, present)?, Theta::from_dense(start)?, &settings, door)
    }))
    .map_err(Raised::from)?;
    Ok(PyArray1::from_vec(py, theta.to_dense()))
}

fn fit_paper<R: FloatRows>(
    rows: &R,
    rewards: Rewards<'_>,
    start: Theta,
    settings: &PaperSettings,
    door: Option<(u64, u64)>,
) -> Result<Theta> {
    with_noise!(door, |noise| paper_niht(rows, rewards, start, settings, noise))
}
