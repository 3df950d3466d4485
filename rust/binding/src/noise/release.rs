//! Noise for Python: the secure Laplace and Peeling.
//!
//! With `seed` the noise is predictable and nothing is private. `fliphat.kernels`
//! never passes it.

use fliphat_core::noise::entropy::SecureRng;
use fliphat_core::noise::laplace_mechanism::LaplaceMechanism;
use fliphat_core::private::draws::{Added, Noise};
use fliphat_core::private::peel::{
    ColumnPick, ColumnPicker, Mechanism, PeelScratch, Peeler, Pick, ValueNoise,
};
use fliphat_core::runtime::error::{Error, Result};
use numpy::{PyArray1, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::prelude::*;

use crate::noise::kinds::{Bits, NoiseKind, with_bits};
use crate::noise::seeded::with_noise;
use crate::runtime::Raised;

/// The arrays made by the Python side are contiguous; anything else is a caller of this private module.
pub(crate) fn contiguous<T>(array: std::result::Result<T, numpy::AsSliceError>) -> Result<T> {
    array.map_err(|_| Error::invalid("arrays must be C-contiguous"))
}

/// Fills `out` with Laplace noise; returns the distance between possible outputs.
#[pyfunction]
#[pyo3(signature = (out, scale, *, seed=None))]
pub(crate) fn laplace_fill(
    py: Python<'_>,
    mut out: PyReadwriteArray1<'_, f64>,
    scale: f64,
    seed: Option<u64>,
) -> PyResult<f64> {
    let out = contiguous(out.as_slice_mut()).map_err(Raised::from)?;
    let fill = || -> Result<f64> {
        let mechanism = LaplaceMechanism::new(scale)?;
        with_noise!(seed.map(|seed| (seed, 0)), |noise| mechanism.fill(out, noise));
        Ok(mechanism.spacing())
    };
    Ok(py.detach(fill).map_err(Raised::from)?)
}

/// Replaces `values` by their releases; returns the distance between possible outputs.
#[pyfunction]
#[pyo3(signature = (values, scale, *, seed=None))]
pub(crate) fn laplace_release(
    py: Python<'_>,
    mut values: PyReadwriteArray1<'_, f64>,
    scale: f64,
    seed: Option<u64>,
) -> PyResult<f64> {
    let values = contiguous(values.as_slice_mut()).map_err(Raised::from)?;
    let release = || -> Result<f64> {
        let mechanism = LaplaceMechanism::new(scale)?;
        with_noise!(seed.map(|seed| (seed, 0)), |noise| mechanism.release(values, noise)?);
        Ok(mechanism.spacing())
    };
    Ok(py.detach(release).map_err(Raised::from)?)
}

/// Adds a rounded Gaussian of its own standard deviation to each of `values`.
#[pyfunction]
#[pyo3(signature = (values, sigmas, *, noise=None))]
pub(crate) fn gaussian_release(
    py: Python<'_>,
    mut values: PyReadwriteArray1<'_, i64>,
    sigmas: PyReadonlyArray1<'_, u64>,
    noise: Option<NoiseKind<'_>>,
) -> PyResult<()> {
    let bits = noise.map_or(Bits::Secure, |noise| noise.bits());
    let values = contiguous(values.as_slice_mut()).map_err(Raised::from)?;
    let sigmas = contiguous(sigmas.as_slice()).map_err(Raised::from)?;
    let release = || -> Result<()> { with_bits!(bits, |noise| noise.add(values, Added::Gaussian(sigmas))) };
    Ok(py.detach(release).map_err(Raised::from)?)
}

/// Names of [`Mechanism`] and [`ValueNoise`] as users type them.
pub(crate) fn peeler(
    mechanism: &str,
    pick_scale: u64,
    value_noise: &str,
    value_scale: u64,
) -> Result<Peeler> {
    let mechanism = match mechanism {
        "exponential" => Mechanism::Exponential,
        "laplace" => Mechanism::Laplace,
        _ => {
            return Err(Error::invalid("mechanism must be 'exponential' or 'laplace'"));
        }
    };
    let value_noise = match value_noise {
        "gaussian" => ValueNoise::Gaussian,
        "rounded_gaussian" => ValueNoise::RoundedGaussian,
        "laplace" => ValueNoise::Laplace,
        _ => {
            return Err(Error::invalid("value_noise must be 'rounded_gaussian', 'gaussian' or 'laplace'"));
        }
    };
    Peeler::new(mechanism, pick_scale, value_noise, value_scale)
}

type IntegerArray<'py> = Bound<'py, PyArray1<i64>>;

/// Picks `s` coordinates of `v` privately; returns them in the order picked, with noisy values.
#[pyfunction]
#[pyo3(signature = (v, s, pick_scale, value_scale, mechanism, value_noise, *, seed=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn peel<'py>(
    py: Python<'py>,
    v: PyReadonlyArray1<'py, i64>,
    s: usize,
    pick_scale: u64,
    value_scale: u64,
    mechanism: &str,
    value_noise: &str,
    seed: Option<u64>,
) -> PyResult<(IntegerArray<'py>, IntegerArray<'py>)> {
    let v = contiguous(v.as_slice()).map_err(Raised::from)?;
    let run = || -> Result<Vec<Pick>> {
        let peeler = peeler(mechanism, pick_scale, value_noise, value_scale)?;
        let mut picked = Vec::new();
        let scratch = &mut PeelScratch::default();
        with_noise!(seed.map(|seed| (seed, 0)), |noise| peeler.peel(v, s, noise, scratch, &mut picked)?);
        Ok(picked)
    };
    let picked = py.detach(run).map_err(Raised::from)?;
    let support = PyArray1::from_iter(py, picked.iter().map(|pick| pick.index as i64));
    let values = PyArray1::from_iter(py, picked.iter().map(|pick| pick.value));
    Ok((support, values))
}

/// A negative column becomes one that is out of every range.
pub(crate) fn positions(columns: &[i64]) -> Vec<usize> {
    columns.iter().map(|column| usize::try_from(*column).unwrap_or(usize::MAX)).collect()
}

/// Picks columns privately outside `excluded`; returns them in the order picked, with their signs.
#[pyfunction]
pub(crate) fn pick_columns<'py>(
    py: Python<'py>,
    scores: PyReadonlyArray1<'py, i64>,
    picks: usize,
    scale: u64,
    excluded: PyReadonlyArray1<'py, i64>,
    signed: bool,
) -> PyResult<(IntegerArray<'py>, IntegerArray<'py>)> {
    let scores = contiguous(scores.as_slice()).map_err(Raised::from)?;
    let excluded = positions(contiguous(excluded.as_slice()).map_err(Raised::from)?);
    let run = || -> Result<Vec<ColumnPick>> {
        ColumnPicker::new(scale, signed)?.pick(scores, &excluded, picks, &mut SecureRng::from_os()?)
    };
    let picked = py.detach(run).map_err(Raised::from)?;
    let columns = PyArray1::from_iter(py, picked.iter().map(|pick| pick.column as i64));
    Ok((columns, PyArray1::from_iter(py, picked.iter().map(|pick| pick.sign))))
}
