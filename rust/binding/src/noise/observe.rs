//! Tests watch what is drawn: laws, scales and counts.

use fliphat_core::noise::observe;
use pyo3::prelude::*;

/// Begins, or ends, to keep what is drawn in this process.
#[pyfunction]
pub(crate) fn watch_draws(on: bool) {
    observe::watch(on);
}

/// What was drawn since the last call: laws, and how many numbers in a row had which scale.
#[pyfunction]
pub(crate) fn taken_draws() -> Vec<(&'static str, Vec<(u64, usize)>)> {
    observe::taken().into_iter().map(|draw| (draw.law, draw.runs)).collect()
}
