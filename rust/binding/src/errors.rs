//! Core errors become Python exceptions here and nowhere else.

use fliphat_core::error::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyValueError};

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
