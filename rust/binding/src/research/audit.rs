//! Bindings of the audit's trial loop. Without `seed`, each thread draws from the operating system's entropy.

use fliphat_core::noise::entropy::SecureRng;
use fliphat_core::noise::entropy::predictable::SeededNoise;
use fliphat_core::research::audit::{
    Counts, FitCall, NihtTrial, PeelTrial, PermuteAndFlipTrial, ReplayTrial, Reuse, RowValues, Side, Trial,
    View, count,
};
use fliphat_core::runtime::error::Result;
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::prelude::*;

use crate::matrix::{InOrder, Matrix};
use crate::noise::release::peeler;
use crate::private::niht::FitSettings;
use crate::runtime::Raised;

/// `(pick_weights[slot, rank, index], value_weights[slot, index], low, high, bins)`.
type ViewArgument<'py> = (PyReadonlyArray3<'py, f64>, PyReadonlyArray2<'py, f64>, f64, f64, usize);

/// Rows and rewards of one side.
type SideArgument<'py> = (PyReadonlyArray2<'py, f64>, PyReadonlyArray1<'py, f64>);

/// Counts of each view: those of side 0, then those of side 1.
type CountArrays<'py> = Vec<(Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>)>;

fn views(arguments: &[ViewArgument<'_>]) -> PyResult<Vec<View>> {
    let view = |(picks, values, low, high, bins): &ViewArgument<'_>| {
        let shape = picks.as_array().dim();
        let weights = (picks.in_order()?.to_vec(), values.in_order()?.to_vec());
        Ok(View::new(weights.0, weights.1, shape, (*low, *high), *bins).map_err(Raised::from)?)
    };
    arguments.iter().map(view).collect()
}

fn side((rows, rewards): &SideArgument<'_>) -> PyResult<Side> {
    Ok(Side { values: rows.in_order()?.to_vec(), rewards: rewards.as_slice()?.to_vec() })
}

fn run<'py, T: Trial + Send>(
    py: Python<'py>,
    trial: &T,
    arguments: &[ViewArgument<'py>],
    runs: u64,
    threads: usize,
    seed: Option<u64>,
) -> PyResult<CountArrays<'py>> {
    let views = views(arguments)?;
    let counted = || -> Result<Counts> {
        match seed {
            None => count(trial, &views, runs, threads, |_| SecureRng::from_os()),
            Some(seed) => count(trial, &views, runs, threads, |thread| Ok(SeededNoise::new(seed, thread))),
        }
    };
    let counts = py.detach(counted).map_err(Raised::from)?;
    let arrays = counts.into_iter().map(|[a, b]| (PyArray1::from_vec(py, a), PyArray1::from_vec(py, b)));
    Ok(arrays.collect())
}

/// Count what Peeling shows of two integer vectors.
#[pyfunction]
#[pyo3(signature = (
    inputs, s, pick_scale, value_scale, mechanism, value_noise, views, runs, threads, seed=None
))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn audit_peel<'py>(
    py: Python<'py>,
    inputs: (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>),
    s: usize,
    pick_scale: u64,
    value_scale: u64,
    mechanism: &str,
    value_noise: &str,
    views: Vec<ViewArgument<'py>>,
    runs: u64,
    threads: usize,
    seed: Option<u64>,
) -> PyResult<CountArrays<'py>> {
    let trial = PeelTrial {
        peeler: peeler(mechanism, pick_scale, value_noise, value_scale).map_err(Raised::from)?,
        inputs: [inputs.0.as_slice()?.to_vec(), inputs.1.as_slice()?.to_vec()],
        count: s,
    };
    run(py, &trial, &views, runs, threads, seed)
}

/// Count what a private fit shows of two data sets, every iterate included.
#[pyfunction]
#[pyo3(signature = (sides, settings, reuse_noise, views, runs, threads, seed=None))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn audit_niht<'py>(
    py: Python<'py>,
    sides: (SideArgument<'py>, SideArgument<'py>),
    settings: &FitSettings,
    reuse_noise: bool,
    views: Vec<ViewArgument<'py>>,
    runs: u64,
    threads: usize,
    seed: Option<u64>,
) -> PyResult<CountArrays<'py>> {
    let trial = NihtTrial {
        settings: &settings.settings,
        columns: sides.0.0.as_array().ncols(),
        sides: [side(&sides.0)?, side(&sides.1)?],
        reuse: if reuse_noise { Reuse::EveryIteration } else { Reuse::Never },
    };
    run(py, &trial, &views, runs, threads, seed)
}

/// One call of `niht_fit`: rows, rewards, start, settings and which rewards count.
type CallArgument<'py> = (
    Matrix<'py>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, f64>,
    Bound<'py, FitSettings>,
    Option<PyReadonlyArray1<'py, u8>>,
);

fn call<'a>((rows, rewards, start, settings, present): &'a CallArgument<'_>) -> PyResult<FitCall<'a>> {
    Ok(FitCall {
        rows: match rows {
            Matrix::F32(values) => RowValues::Single(values.in_order()?),
            Matrix::F64(values) => RowValues::Double(values.in_order()?),
        },
        rewards: rewards.as_slice()?,
        present: present.as_ref().map(|flags| flags.as_slice()).transpose()?,
        start: start.as_slice()?,
        settings: &settings.get().settings,
    })
}

/// Count what recorded calls of the private fit show, each made again in every run.
#[pyfunction]
#[pyo3(signature = (sides, views, runs, threads, seed=None))]
pub(crate) fn audit_fits<'py>(
    py: Python<'py>,
    sides: (Vec<CallArgument<'py>>, Vec<CallArgument<'py>>),
    views: Vec<ViewArgument<'py>>,
    runs: u64,
    threads: usize,
    seed: Option<u64>,
) -> PyResult<CountArrays<'py>> {
    let first = sides.0.iter().map(call).collect::<PyResult<Vec<_>>>()?;
    let second = sides.1.iter().map(call).collect::<PyResult<Vec<_>>>()?;
    let trial = ReplayTrial { sides: [first, second] };
    run(py, &trial, &views, runs, threads, seed)
}

/// Count what many permute-and-flip picks between two scores show.
#[pyfunction]
#[pyo3(signature = (scores, scale, picks, views, runs, threads, seed=None))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn audit_permute_and_flip<'py>(
    py: Python<'py>,
    scores: [[i64; 2]; 2],
    scale: u64,
    picks: usize,
    views: Vec<ViewArgument<'py>>,
    runs: u64,
    threads: usize,
    seed: Option<u64>,
) -> PyResult<CountArrays<'py>> {
    run(py, &PermuteAndFlipTrial { scores, scale, picks }, &views, runs, threads, seed)
}
