//! Errors and instruction sets. Core errors become Python exceptions here and nowhere else.

use fliphat_core::runtime::error::Error;
use fliphat_core::runtime::simd::Level;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;

/// An error on its way to Python (the orphan rule forbids `From<Error> for PyErr`).
pub(crate) enum Raised {
    /// Of the core.
    Core(Error),
    /// Of Python code that the core called.
    Python(PyErr),
}

impl From<Error> for Raised {
    fn from(error: Error) -> Self {
        Raised::Core(error)
    }
}

impl From<PyErr> for Raised {
    fn from(error: PyErr) -> Self {
        Raised::Python(error)
    }
}

impl From<Raised> for PyErr {
    fn from(raised: Raised) -> Self {
        match raised {
            Raised::Python(error) => error,
            Raised::Core(Error::Invalid(message)) => PyValueError::new_err(message),
            Raised::Core(error @ Error::Entropy(_)) => PyOSError::new_err(error.to_string()),
            Raised::Core(error @ Error::Memory) => PyMemoryError::new_err(error.to_string()),
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
