//! Private integers that cross between processes: opaque bytes, eight for each integer, the lowest first.

use std::borrow::Cow;

use fliphat_core::private::episode::Sums;
use fliphat_core::private::peel::ColumnPick;
use fliphat_core::runtime::error::{Error, Result};
use fliphat_core::runtime::memory::with_room;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::runtime::Raised;

pub(crate) fn integers(bytes: &[u8]) -> Result<Vec<i64>> {
    let (whole, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(Error::invalid("sums must be bytes of whole integers"));
    }
    let mut found = with_room(whole.len())?;
    found.extend(whole.iter().map(|raw| i64::from_le_bytes(*raw)));
    Ok(found)
}

pub(crate) fn to_bytes<'py>(py: Python<'py>, integers: &[i64]) -> Bound<'py, PyBytes> {
    let bytes: Vec<u8> = integers.iter().flat_map(|integer| integer.to_le_bytes()).collect();
    PyBytes::new(py, &bytes)
}

/// Sums that methods of a Python object return: of rows that live elsewhere.
pub(crate) struct Callback<'a>(pub(crate) &'a Py<PyAny>);

impl Callback<'_> {
    fn ask(&self, method: &str, picked: Option<&[ColumnPick]>) -> std::result::Result<Vec<i64>, Raised> {
        Python::attach(|py| {
            let object = self.0.bind(py);
            let arguments = match picked {
                None => PyTuple::empty(py),
                Some(picked) => {
                    let columns: Vec<i64> = picked.iter().map(|pick| pick.column as i64).collect();
                    let signs: Vec<i64> = picked.iter().map(|pick| pick.sign).collect();
                    (columns, signs).into_pyobject(py)?
                }
            };
            let found = object.call_method1(method, arguments)?;
            Ok(integers(found.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes())?)
        })
    }
}

impl Sums for Callback<'_> {
    type Error = Raised;

    fn numbers(&mut self) -> std::result::Result<Vec<i64>, Raised> {
        self.ask("numbers", None)
    }

    fn candidates(&mut self) -> std::result::Result<Cow<'_, [i64]>, Raised> {
        self.ask("candidates", None).map(Cow::Owned)
    }

    fn further(&mut self, picked: &[ColumnPick]) -> std::result::Result<Cow<'_, [i64]>, Raised> {
        self.ask("further", Some(picked)).map(Cow::Owned)
    }

    fn vector(&mut self, picked: &[ColumnPick]) -> std::result::Result<Vec<i64>, Raised> {
        self.ask("vector", Some(picked))
    }
}
