//! Binding of an estimate that plays rounds and copies the chosen rows.

use fliphat_core::matrix::scalar::Real;
use fliphat_core::public::play::{Chosen, Contexts, Rounds};
use fliphat_core::public::theta::Theta;
use fliphat_core::runtime::error::Error;
use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadwriteArray2};
use pyo3::prelude::*;

use crate::matrix::{Indices, Matrix, Values, in_order_mut, with_csr, with_dense};
use crate::runtime::Raised;

/// Below this many values the work is shorter than handing the interpreter over and back.
pub(crate) const HELD_BELOW: usize = 1 << 14;

/// Where chosen rows go.
pub(crate) enum Target<'py> {
    /// Single precision.
    F32(PyReadwriteArray2<'py, f32>),
    /// Double precision.
    F64(PyReadwriteArray2<'py, f64>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Target<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match given.cast::<PyArray2<f64>>() {
            Ok(array) => Ok(Target::F64(array.try_readwrite()?)),
            Err(_) => Ok(Target::F32(given.extract()?)),
        }
    }
}

/// Arms, and how many share the first place with each.
pub(crate) type Played<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>);
type SparsePlayed<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyAny>,
);

/// A public estimate, kept as its support: a round costs nothing for the coordinates that are zero.
#[pyclass(frozen, module = "fliphat._native")]
pub(crate) struct Estimate {
    theta: Theta,
}

#[pymethods]
impl Estimate {
    #[new]
    fn new(
        indices: PyReadonlyArray1<'_, i64>,
        values: PyReadonlyArray1<'_, f64>,
        dimension: usize,
    ) -> PyResult<Self> {
        let (indices, values) = (indices.as_slice()?, values.as_slice()?);
        if indices.len() != values.len() {
            return Err(Raised::from(Error::invalid("theta must have one value for each index")).into());
        }
        let pairs = indices.iter().map(|index| *index as isize as usize).zip(values.iter().copied());
        Ok(Estimate { theta: Theta::from_pairs(pairs, dimension).map_err(Raised::from)? })
    }

    /// Play one dense round and copy the chosen row to `out[at]`. The arm, or `-1 - arm` if invalid, and how
    /// many share the first place with it.
    #[pyo3(signature = (contexts, word, keep, out, at, explored=false))]
    #[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
    fn choose_one(
        &self,
        py: Python<'_>,
        contexts: Matrix<'_>,
        word: u64,
        keep: bool,
        mut out: Target<'_>,
        at: usize,
        explored: bool,
    ) -> PyResult<(i64, u32)> {
        let (words, keep, explored) = ([word], [u8::from(keep)], [u8::from(explored)]);
        let chosen = with_dense!(contexts, |rows| {
            let rounds = Rounds::new(&rows, rows.rows(), &self.theta, &words, Some(&keep))
                .and_then(|rounds| rounds.exploring(Some(&explored)))
                .map_err(Raised::from)?;
            into_target(py, &rounds, rows.size(), &mut out, at, 1)?
        });
        Ok((chosen.arms[0], chosen.tied[0]))
    }

