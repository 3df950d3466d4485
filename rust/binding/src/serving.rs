//! Bindings of what a server does for every request.

use fliphat_core::matrix::scalar::Real;
use fliphat_core::serving::json::{self, Name};
use numpy::{Element, PyArray1, PyArrayDyn, PyArrayMethods};
use pyo3::prelude::*;

/// Below this many bytes a body is read sooner than the interpreter is handed over and back.
const HELD_BELOW: usize = 1 << 14;

/// Contexts, user and key.
type Read<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

/// Contexts, user and key of a plain JSON body; None if it is not a plain one.
#[pyfunction]
pub(crate) fn read_contexts<'py>(
    py: Python<'py>,
    body: &[u8],
    dim: usize,
    double: bool,
) -> PyResult<Option<Read<'py>>> {
    if double { read_as::<f64>(py, body, dim) } else { read_as::<f32>(py, body, dim) }
}

fn read_as<'py, T: Real + Element>(py: Python<'py>, body: &[u8], dim: usize) -> PyResult<Option<Read<'py>>> {
    let read = if body.len() < HELD_BELOW {
        json::read::<T>(body, dim)
    } else {
        py.detach(|| json::read::<T>(body, dim))
    };
    let Some(read) = read else { return Ok(None) };
    let values: Bound<'py, PyArrayDyn<T>> = PyArray1::from_vec(py, read.values).reshape(read.shape)?;
    Ok(Some((values.into_any(), named(py, read.user)?, named(py, read.key)?)))
}

fn named<'py>(py: Python<'py>, name: Name<'_>) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(match name {
        Name::Missing => None,
        Name::Text(text) => Some(text.into_pyobject(py)?.into_any()),
        Name::Number(number) => Some(number.into_pyobject(py)?.into_any()),
    })
}
