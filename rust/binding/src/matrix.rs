//! NumPy arrays as the slices the core works on: read-only borrows, never a copy.

use fliphat_core::matrix::{Csr, Dense};
use numpy::ndarray::Dimension;
use numpy::{
    Element, PyArray2, PyArrayMethods, PyReadonlyArray, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::runtime::Raised;

/// Numbers of an array of several dimensions, the last index fastest. `as_slice` alone returns those in Fortran's order,
/// which are contiguous as well, in that one: rows would be read as columns.
pub(crate) trait InOrder<T> {
    /// # Errors
    /// If the array is not aligned, or not in C order.
    fn in_order(&self) -> PyResult<&[T]>;
}

impl<T: Element, D: Dimension> InOrder<T> for PyReadonlyArray<'_, T, D> {
    fn in_order(&self) -> PyResult<&[T]> {
        required(self.is_c_contiguous())?;
        Ok(self.as_slice()?)
    }
}

/// The same of an array that is written to.
pub(crate) fn in_order_mut<'a, T: Element, D: Dimension>(
    array: &'a mut PyReadwriteArray<'_, T, D>,
) -> PyResult<&'a mut [T]> {
    required(array.is_c_contiguous())?;
    Ok(array.as_slice_mut()?)
}

fn required(in_order: bool) -> PyResult<()> {
    if in_order {
        return Ok(());
    }
    Err(PyTypeError::new_err("arrays of several dimensions must be in C order"))
}

/// A dense matrix of either type.
pub(crate) enum Matrix<'py> {
    /// Single precision.
    F32(PyReadonlyArray2<'py, f32>),
    /// Double precision.
    F64(PyReadonlyArray2<'py, f64>),
}

// By hand: what is derived writes the error of each type that does not fit, which takes longer than a round.
impl<'a, 'py> FromPyObject<'a, 'py> for Matrix<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match given.cast::<PyArray2<f64>>() {
            Ok(array) => Ok(Matrix::F64(array.try_readonly()?)),
            Err(_) => Ok(Matrix::F32(given.extract()?)),
        }
    }
}

/// Stored values of a sparse matrix.
#[derive(FromPyObject)]
pub(crate) enum Values<'py> {
    /// Single precision.
    F32(PyReadonlyArray1<'py, f32>),
    /// Double precision.
    F64(PyReadonlyArray1<'py, f64>),
}

/// Offsets or columns of a sparse matrix.
#[derive(FromPyObject)]
pub(crate) enum Indices<'py> {
    /// 32 bits.
    I32(PyReadonlyArray1<'py, i32>),
    /// 64 bits.
    I64(PyReadonlyArray1<'py, i64>),
}

/// Call `$call` with the matrix as `Dense`, whichever type it has.
macro_rules! with_dense {
    ($matrix:expr, |$rows:ident| $call:expr) => {
        match &$matrix {
            $crate::matrix::Matrix::F32(array) => {
                let $rows = $crate::matrix::dense(array)?;
                $call
            }
            $crate::matrix::Matrix::F64(array) => {
                let $rows = $crate::matrix::dense(array)?;
                $call
            }
        }
    };
}

/// Call `$call` with the three arrays as `Csr`, whichever types they have.
macro_rules! with_csr {
    ($offsets:expr, $columns_of:expr, $values:expr, $columns:expr, |$rows:ident| $call:expr) => {{
        use $crate::matrix::{Indices, Values, csr};
        match (&$offsets, &$columns_of, &$values) {
            (Indices::I32(offsets), Indices::I32(columns_of), Values::F32(values)) => {
                let $rows = csr(offsets, columns_of, values, $columns)?;
                $call
            }
            (Indices::I32(offsets), Indices::I32(columns_of), Values::F64(values)) => {
                let $rows = csr(offsets, columns_of, values, $columns)?;
                $call
            }
            (Indices::I64(offsets), Indices::I64(columns_of), Values::F32(values)) => {
                let $rows = csr(offsets, columns_of, values, $columns)?;
                $call
            }
            (Indices::I64(offsets), Indices::I64(columns_of), Values::F64(values)) => {
                let $rows = csr(offsets, columns_of, values, $columns)?;
                $call
            }
            _ => {
                return Err(pyo3::exceptions::PyTypeError::new_err(
                    "X.indptr and X.indices must have the same integer type",
                ));
            }
        }
    }};
}

/// Rows of either kind: a matrix, or the three arrays and the number of columns of a sparse one.
#[derive(FromPyObject)]
pub(crate) enum AnyRows<'py> {
    /// Dense.
    Dense(Matrix<'py>),
    /// `(indptr, indices, data, columns)`.
    Sparse((Indices<'py>, Indices<'py>, Values<'py>, usize)),
}

/// Call `$call` with the rows as `Dense` or `Csr`, whichever they are.
macro_rules! with_rows {
    ($rows:expr, |$name:ident| $call:expr) => {
        match &$rows {
            $crate::matrix::AnyRows::Dense(matrix) => {
                $crate::matrix::with_dense!(*matrix, |$name| $call)
            }
            $crate::matrix::AnyRows::Sparse((indptr, indices, data, columns)) => {
                $crate::matrix::with_csr!(*indptr, *indices, *data, *columns, |$name| $call)
            }
        }
    };
}

pub(crate) use {with_csr, with_dense, with_rows};

pub(crate) fn dense<'a, T: numpy::Element + fliphat_core::matrix::scalar::Real>(
    array: &'a PyReadonlyArray2<'_, T>,
) -> PyResult<Dense<'a, T>> {
    let shape = array.as_array();
    let (rows, columns) = shape.dim();
    Ok(Dense::new(array.in_order()?, rows, columns).map_err(Raised::from)?)
}

pub(crate) fn csr<'a, T, I>(
    offsets: &'a PyReadonlyArray1<'_, I>,
    columns_of: &'a PyReadonlyArray1<'_, I>,
    values: &'a PyReadonlyArray1<'_, T>,
    columns: usize,
) -> PyResult<Csr<'a, T, I>>
where
    T: numpy::Element + fliphat_core::matrix::scalar::Real,
    I: numpy::Element + fliphat_core::matrix::Index,
{
    let rows = Csr::new(offsets.as_slice()?, columns_of.as_slice()?, values.as_slice()?, columns);
    Ok(rows.map_err(Raised::from)?)
}
