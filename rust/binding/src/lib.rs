//! `fliphat._native`: converts arguments and errors, and calls the core with the interpreter released.
//!
//! Nothing is decided here. Arguments arrive checked by `fliphat.kernels`; the core checks again whatever
//! memory safety or privacy rests on.

mod arrays;
mod audit;
mod door;
mod elsewhere;
mod errors;
mod gradient;
mod lasso;
mod niht;
mod noise;
mod price;
mod project;
mod rounds;
mod select;
mod simulate;

use pyo3::prelude::*;

/// The kernels themselves, without checks of arguments: use `fliphat.kernels`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::door::{door_draw, door_peel, door_words};
    #[pymodule_export]
    use super::noise::{laplace_fill, laplace_release, peel};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use super::audit::{audit_niht, audit_paper, audit_peel, audit_permute_and_flip};
    #[pymodule_export]
    use super::elsewhere::niht_fit_sums;
    #[pymodule_export]
    use super::gradient::clipped_sums;
    #[pymodule_export]
    use super::lasso::lasso_fit;
    #[pymodule_export]
    use super::niht::{FitSettings, niht_fit, niht_step, paper_fit};
    #[pymodule_export]
    use super::price::price;
    #[pymodule_export]
    use super::project::project_l1;
    #[pymodule_export]
    use super::rounds::Estimate;
    #[pymodule_export]
    use super::select::{scores, select_arms};
    #[pymodule_export]
    use super::simulate::{ClickWorld, LinearWorld, round_words};
    #[pymodule_export]
    use super::{read_all, simd_levels};
}

/// Names of the instruction sets this processor offers the kernels, narrowest first.
#[pyfunction]
fn simd_levels() -> Vec<&'static str> {
    fliphat_core::simd::Level::available().into_iter().map(|level| level.name()).collect()
}

/// Read an array once on some threads and fold its words: the bandwidth probe of the benchmarks.
#[pyfunction]
fn read_all(py: Python<'_>, words: numpy::PyReadonlyArray1<'_, u64>, threads: usize) -> PyResult<u64> {
    let words = words.as_slice()?;
    let level = fliphat_core::simd::Level::best();
    Ok(py.detach(|| fliphat_core::bandwidth::read_all(words, threads.clamp(1, 256), level)))
}
