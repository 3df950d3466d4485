//! Binding of an episode of pursuit: its question, its release, and the sums of a part of its rows.

use fliphat_core::private::board;
use fliphat_core::private::draws::Added;
use fliphat_core::private::episode::{Answer, Last, Picking, Question, Signs, Sums, release};
use fliphat_core::private::gradient::{Loss, Plan};
use fliphat_core::private::peel::ColumnPick;
use fliphat_core::private::pursuit::{Asked, RowSums, vector_sigmas};
use fliphat_core::private::relative::numbers::Ruler;
use fliphat_core::private::relative::pass::Public;
use fliphat_core::private::relative::settled::Measure;
use fliphat_core::runtime::error::{Error, Result};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::matrix::{AnyRows, InOrder, with_rows};
use crate::noise::kinds::{NoiseKind, with_bits};
use crate::noise::release::positions;
use crate::private::gradient::loss_named;
use crate::private::sums::{Callback, integers, to_bytes};
use crate::runtime::Raised;

/// What an episode of pursuit asks of its rows and which noise it has. Public; Python makes it from a priced release.
#[pyclass(frozen, module = "fliphat._native")]
pub(crate) struct PursuitQuestion {
    columns: Vec<usize>,
    weights: Vec<f64>,
    one: f64,
    shift: Option<Vec<f64>>,
    units: Option<Vec<f64>>,
    loss: Loss,
    range: Option<(f64, f64)>,
    pick_clip: f64,
    assumed: f64,
    picks: usize,
    pick_scale: u64,
    signs: Signs,
    whiten: Vec<f64>,
    bounds: (f64, i64, f64, f64),
    octaves: Option<f64>,
    board: Option<board::Range>,
    numbers: Vec<u64>,
    vector: Vec<u64>,
}

fn owned(array: Option<PyReadonlyArray1<'_, f64>>) -> PyResult<Option<Vec<f64>>> {
    Ok(array.as_ref().map(|array| array.as_slice()).transpose()?.map(<[f64]>::to_vec))
}

#[pymethods]
impl PursuitQuestion {
    /// `public` is `(one, loss, range, pick_clip)`; `picking` is `(count, scale, signed, last_signed, assumed)`, where
    /// picks follow one another if `assumed` is not 0; `bounds` is `(clip, radius, scale, cap)`; `sigmas` are those of
    /// gradients, of second moments above the diagonal and of the residuals' size; `rows`, where whole rows are
    /// measured, has the octaves and three sigmas; `board`, where it is asked for, has the range of rewards and one sigma.
    #[new]
    #[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
    fn new(
        columns: PyReadonlyArray1<'_, i64>,
        theta: PyReadonlyArray1<'_, f64>,
        shift: Option<PyReadonlyArray1<'_, f64>>,
        units: Option<PyReadonlyArray1<'_, f64>>,
        public: (f64, &str, Option<(f64, f64)>, f64),
        picking: (usize, u64, bool, bool, f64),
        whiten: PyReadonlyArray2<'_, f64>,
        bounds: (f64, i64, f64, f64),
        sigmas: [u64; 3],
        rows: Option<(f64, [u64; 3])>,
        board: Option<(f64, f64, u64)>,
    ) -> PyResult<Self> {
        let (one, loss, range, pick_clip) = public;
        let (picks, pick_scale, signed, last_signed, assumed) = picking;
        let columns = positions(columns.as_slice()?);
        let m = 1 + columns.len() + picks;
        if whiten.as_array().dim() != (m, m) {
            let rule =
                "whiten must have a row and a column for the constant, each public column and each pick";
            return Err(Raised::from(Error::invalid(rule)).into());
        }
        // The constant's column has the value `one` instead of 1.
        let mut weights = theta.as_slice()?.to_vec();
        weights.iter_mut().take(1).for_each(|first| *first /= one);
        let mut vector = vector_sigmas(m, sigmas);
        vector.extend(board.iter().flat_map(|(_, _, sigma)| [*sigma; board::WIDTH]));
        let earned = board.map(|(low, high, _)| board::Range::new(low, high)).transpose();
        Ok(PursuitQuestion {
            columns,
            weights,
            one,
            shift: owned(shift)?,
            units: owned(units)?,
            loss: loss_named(loss)?,
            range,
            pick_clip,
            assumed,
            picks,
            pick_scale,
            signs: match (signed, last_signed) {
                (true, true) => Signs::All,
                (true, false) => Signs::AllButLast,
                _ => Signs::None,
            },
            whiten: whiten.in_order()?.to_vec(),
            bounds,
            octaves: rows.map(|(octaves, _)| octaves),
            numbers: rows.map_or(Vec::new(), |(_, sigmas)| sigmas.to_vec()),
            board: earned.map_err(Raised::from)?,
            vector,
        })
    }

    /// How many integers the last vector has.
    #[getter]
    fn length(&self) -> usize {
        self.vector.len()
    }
}

