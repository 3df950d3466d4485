//! Bindings of totals that are released again and again.

use fliphat_core::private::totals::{self, TotalPart};
use fliphat_core::runtime::error::Result;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::noise::seeded::with_noise;
use crate::runtime::Raised;

/// Name, integers, weight, releases and weight before, sigmas, shift, whether it is kept.
type Part<'py> = (u64, PyReadonlyArray1<'py, i64>, u64, (u64, u64), PyReadonlyArray1<'py, u64>, u32, bool);

/// Releases parts, added to the totals in `secret`, and returns them with the new secret.
#[pyfunction]
#[pyo3(signature = (secret, parts, *, seeded=None))]
pub(crate) fn release_totals<'py>(
    py: Python<'py>,
    secret: Option<&[u8]>,
    parts: Vec<Part<'py>>,
    seeded: Option<(u64, u64)>,
) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyBytes>)> {
    let asked = parts
        .iter()
        .map(|(name, added, weight, before, sigmas, shift, kept)| {
            Ok(TotalPart {
                name: *name,
                added: added.as_slice()?,
                weight: *weight,
                before: *before,
                sigmas: sigmas.as_slice()?,
                shift: *shift,
                kept: *kept,
            })
        })
        .collect::<PyResult<Vec<_>>>()?;
    let release =
        || -> Result<_> { Ok(with_noise!(seeded, |noise| totals::release_totals(secret, &asked, noise)?)) };
    let (released, kept) = py.detach(release).map_err(Raised::from)?;
    Ok((PyArray1::from_vec(py, released), PyBytes::new(py, &kept)))
}
