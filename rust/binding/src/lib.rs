//! `fliphat._native`: converts arguments and errors, and calls the core with the interpreter released.

mod door;
mod errors;
mod noise;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::door::{door_draw, door_peel, door_words};
    #[pymodule_export]
    use crate::noise::{laplace_fill, laplace_release, peel};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
