//! Bindings of the private regression.
//!
//! With `seeded` (a seed and a stream) the noise is predictable, and with `noiseless` there is none: nothing is
//! private then. `fliphat.kernels.niht` never passes either.

use fliphat_core::private::gradient::{Plan, Rewards, RowBlocks};
use fliphat_core::private::niht::{Settings, Threshold, niht, niht_from_sums};
use fliphat_core::public::theta::Theta;
use fliphat_core::runtime::error::Result;
use fliphat_core::runtime::memory::copied;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::matrix::{AnyRows, with_rows};
use crate::noise::release::peeler;
use crate::noise::seeded::with_noise;
use crate::private::gradient::loss_named;
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
    seeded: Option<(u64, u64)>,
) -> Result<Iterates> {
    let plan = Plan { threads, ..Plan::default() };
    let mut iterates = Iterates::new();
    let keep = |theta: &Theta| iterates.push((theta.support().to_vec(), theta.values().to_vec()));
    with_noise!(seeded, |noise| niht(rows, rewards, start, settings, noise, plan, keep))?;
    Ok(iterates)
}

/// Fit privately; every iterate is returned, as columns and values.
#[pyfunction]
#[pyo3(signature = (rows, y, start, settings, present=None, threads=None, seeded=None))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn niht_fit<'py>(
    py: Python<'py>,
    rows: AnyRows<'py>,
    y: PyReadonlyArray1<'py, f64>,
    start: PyReadonlyArray1<'py, f64>,
    settings: &FitSettings,
    present: Option<PyReadonlyArray1<'py, u8>>,
    threads: Option<usize>,
    seeded: Option<(u64, u64)>,
) -> PyResult<Vec<SparseVector<'py>>> {
    let present = present.as_ref().map(|flags| flags.as_slice()).transpose()?;
    let (y, start, settings) = (y.as_slice()?, start.as_slice()?, &settings.settings);
    let iterates = with_rows!(rows, |rows| py.detach(|| {
        let rewards = Rewards::new(y, present)?;
        fit(&rows, rewards, Theta::from_dense(start)?, settings, threads, seeded)
    }))
    .map_err(Raised::from)?;
    let to_arrays = |(columns, values): (Vec<usize>, Vec<f64>)| {
        let columns = columns.into_iter().map(|column| column as i64).collect();
        (PyArray1::from_vec(py, columns), PyArray1::from_vec(py, values))
    };
    Ok(iterates.into_iter().map(to_arrays).collect())
}

/// Fit from the sums that `sums_at(columns, values)` returns for each estimate; same bits as `niht_fit` on the
/// rows themselves. Only the last estimate is returned, so an exception of `sums_at` leaves none behind.
#[pyfunction]
#[pyo3(signature = (sums_at, start, rows, settings, seeded=None))]
pub(crate) fn niht_fit_sums<'py>(
    py: Python<'py>,
    sums_at: Py<PyAny>,
    start: PyReadonlyArray1<'py, f64>,
    rows: usize,
    settings: &FitSettings,
    seeded: Option<(u64, u64)>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (start, settings) = (start.as_slice()?, &settings.settings);
    let sums_at = |theta: &Theta| -> std::result::Result<Vec<i64>, Raised> {
        Python::attach(|py| {
            let columns = theta.support().iter().map(|column| *column as i64).collect();
            let columns = PyArray1::<i64>::from_vec(py, columns);
            let values = PyArray1::from_slice(py, theta.values());
            let sums = sums_at.bind(py).call1((columns, values))?;
            let sums: PyReadonlyArray1<'_, i64> = sums.extract()?;
            Ok(copied(sums.as_slice().map_err(PyErr::from)?)?)
        })
    };
    let fit = || -> std::result::Result<Vec<f64>, Raised> {
        let start = Theta::from_dense(start)?;
        let theta =
            with_noise!(seeded, |noise| niht_from_sums(sums_at, rows, start, settings, noise, |_| ()))?;
        Ok(theta.to_dense()?)
    };
    Ok(PyArray1::from_vec(py, py.detach(fit)?))
}
