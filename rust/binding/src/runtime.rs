//! Errors and instruction sets. Core errors become Python exceptions here and nowhere else.

use fliphat_core::runtime::error::Error;
use fliphat_core::runtime::simd::Level;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// A core error on its way to Python (the orphan rule forbids `From<Error> for PyErr`).
pub(crate) struct Raised(Error);

impl From<Error> for Raised {
    fn from(error: Error) -> Self {
        Raised(error)
    }
}

impl From<Raised> for PyErr {
    fn from(Raised(error): Raised) -> Self {
        match error {
            Error::Invalid(message) => PyValueError::new_err(message),
            Error::Entropy(_) => PyOSError::new_err(error.to_string()),
        }
    }
}

/// The named instruction set, or the best one.
pub(crate) fn level(name: Option<&str>) -> PyResult<Level> {
    let Some(name) = name else { return Ok(Level::best()) };
    let found = Level::available().into_iter().find(|level| level.name() == name);
    let missing = || Raised::from(Error::invalid(format!("simd must be one of simd_levels(), got {name:?}")));
    Ok(found.ok_or_else(missing)?)
}

/// Names of the instruction sets this processor offers the kernels, narrowest first.
#[pyfunction]
pub(crate) fn simd_levels() -> Vec<&'static str> {
    Level::available().into_iter().map(|level| level.name()).collect()
}
