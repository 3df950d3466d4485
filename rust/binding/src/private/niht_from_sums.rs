//! A private fit over rows that live elsewhere: Python brings each iteration's sums, noise is added here.

use fliphat_core::noise::entropy::SecureRng;
use fliphat_core::noise::entropy::door::SeededNoise;
use fliphat_core::private::niht::{Step, inside_ball};
use fliphat_core::public::theta::Theta;
use fliphat_core::runtime::error::{Error, Result};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::private::niht::FitSettings;
use crate::runtime::Raised;

/// Fit from the sums that `sums_at(columns, values)` returns for each estimate; same bits as `niht_fit` on the
/// rows themselves. Only the last estimate is returned, so an exception of `sums_at` leaves none behind.
#[pyfunction]
#[pyo3(signature = (sums_at, start, rows, settings, door=None))]
pub(crate) fn niht_fit_sums<'py>(
    py: Python<'py>,
    sums_at: Bound<'py, PyAny>,
    start: PyReadonlyArray1<'py, f64>,
    rows: usize,
    settings: &FitSettings,
    door: Option<(u64, u64)>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (start, settings) = (start.as_slice()?, &settings.settings);
    let mut step = Step::new(settings, rows, start.len()).map_err(Raised::from)?;
    let mut theta = Theta::from_dense(start)
        .and_then(|start| inside_ball(start, settings.l1_radius))
        .map_err(Raised::from)?;
    let mut seeded = door.map(|(seed, stream)| SeededNoise::new(seed, stream));
    for _ in 0..settings.iterations {
        let columns = theta.support().iter().map(|column| *column as i64).collect();
        let columns = PyArray1::<i64>::from_vec(py, columns);
        let values = PyArray1::from_slice(py, theta.values());
        let sums: PyReadonlyArray1<'py, i64> = sums_at.call1((columns, values))?.extract()?;
        let sums = sums.as_slice()?.to_vec();
        theta = py
            .detach(|| {
                require_sums_of_rows(&sums, rows)?;
                match &mut seeded {
                    // A fresh key each time: `sums_at` may run anything, a fork too, and no generator that
                    // a child could repeat is alive while it does.
                    None => step.take(&theta, sums, &mut SecureRng::from_os()?),
                    Some(noise) => step.take(&theta, sums, noise),
                }
            })
            .map_err(Raised::from)?;
    }
    Ok(PyArray1::from_vec(py, theta.to_dense()))
}

/// Larger sums than `rows` rows can have would break the lattice's bounds, and with them the sensitivity.
pub(crate) fn require_sums_of_rows(sums: &[i64], rows: usize) -> Result<()> {
    let most = rows as u128 * fliphat_core::matrix::scalar::LIMIT as u128;
    if sums.iter().any(|sum| u128::from(sum.unsigned_abs()) > most) {
        return Err(Error::invalid(
            "sums must be sums of rows: none may pass 2**15 times the number of rows",
        ));
    }
    Ok(())
}
