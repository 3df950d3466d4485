//! Binding of a pilot.

use fliphat_core::private::pilot::{Found, Pilot};
use fliphat_core::runtime::error::Result;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::noise::kinds::{NoiseKind, with_bits};
use crate::runtime::Raised;

/// Release about how far apart rewards are and where most of them are: a place in `distances`, and a multiple of
/// `width` such distances.
///
/// `near` is `(factor, width)`, `scores` is `(most, step)`.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn release_pilot<'py>(
    py: Python<'py>,
    rewards: PyReadonlyArray1<'py, f64>,
    present: PyReadonlyArray1<'py, u8>,
    distances: PyReadonlyArray1<'py, f64>,
    unlikely: PyReadonlyArray1<'py, f64>,
    near: (f64, f64),
    scores: (usize, i64),
    scales: [u64; 2],
    noise: NoiseKind<'py>,
) -> PyResult<(usize, i64)> {
    let (rewards, present, bits) = (rewards.as_slice()?, present.as_slice()?, noise.bits());
    let pilot = Pilot {
        distances: distances.as_slice()?,
        factor: near.0,
        unlikely: unlikely.as_slice()?,
        width: near.1,
        most: scores.0,
        step: scores.1,
        scales,
    };
    let run = || -> Result<Found> { with_bits!(bits, |noise| pilot.release(rewards, present, noise)) };
    let found = py.detach(run).map_err(Raised::from)?;
    Ok((found.distance, found.place))
}