impl PursuitQuestion {
    fn asked(&self) -> Asked<'_> {
        let (clip, radius, scale, cap) = self.bounds;
        let units = self.units.as_deref();
        Asked {
            public: Public {
                one: self.one,
                columns: &self.columns,
                weights: &self.weights,
                shift: self.shift.as_deref(),
                units,
                loss: self.loss,
                range: self.range,
                clip: self.pick_clip,
            },
            assumed: self.assumed,
            measure: Measure { whiten: &self.whiten, clip, radius, scale, cap },
            ruler: self.octaves.map(|octaves| Ruler { size: self.one, octaves, units }),
            board: self.board,
        }
    }

    fn question(&self) -> Question<'_> {
        let picking = if self.picks == 0 {
            Picking::None
        } else {
            Picking::Columns {
                count: self.picks,
                scale: self.pick_scale,
                signs: self.signs,
                following: self.assumed != 0.0,
                excluded: &self.columns,
            }
        };
        Question {
            numbers: (!self.numbers.is_empty()).then_some(Added::Gaussian(&self.numbers)),
            picking,
            vector: Last::Fresh(Added::Gaussian(&self.vector)),
        }
    }
}

type IntegerArray<'py> = Bound<'py, PyArray1<i64>>;

/// Noisy numbers, columns in the order picked, their signs (0 without), and the noisy vector.
type Shown<'py> = (IntegerArray<'py>, IntegerArray<'py>, IntegerArray<'py>, IntegerArray<'py>);

fn shown(py: Python<'_>, answer: Answer) -> Shown<'_> {
    (
        PyArray1::from_vec(py, answer.numbers),
        PyArray1::from_iter(py, answer.picks.iter().map(|pick| pick.column as i64)),
        PyArray1::from_iter(py, answer.picks.iter().map(|pick| pick.sign)),
        PyArray1::from_vec(py, answer.vector),
    )
}

/// Release an episode of rows of this process.
#[pyfunction]
#[pyo3(signature = (question, rows, y, present, noise, threads=None))]
pub(crate) fn release_rows<'py>(
    py: Python<'py>,
    question: &PursuitQuestion,
    rows: AnyRows<'py>,
    y: PyReadonlyArray1<'py, f64>,
    present: Option<PyReadonlyArray1<'py, u8>>,
    noise: NoiseKind<'py>,
    threads: Option<usize>,
) -> PyResult<Shown<'py>> {
    let (y, bits) = (y.as_slice()?, noise.bits());
    let present = present.as_ref().map(|flags| flags.as_slice()).transpose()?;
    let (asked, plan) = (question.asked(), Plan { threads, ..Plan::default() });
    let answer = with_rows!(rows, |rows| py.detach(|| -> Result<Answer> {
        let mut sums = RowSums::new(&rows, y, present, &asked, plan);
        with_bits!(bits, |noise| release(&question.question(), &mut sums, noise))
    }))
    .map_err(Raised::from)?;
    Ok(shown(py, answer))
}

/// Release an episode of rows that live elsewhere: methods of `sums` return their integers as bytes.
#[pyfunction]
pub(crate) fn release_sums<'py>(
    py: Python<'py>,
    question: &PursuitQuestion,
    sums: Py<PyAny>,
    noise: NoiseKind<'py>,
) -> PyResult<Shown<'py>> {
    let bits = noise.bits();
    let run = || -> std::result::Result<Answer, Raised> {
        with_bits!(bits, |noise| release(&question.question(), &mut Callback(&sums), noise))
    };
    Ok(shown(py, py.detach(run)?))
}

/// The integers of a part of an episode's rows, as bytes: `step` is "numbers", "candidates", "further" or "vector".
#[pyfunction]
#[pyo3(signature = (question, step, rows, y, present=None, columns=vec![], signs=vec![], threads=None))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn partial_sums<'py>(
    py: Python<'py>,
    question: &PursuitQuestion,
    step: &str,
    rows: AnyRows<'py>,
    y: PyReadonlyArray1<'py, f64>,
    present: Option<PyReadonlyArray1<'py, u8>>,
    columns: Vec<i64>,
    signs: Vec<i64>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyBytes>> {
    let y = y.as_slice()?;
    let present = present.as_ref().map(|flags| flags.as_slice()).transpose()?;
    let picked: Vec<ColumnPick> = positions(&columns)
        .into_iter()
        .zip(signs)
        .map(|(column, sign)| ColumnPick { column, sign })
        .collect();
    let (asked, plan) = (question.asked(), Plan { threads, ..Plan::default() });
    let found = with_rows!(rows, |rows| py.detach(|| -> Result<Vec<i64>> {
        let mut sums = RowSums::new(&rows, y, present, &asked, plan);
        match step {
            "numbers" => sums.numbers(),
            "candidates" => Ok(sums.candidates()?.into_owned()),
            "further" => Ok(sums.further(&picked)?.into_owned()),
            "vector" => sums.vector(&picked),
            _ => Err(Error::invalid("step must be 'numbers', 'candidates', 'further' or 'vector'")),
        }
    }))
    .map_err(Raised::from)?;
    Ok(to_bytes(py, &found))
}

/// The sum of integers that came as bytes.
#[pyfunction]
pub(crate) fn add_sums<'py>(
    py: Python<'py>,
    parts: Vec<Bound<'py, PyBytes>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut total: Vec<i64> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let part = integers(part.as_bytes()).map_err(Raised::from)?;
        if at == 0 {
            total = part;
            continue;
        }
        if part.len() != total.len() {
            return Err(Raised::from(Error::invalid("sums must have the same length")).into());
        }
        total.iter_mut().zip(part).for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }
    Ok(to_bytes(py, &total))
}
