//! The three kinds of noise that a release can have, as Python passes them.

use std::sync::{Arc, Mutex, PoisonError};

use fliphat_core::private::draws::{Call, Noise, Recording};
use fliphat_core::private::peel::ColumnPick;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::noise::release::positions;

/// Bits of the operating system, a fresh key for every step: the only noise that protects anybody.
#[pyclass(frozen, eq, module = "fliphat._native")]
#[derive(PartialEq)]
pub(crate) struct SecureNoise;

#[pymethods]
impl SecureNoise {
    #[classattr]
    #[allow(non_upper_case_globals)] // An attribute of a Python class.
    const protects: bool = <fliphat_core::noise::entropy::SecureRng as Noise>::PROTECTS;

    #[new]
    fn new() -> Self {
        SecureNoise
    }
}

/// The same samplers on bits that anyone can repeat: for simulation, where nothing is private.
#[pyclass(frozen, eq, module = "fliphat._native")]
#[derive(PartialEq)]
pub(crate) struct SeededNoise {
    seed: u64,
    stream: u64,
}

#[pymethods]
impl SeededNoise {
    #[classattr]
    #[allow(non_upper_case_globals)] // An attribute of a Python class.
    const protects: bool = <fliphat_core::noise::entropy::predictable::SeededNoise as Noise>::PROTECTS;

    #[new]
    fn new(seed: u64, stream: u64) -> Self {
        SeededNoise { seed, stream }
    }
}

/// No noise: picks are given, vectors show as zeros, and what noise was asked for is kept. For the audit.
#[pyclass(frozen, module = "fliphat._native")]
pub(crate) struct RecordingNoise {
    recording: Arc<Mutex<Recording>>,
    fits: Mutex<Vec<Py<PyTuple>>>,
}

#[pymethods]
impl RecordingNoise {
    #[classattr]
    #[allow(non_upper_case_globals)] // An attribute of a Python class.
    const protects: bool = <Recording as Noise>::PROTECTS;

    #[new]
    #[pyo3(signature = (picks=vec![]))]
    fn new(picks: Vec<(i64, i64)>) -> Self {
        let given =
            picks.into_iter().map(|(column, sign)| ColumnPick { column: positions(&[column])[0], sign });
        RecordingNoise { recording: Arc::new(Mutex::new(Recording::new(given))), fits: Mutex::default() }
    }

    /// What `niht_fit` was given: rows, rewards, start, settings and which rewards count. Private.
    #[getter]
    fn fits(&self, py: Python<'_>) -> Vec<Py<PyTuple>> {
        let fits = self.fits.lock().unwrap_or_else(PoisonError::into_inner);
        fits.iter().map(|fit| fit.clone_ref(py)).collect()
    }

    /// What was asked for, in order: `("picks", scores, count, scale, signed, excluded)` `("vector", values, sigmas)`
    /// or `("total", name, values, weight, before, sigmas, shift, kept)`. Private: sums without noise.
    #[getter]
    fn calls<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let recording = self.recording.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = |call: &Call| match call {
            Call::Picks { scores, count, scale, signed, excluded } => {
                let excluded: Vec<i64> = excluded.iter().map(|column| *column as i64).collect();
                ("picks", PyArray1::from_slice(py, scores), *count, *scale, *signed, excluded)
                    .into_pyobject(py)
            }
            Call::Vector { values, sigmas } => {
                ("vector", PyArray1::from_slice(py, values), PyArray1::from_slice(py, sigmas))
                    .into_pyobject(py)
            }
            Call::Total { name, values, weight, before, sigmas, shift, kept } => {
                let (values, sigmas) = (PyArray1::from_slice(py, values), PyArray1::from_slice(py, sigmas));
                ("total", *name, values, *weight, *before, sigmas, *shift, *kept).into_pyobject(py)
            }
        };
        recording.calls().iter().map(shown).collect()
    }
}

impl RecordingNoise {
    /// Keep what a fit of several iterations was given: its outcomes are too many to be given one by one.
    pub(crate) fn keep_fit(&self, fit: Bound<'_, PyTuple>) {
        self.fits.lock().unwrap_or_else(PoisonError::into_inner).push(fit.unbind());
    }
}

/// Any of the three, as an argument.
#[derive(FromPyObject)]
pub(crate) enum NoiseKind<'py> {
    /// See [`SecureNoise`].
    Secure(#[allow(dead_code)] PyRef<'py, SecureNoise>),
    /// See [`SeededNoise`].
    Seeded(PyRef<'py, SeededNoise>),
    /// See [`RecordingNoise`].
    Recording(PyRef<'py, RecordingNoise>),
}

/// The same without Python.
pub(crate) enum Bits {
    /// Bits of the operating system.
    Secure,
    /// Seed and stream.
    Seeded(u64, u64),
    /// No bits.
    Recording(Arc<Mutex<Recording>>),
}

impl NoiseKind<'_> {
    pub(crate) fn bits(&self) -> Bits {
        match self {
            NoiseKind::Secure(_) => Bits::Secure,
            NoiseKind::Seeded(seeded) => Bits::Seeded(seeded.seed, seeded.stream),
            NoiseKind::Recording(recording) => Bits::Recording(Arc::clone(&recording.recording)),
        }
    }
}

/// Runs `$body` with `$noise` bound to the noise of these [`Bits`].
macro_rules! with_bits {
    ($bits:expr, |$noise:ident| $body:expr) => {
        match $bits {
            $crate::noise::kinds::Bits::Secure => {
                let $noise = &mut fliphat_core::noise::entropy::SecureRng::from_os()?;
                $body
            }
            $crate::noise::kinds::Bits::Seeded(seed, stream) => {
                let $noise = &mut fliphat_core::noise::entropy::predictable::SeededNoise::new(seed, stream);
                $body
            }
            $crate::noise::kinds::Bits::Recording(recording) => {
                let $noise = &mut *recording.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                $body
            }
        }
    };
}

pub(crate) use with_bits;
