//! Bindings of totals that are released again and again, and of a dense fit's episode, which is added to them.

use fliphat_core::private::board::Range;
use fliphat_core::private::candidates::Explained;
use fliphat_core::private::dense::{Asked, Map, Part, RowSums};
use fliphat_core::private::episode::{Answer, Last, Picking, Question, Signs, release};
use fliphat_core::private::gradient::Plan;
use fliphat_core::private::totals::{self, TotalPart, Totals};
use fliphat_core::runtime::error::{Error, Result};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::matrix::{AnyRows, with_rows};
use crate::noise::kinds::{NoiseKind, with_bits};
use crate::noise::release::positions;
use crate::noise::seeded::with_noise;
use crate::runtime::Raised;

type Shown<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyBytes>);

/// Name, integers, weight, releases and weight before, sigmas, shift, whether it is kept.
type Given<'py> = (u64, PyReadonlyArray1<'py, i64>, u64, (u64, u64), PyReadonlyArray1<'py, u64>, u32, bool);

/// The same of a dense fit, whose integers are not there yet: what is summed stands in their place.
type Asks<'py> = (u64, String, u64, (u64, u64), PyReadonlyArray1<'py, u64>, u32, bool);

/// How many, the scale, weights of the public columns and a level for each group, the clip, and how many columns.
type Picks<'py> = (usize, u64, PyReadonlyArray1<'py, f64>, f64, usize);

fn shown<'py>(py: Python<'py>, released: Vec<i64>, kept: &[u8]) -> Shown<'py> {
    (PyArray1::from_vec(py, released), PyBytes::new(py, kept))
}

/// Releases parts, added to the totals in `secret`, and returns them with the new secret.
#[pyfunction]
#[pyo3(signature = (secret, parts, *, seeded=None))]
pub(crate) fn release_totals<'py>(
    py: Python<'py>,
    secret: Option<&[u8]>,
    parts: Vec<Given<'py>>,
    seeded: Option<(u64, u64)>,
) -> PyResult<Shown<'py>> {
    let (mut asked, mut added) = (Vec::new(), Vec::new());
    for (name, integers, weight, before, sigmas, shift, kept) in &parts {
        let (integers, sigmas) = (integers.as_slice()?, sigmas.as_slice()?);
        if integers.len() != sigmas.len() {
            return Err(Raised::from(Error::invalid("sigmas must have one number for each integer")).into());
        }
        added.extend_from_slice(integers);
        let (name, weight, before, shift, kept) = (*name, *weight, *before, *shift, *kept);
        asked.push(TotalPart { name, weight, before, sigmas, shift, kept });
    }
    let totals = Totals { secret, parts: &asked };
    let release =
        || -> Result<_> { Ok(with_noise!(seeded, |noise| totals::release_totals(&added, totals, noise)?)) };
    let (released, kept) = py.detach(release).map_err(Raised::from)?;
    Ok(shown(py, released, &kept))
}

fn part_named(name: &str) -> Result<Part> {
    Ok(match name {
        "arms" => Part::Arms,
        "columns" => Part::Columns,
        "moments" => Part::Moments,
        "squares" => Part::Squares,
        "board" => Part::Board,
        _ => return Err(Error::invalid("parts must be arms, columns, moments, squares or board")),
    })
}

type Integers<'py> = Bound<'py, PyArray1<i64>>;

/// Releases an episode of a dense fit: the sums of its rows are added to totals. `public` is the number of groups, the
/// range of rewards, the radius of rows and that of squares; `map` has the public columns, what is taken off each, and
/// what they are then multiplied with, those that are picked last. `picking`, where columns are picked, is how many, the
/// scale of the mechanism, what the public columns explain, the clip and how many columns there are to pick from.
#[pyfunction]
#[pyo3(signature = (rows, rewards, groups, present, public, map, parts, secret, noise, picking=None, threads=None))]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn release_dense<'py>(
    py: Python<'py>,
    rows: AnyRows<'py>,
    rewards: PyReadonlyArray1<'py, f64>,
    groups: PyReadonlyArray1<'py, i64>,
    present: PyReadonlyArray1<'py, u8>,
    public: (usize, (f64, f64), i64, i64),
    map: (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, f64>),
    parts: Vec<Asks<'py>>,
    secret: Option<&[u8]>,
    noise: NoiseKind<'py>,
    picking: Option<Picks<'py>>,
    threads: Option<usize>,
) -> PyResult<(Integers<'py>, Integers<'py>, Bound<'py, PyBytes>)> {
    let (rewards, groups, present) = (rewards.as_slice()?, groups.as_slice()?, Some(present.as_slice()?));
    let (columns, centers, scales) = (positions(map.0.as_slice()?), map.1.as_slice()?, map.2.as_slice()?);
    let bits = noise.bits();
    let mut explained = None;
    let mut how = Picking::None;
    if let Some((count, scale, weights, clip, candidates)) = &picking {
        let (signs, following, excluded) = (Signs::None, false, &columns[..]);
        how = Picking::Columns { count: *count, scale: *scale, signs, following, excluded };
        explained = Some(Explained { weights: weights.as_slice()?, clip: *clip, candidates: *candidates });
    }
    let (count, (low, high), radius, square_radius) = public;
    let (mut names, mut specs) = (Vec::new(), Vec::new());
    for (number, name, weight, before, sigmas, shift, kept) in &parts {
        names.push(part_named(name).map_err(Raised::from)?);
        let (name, weight, before, shift, kept) = (*number, *weight, *before, *shift, *kept);
        specs.push(TotalPart { name, weight, before, sigmas: sigmas.as_slice()?, shift, kept });
    }
    let answer = with_rows!(rows, |rows| py.detach(|| -> Result<Answer> {
        let map = Map { columns: &columns, centers, scales, radius };
        let range = Range::new(low, high)?;
        let asked = Asked { map, explained, groups: count, range, parts: &names, square_radius };
        let plan = Plan { threads, ..Plan::default() };
        let mut sums = RowSums { rows: &rows, rewards, groups, present, asked: &asked, plan };
        let vector = Last::Totals(Totals { secret, parts: &specs });
        let question = Question { numbers: None, picking: how, vector };
        with_bits!(bits, |noise| release(&question, &mut sums, noise))
    }))
    .map_err(Raised::from)?;
    let picked = PyArray1::from_iter(py, answer.picks.iter().map(|pick| pick.column as i64));
    let (vector, secret) = shown(py, answer.vector, &answer.secret);
    Ok((picked, vector, secret))
}