    /// Play dense rounds and copy the chosen rows to `out[at..]`.
    #[pyo3(signature = (contexts, arms, words, keep, out, at, explored=None))]
    #[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
    fn choose_dense<'py>(
        &self,
        py: Python<'py>,
        contexts: Matrix<'py>,
        arms: usize,
        words: PyReadonlyArray1<'py, u64>,
        keep: Option<PyReadonlyArray1<'py, u8>>,
        mut out: Target<'py>,
        at: usize,
        explored: Option<PyReadonlyArray1<'py, u8>>,
    ) -> PyResult<Played<'py>> {
        let words = words.as_slice()?;
        let keep = keep.as_ref().map(|keep| keep.as_slice()).transpose()?;
        let explored = explored.as_ref().map(|explored| explored.as_slice()).transpose()?;
        let chosen = with_dense!(contexts, |rows| {
            let rounds = Rounds::new(&rows, arms, &self.theta, words, keep)
                .and_then(|rounds| rounds.exploring(explored))
                .map_err(Raised::from)?;
            into_target(py, &rounds, rows.size(), &mut out, at, words.len())?
        });
        Ok((PyArray1::from_vec(py, chosen.arms), PyArray1::from_vec(py, chosen.tied)))
    }

    /// Play sparse rounds and copy the chosen rows to `out[at..]`.
    #[pyo3(signature = (indptr, indices, data, arms, words, keep, out, at, explored=None))]
    #[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
    fn choose_csr<'py>(
        &self,
        py: Python<'py>,
        indptr: Indices<'py>,
        indices: Indices<'py>,
        data: Values<'py>,
        arms: usize,
        words: PyReadonlyArray1<'py, u64>,
        keep: Option<PyReadonlyArray1<'py, u8>>,
        mut out: Target<'py>,
        at: usize,
        explored: Option<PyReadonlyArray1<'py, u8>>,
    ) -> PyResult<Played<'py>> {
        let words = words.as_slice()?;
        let keep = keep.as_ref().map(|keep| keep.as_slice()).transpose()?;
        let explored = explored.as_ref().map(|explored| explored.as_slice()).transpose()?;
        let chosen = with_csr!(indptr, indices, data, self.theta.dimension(), |rows| {
            let rounds = Rounds::new(&rows, arms, &self.theta, words, keep)
                .and_then(|rounds| rounds.exploring(explored))
                .map_err(Raised::from)?;
            into_target(py, &rounds, rows.size(), &mut out, at, words.len())?
        });
        Ok((PyArray1::from_vec(py, chosen.arms), PyArray1::from_vec(py, chosen.tied)))
    }

    /// Play dense rounds; the chosen rows come back sparse: arms, row lengths, columns, values.
    #[pyo3(signature = (contexts, arms, words, keep, double, explored=None))]
    #[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
    fn choose_dense_to_csr<'py>(
        &self,
        py: Python<'py>,
        contexts: Matrix<'py>,
        arms: usize,
        words: PyReadonlyArray1<'py, u64>,
        keep: Option<PyReadonlyArray1<'py, u8>>,
        double: bool,
        explored: Option<PyReadonlyArray1<'py, u8>>,
    ) -> PyResult<SparsePlayed<'py>> {
        let words = words.as_slice()?;
        let keep = keep.as_ref().map(|keep| keep.as_slice()).transpose()?;
        let explored = explored.as_ref().map(|explored| explored.as_slice()).transpose()?;
        with_dense!(contexts, |rows| {
            let rounds = Rounds::new(&rows, arms, &self.theta, words, keep)
                .and_then(|rounds| rounds.exploring(explored))
                .map_err(Raised::from)?;
            to_sparse(py, &rounds, double)
        })
    }

    /// Play sparse rounds; the chosen rows come back sparse: arms, row lengths, columns, values.
    #[pyo3(signature = (indptr, indices, data, arms, words, keep, double, explored=None))]
    #[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
    fn choose_csr_to_csr<'py>(
        &self,
        py: Python<'py>,
        indptr: Indices<'py>,
        indices: Indices<'py>,
        data: Values<'py>,
        arms: usize,
        words: PyReadonlyArray1<'py, u64>,
        keep: Option<PyReadonlyArray1<'py, u8>>,
        double: bool,
        explored: Option<PyReadonlyArray1<'py, u8>>,
    ) -> PyResult<SparsePlayed<'py>> {
        let words = words.as_slice()?;
        let keep = keep.as_ref().map(|keep| keep.as_slice()).transpose()?;
        let explored = explored.as_ref().map(|explored| explored.as_slice()).transpose()?;
        with_csr!(indptr, indices, data, self.theta.dimension(), |rows| {
            let rounds = Rounds::new(&rows, arms, &self.theta, words, keep)
                .and_then(|rounds| rounds.exploring(explored))
                .map_err(Raised::from)?;
            to_sparse(py, &rounds, double)
        })
    }
}

fn into_target<C: Contexts>(
    py: Python<'_>,
    rounds: &Rounds<'_, C>,
    size: usize,
    out: &mut Target<'_>,
    at: usize,
    count: usize,
) -> PyResult<Chosen> {
    match out {
        Target::F32(array) => into_rows(py, rounds, size, array, at, count),
        Target::F64(array) => into_rows(py, rounds, size, array, at, count),
    }
}

fn into_rows<C: Contexts, S: Real + Element>(
    py: Python<'_>,
    rounds: &Rounds<'_, C>,
    size: usize,
    out: &mut PyReadwriteArray2<'_, S>,
    at: usize,
    count: usize,
) -> PyResult<Chosen> {
    let rows = rows_of(out, at, count)?;
    let chosen =
        if size < HELD_BELOW { rounds.play_dense(rows) } else { py.detach(|| rounds.play_dense(rows)) };
    Ok(chosen.map_err(Raised::from)?)
}

/// The `count` rows from `at` on.
pub(crate) fn rows_of<'a, S: Real + Element>(
    out: &'a mut PyReadwriteArray2<'_, S>,
    at: usize,
    count: usize,
) -> PyResult<&'a mut [S]> {
    let columns = out.as_array().dim().1;
    let slice = in_order_mut(out)?;
    let range = at
        .checked_mul(columns)
        .zip(at.checked_add(count).and_then(|end| end.checked_mul(columns)))
        .filter(|(_, end)| *end <= slice.len());
    let Some((start, end)) = range else {
        return Err(Raised::from(Error::invalid("out must have one row for each round")).into());
    };
    Ok(&mut slice[start..end])
}

fn to_sparse<'py, C: Contexts>(
    py: Python<'py>,
    rounds: &Rounds<'_, C>,
    double: bool,
) -> PyResult<SparsePlayed<'py>> {
    fn arrays<'py, C: Contexts, S: Real + Element>(
        py: Python<'py>,
        rounds: &Rounds<'_, C>,
    ) -> PyResult<SparsePlayed<'py>> {
        let (chosen, rows) = py.detach(|| rounds.play_sparse::<S>()).map_err(Raised::from)?;
        let values = PyArray1::from_vec(py, rows.values).into_any();
        let (lengths, columns) = (PyArray1::from_vec(py, rows.lengths), PyArray1::from_vec(py, rows.columns));
        let (arms, tied) = (PyArray1::from_vec(py, chosen.arms), PyArray1::from_vec(py, chosen.tied));
        Ok((arms, tied, lengths, columns, values))
    }
    if double { arrays::<C, f64>(py, rounds) } else { arrays::<C, f32>(py, rounds) }
}
