//! Binding of the paper's own fit, whose noise is not enough to be private.

use fliphat_core::private::gradient::Rewards;
use fliphat_core::public::theta::Theta;
use fliphat_core::research::paper::{FloatRows, PaperSettings, paper_niht};
use fliphat_core::runtime::error::Result;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::matrix::{AnyRows, with_rows};
use crate::noise::seeded::with_noise;
use crate::runtime::Raised;

/// The paper's fit; not private. Returns the estimate.
#[pyfunction]
#[pyo3(signature = (
    rows, y, start, sparsity, iterations, step_size, l1_radius, reward_clip, noise_scale, present=None, seeded=None
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
    seeded: Option<(u64, u64)>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let settings = PaperSettings { sparsity, iterations, step_size, l1_radius, reward_clip, noise_scale };
    let present = present.as_ref().map(|flags| flags.as_slice()).transpose()?;
    let (y, start) = (y.as_slice()?, start.as_slice()?);
    let dense = with_rows!(rows, |rows| py.detach(|| {
        fit_paper(&rows, Rewards::new(y, present)?, Theta::from_dense(start)?, &settings, seeded)?.to_dense()
    }))
    .map_err(Raised::from)?;
    Ok(PyArray1::from_vec(py, dense))
}

fn fit_paper<R: FloatRows>(
    rows: &R,
    rewards: Rewards<'_>,
    start: Theta,
    settings: &PaperSettings,
    seeded: Option<(u64, u64)>,
) -> Result<Theta> {
    with_noise!(seeded, |noise| paper_niht(rows, rewards, start, settings, noise))
}
