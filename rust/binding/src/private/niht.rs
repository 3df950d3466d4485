//! Bindings of the private regression.
//!
//! Without `noise` it is secure. With `noiseless` there is none, and nothing is private then: `fliphat.kernels.niht`
//! passes neither.

use fliphat_core::private::gradient::{Plan, Rewards, RowBlocks};
use fliphat_core::private::niht::{Settings, Threshold, niht, niht_from_sums};
use fliphat_core::public::theta::Theta;
use fliphat_core::runtime::error::Result;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::matrix::{AnyRows, with_rows};
use crate::noise::kinds::{Bits, NoiseKind, with_bits};
use crate::noise::release::peeler;
use crate::private::gradient::loss_named;
use crate::private::sums::integers;
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
    bits: Bits,
) -> Result<Iterates> {
    let plan = Plan { threads, ..Plan::default() };
    let mut iterates = Iterates::new();
    let keep = |theta: &Theta| iterates.push((theta.support().to_vec(), theta.values().to_vec()));
    with_bits!(bits, |noise| niht(rows, rewards, start, settings, noise, plan, keep))?;
    Ok(iterates)
}

/// Fit privately; every iterate is returned, as columns and values.
#[pyfunction]
#[pyo3(signature = (rows, y, start, settings, present=None, threads=None, noise=None))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn niht_fit<'py>(
    py: Python<'py>,
    rows: Bound<'py, PyAny>,
    y: PyReadonlyArray1<'py, f64>,
    start: PyReadonlyArray1<'py, f64>,
    settings: Bound<'py, FitSettings>,
    present: Option<PyReadonlyArray1<'py, u8>>,
    threads: Option<usize>,
    noise: Option<NoiseKind<'py>>,
) -> PyResult<Vec<SparseVector<'py>>> {
    if let Some(NoiseKind::Recording(recording)) = &noise {
        // Copies: the caller may use its memory again.
        let flags = present.as_ref().map(|flags| flags.call_method0("copy")).transpose()?;
        let (y, start) = (y.call_method0("copy")?, start.call_method0("copy")?);
        recording.keep_fit((rows.call_method0("copy")?, y, start, &settings, flags).into_pyobject(py)?);
    }
    let bits = noise.map_or(Bits::Secure, |noise| noise.bits());
    let (rows, settings): (AnyRows<'py>, _) = (rows.extract()?, settings.get());
    let present = present.as_ref().map(|flags| flags.as_slice()).transpose()?;
    let (y, start, settings) = (y.as_slice()?, start.as_slice()?, &settings.settings);
    let iterates = with_rows!(rows, |rows| py.detach(|| {
        let rewards = Rewards::new(y, present)?;
        fit(&rows, rewards, Theta::from_dense(start)?, settings, threads, bits)
    }))
    .map_err(Raised::from)?;
    let to_arrays = |(columns, values): (Vec<usize>, Vec<f64>)| {
        let columns = columns.into_iter().map(|column| column as i64).collect();
        (PyArray1::from_vec(py, columns), PyArray1::from_vec(py, values))
    };
    Ok(iterates.into_iter().map(to_arrays).collect())
}

/// Fit from the sums that `sums_at(columns, values)` returns as bytes for each estimate; same bits as `niht_fit` on
/// the rows themselves. Only the last estimate is returned, so an exception of `sums_at` leaves none behind.
#[pyfunction]
#[pyo3(signature = (sums_at, start, rows, settings, noise=None))]
pub(crate) fn niht_fit_sums<'py>(
    py: Python<'py>,
    sums_at: Py<PyAny>,
    start: PyReadonlyArray1<'py, f64>,
    rows: usize,
    settings: &FitSettings,
    noise: Option<NoiseKind<'py>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let bits = noise.map_or(Bits::Secure, |noise| noise.bits());
    let (start, settings) = (start.as_slice()?, &settings.settings);
    let sums_at = |theta: &Theta| -> std::result::Result<Vec<i64>, Raised> {
        Python::attach(|py| {
            let columns = theta.support().iter().map(|column| *column as i64).collect();
            let columns = PyArray1::<i64>::from_vec(py, columns);
            let values = PyArray1::from_slice(py, theta.values());
            let sums = sums_at.bind(py).call1((columns, values))?;
            Ok(integers(sums.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes())?)
        })
    };
    let fit = || -> std::result::Result<Vec<f64>, Raised> {
        let start = Theta::from_dense(start)?;
        let theta = with_bits!(bits, |noise| niht_from_sums(sums_at, rows, start, settings, noise, |_| ()))?;
        Ok(theta.to_dense()?)
    };
    Ok(PyArray1::from_vec(py, py.detach(fit)?))
}
