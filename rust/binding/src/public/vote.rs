//! Binding of draws of coefficients that vote on rounds.

use fliphat_core::public::play::{Chosen, Contexts};
use fliphat_core::public::vote::{self, Map};
use fliphat_core::runtime::error::Error;
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray3};
use pyo3::prelude::*;

use super::play::{HELD_BELOW, Played, Target, rows_of};
use crate::matrix::{InOrder, Indices, Matrix, Values, with_csr, with_dense};
use crate::runtime::Raised;

/// Public draws of coefficients: each names the arm it thinks best, one of them decides.
#[pyclass(frozen, subclass, module = "fliphat._native")]
pub(crate) struct Votes {
    votes: vote::Votes,
}

#[pymethods]
impl Votes {
    #[new]
    #[pyo3(signature = (draws, slots, inverse, shift, ball, norm, disjoint, uniform=false, fixed=None))]
    #[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
    fn new(
        draws: PyReadonlyArray3<'_, f64>,
        slots: PyReadonlyArray1<'_, i64>,
        inverse: PyReadonlyArray1<'_, f32>,
        shift: PyReadonlyArray1<'_, f32>,
        ball: f32,
        norm: f64,
        disjoint: bool,
        uniform: bool,
        fixed: Option<(usize, usize)>,
    ) -> PyResult<Self> {
        let map =
            Map { inverse: inverse.as_slice()?.to_vec(), shift: shift.as_slice()?.to_vec(), ball, norm };
        let made = vote::Votes::new(draws.in_order()?, slots.as_slice()?.to_vec(), map, disjoint);
        let made = made.and_then(|votes| match fixed {
            Some((free, arm)) => votes.fixed(free, arm),
            None => Ok(votes),
        });
        let votes = made.map_err(Raised::from)?;
        Ok(Votes { votes: if uniform { votes.uniform() } else { votes } })
    }

    /// Play one dense round and write its row to `out[at]`. The arm's slot, or `-1 - slot` if invalid, and its votes.
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
        let chosen = with_dense!(contexts, |rows| self.play(
            py,
            &rows,
            &words,
            Some(&keep),
            Some(&explored),
            &mut out,
            at
        ))?;
        Ok((chosen.arms[0], chosen.tied[0]))
    }

    /// Play dense rounds and write their rows to `out[at..]`.
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
        self.require(arms)?;
        let keep = keep.as_ref().map(|keep| keep.as_slice()).transpose()?;
        let explored = explored.as_ref().map(|explored| explored.as_slice()).transpose()?;
        let words = words.as_slice()?;
        let chosen = with_dense!(contexts, |rows| self.play(py, &rows, words, keep, explored, &mut out, at))?;
        Ok((PyArray1::from_vec(py, chosen.arms), PyArray1::from_vec(py, chosen.tied)))
    }

    /// Play sparse rounds and write their rows, dense, to `out[at..]`.
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
        self.require(arms)?;
        let keep = keep.as_ref().map(|keep| keep.as_slice()).transpose()?;
        let explored = explored.as_ref().map(|explored| explored.as_slice()).transpose()?;
        let words = words.as_slice()?;
        let chosen = with_csr!(indptr, indices, data, self.votes.dimension(), |rows| self
            .play(py, &rows, words, keep, explored, &mut out, at))?;
        Ok((PyArray1::from_vec(py, chosen.arms), PyArray1::from_vec(py, chosen.tied)))
    }
}

impl Votes {
    fn require(&self, arms: usize) -> PyResult<()> {
        if arms == self.votes.arms() {
            return Ok(());
        }
        Err(Raised::from(Error::invalid("arms must be the number of arms that draws were made for")).into())
    }

    #[allow(clippy::too_many_arguments)] // What a round brings.
    fn play<C: Contexts>(
        &self,
        py: Python<'_>,
        contexts: &C,
        words: &[u64],
        keep: Option<&[u8]>,
        explored: Option<&[u8]>,
        out: &mut Target<'_>,
        at: usize,
    ) -> PyResult<Chosen> {
        macro_rules! into {
            ($array:expr) => {{
                let rows = rows_of($array, at, words.len())?;
                let mut work = || self.votes.play(contexts, words, keep, explored, rows);
                if contexts.size() < HELD_BELOW { work() } else { py.detach(&mut work) }
            }};
        }
        let chosen = match out {
            Target::F32(array) => into!(array),
            Target::F64(array) => into!(array),
        };
        Ok(chosen.map_err(Raised::from)?)
    }
}
