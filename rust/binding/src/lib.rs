//! `fliphat._native`: converts arguments and errors, and calls the core with the interpreter released.

mod errors;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
