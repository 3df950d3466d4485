//! Binding of an episode of pursuit in one call.
//!
//! With `seeded` (a seed and a stream) the noise is predictable and nothing is private: for tests.
//! `fliphat.kernels` never passes it.

use fliphat_core::private::gradient::Plan;
use fliphat_core::private::peel::ColumnPicker;
use fliphat_core::private::pursuit::{Answer, Question, pursue};
use fliphat_core::private::relative::numbers::Ruler;
use fliphat_core::private::relative::pass::Public;
use fliphat_core::private::relative::settled::Measure;
use fliphat_core::runtime::error::Result;
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::matrix::{AnyRows, with_rows};
use crate::noise::release::positions;
use crate::noise::seeded::with_noise;
use crate::private::gradient::loss_named;
use crate::runtime::Raised;

type IntegerArray<'py> = Bound<'py, PyArray1<i64>>;

/// Release picks and one vector; returns columns in the order picked, their signs and noisy sums.
///
/// `public` is `(one, loss, range, clip)`, `picking` is `(count, scale, signed)`, `bounds` is `(clip, radius, scale,
/// cap)` and `ruler`, where whole rows are measured, `(size, octaves)`.
#[pyfunction]
#[pyo3(signature = (
    rows, y, columns, weights, shift, units, public, picking, whiten, bounds, ruler, sigmas, present=None,
    threads=None, *, seeded=None
))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn pursuit_release<'py>(
    py: Python<'py>,
    rows: AnyRows<'py>,
    y: PyReadonlyArray1<'py, f64>,
    columns: PyReadonlyArray1<'py, i64>,
    weights: PyReadonlyArray1<'py, f64>,
    shift: Option<PyReadonlyArray1<'py, f64>>,
    units: Option<PyReadonlyArray1<'py, f64>>,
    public: (f64, &str, Option<(f64, f64)>, f64),
    picking: (usize, u64, bool),
    whiten: PyReadonlyArray2<'py, f64>,
    bounds: (f64, i64, f64, f64),
    ruler: Option<(f64, f64)>,
    sigmas: PyReadonlyArray1<'py, u64>,
    present: Option<PyReadonlyArray1<'py, u8>>,
    threads: Option<usize>,
    seeded: Option<(u64, u64)>,
) -> PyResult<(IntegerArray<'py>, IntegerArray<'py>, IntegerArray<'py>)> {
    let (y, weights, sigmas) = (y.as_slice()?, weights.as_slice()?, sigmas.as_slice()?);
    let (columns, whiten) = (positions(columns.as_slice()?), whiten.as_slice()?);
    let shift = shift.as_ref().map(|shift| shift.as_slice()).transpose()?;
    let units = units.as_ref().map(|units| units.as_slice()).transpose()?;
    let present = present.as_ref().map(|flags| flags.as_slice()).transpose()?;
    let (one, loss, range, pick_clip) = public;
    let (picks, pick_scale, signed) = picking;
    let (clip, radius, scale, cap) = bounds;
    let question = Question {
        public: Public {
            one,
            columns: &columns,
            weights,
            shift,
            units,
            loss: loss_named(loss)?,
            range,
            clip: pick_clip,
        },
        picker: ColumnPicker::new(pick_scale, signed).map_err(Raised::from)?,
        picks,
        measure: Measure { whiten, clip, radius, scale, cap },
        ruler: ruler.map(|(size, octaves)| Ruler { size, octaves, units }),
        sigmas,
    };
    let plan = Plan { threads, ..Plan::default() };
    let answer = with_rows!(rows, |rows| py.detach(|| -> Result<Answer> {
        with_noise!(seeded, |noise| pursue(&rows, y, present, &question, noise, plan))
    }))
    .map_err(Raised::from)?;
    let columns = PyArray1::from_iter(py, answer.picks.iter().map(|pick| pick.column as i64));
    let signs = PyArray1::from_iter(py, answer.picks.iter().map(|pick| pick.sign));
    Ok((columns, signs, PyArray1::from_vec(py, answer.vector)))
}
