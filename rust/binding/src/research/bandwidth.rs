//! Binding of the bandwidth probe.

use fliphat_core::research::bandwidth;
use fliphat_core::runtime::simd::Level;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

/// Read an array once on some threads and fold its words: the bandwidth probe of the benchmarks.
#[pyfunction]
pub(crate) fn read_all(py: Python<'_>, words: PyReadonlyArray1<'_, u64>, threads: usize) -> PyResult<u64> {
    let words = words.as_slice()?;
    Ok(py.detach(|| bandwidth::read_all(words, threads.clamp(1, 256), Level::best())))
}
