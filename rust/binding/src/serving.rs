//! Bindings of what a server does for every request.

use fliphat_core::matrix::scalar::Real;
use fliphat_core::serving::json::{self, Fault, Value};
use numpy::{Element, PyArray1, PyArrayDyn, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// Below this many bytes a body is read sooner than the interpreter is handed over and back.
const HELD_BELOW: usize = 1 << 14;

/// Members of a JSON body by name, contexts as an array; in a word what is wrong with one that can't be read.
#[pyfunction]
pub(crate) fn read_body<'py>(
    py: Python<'py>,
    body: &[u8],
    dim: usize,
    double: bool,
    most: usize,
) -> PyResult<Bound<'py, PyAny>> {
    if double { read_as::<f64>(py, body, dim, most) } else { read_as::<f32>(py, body, dim, most) }
}

fn read_as<'py, T: Real + Element>(
    py: Python<'py>,
    body: &[u8],
    dim: usize,
    most: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let read = if body.len() < HELD_BELOW {
        json::read::<T>(body, dim, most)
    } else {
        py.detach(|| json::read::<T>(body, dim, most))
    };
    let read = match read {
        Ok(read) => read,
        Err(fault) => {
            let word = match fault {
                Fault::Malformed => "malformed",
                Fault::NoRecord => "no record",
                Fault::Many => "many",
                Fault::Shape => "shape",
            };
            return Ok(PyString::new(py, word).into_any());
        }
    };
    let record = PyDict::new(py);
    if let Some(contexts) = read.contexts {
        let values: Bound<'py, PyArrayDyn<T>> =
            PyArray1::from_vec(py, contexts.values).reshape(contexts.shape)?;
        record.set_item(pyo3::intern!(py, "contexts"), values)?;
    }
    for (name, value) in read.members {
        record.set_item(name, object(py, value)?)?;
    }
    Ok(record.into_any())
}

/// What Python makes of a value; an object, which no body has use for, is an empty dict.
fn object<'py>(py: Python<'py>, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(truth) => truth.into_pyobject(py)?.to_owned().into_any(),
        Value::Integer(number) => number.into_pyobject(py)?.into_any(),
        Value::Number(number) => number.into_pyobject(py)?.into_any(),
        Value::Text(text) => text.into_pyobject(py)?.into_any(),
        Value::List(values) => {
            let values: Vec<_> = values.into_iter().map(|one| object(py, one)).collect::<PyResult<_>>()?;
            PyList::new(py, values)?.into_any()
        }
        Value::Object => PyDict::new(py).into_any(),
    })
}
