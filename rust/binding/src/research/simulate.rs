//! Bindings of the simulated environments. Worlds are immutable: a round is a function of seed and number.

use fliphat_core::public::theta::Theta;
use fliphat_core::research::simulate::clicks::{Clicks, SparseRows};
use fliphat_core::research::simulate::conditional::Dependence;
use fliphat_core::research::simulate::linear::{Linear, Margin, Offsets};
use fliphat_core::research::simulate::marginal::Marginal;
use fliphat_core::research::simulate::reward::Reward;
use fliphat_core::research::simulate::{self, Offer, Outcome};
use fliphat_core::runtime::error::Error;
use numpy::{PyArray1, PyReadonlyArray1, PyReadwriteArray2, PyReadwriteArray3};
use pyo3::prelude::*;

use crate::matrix::in_order_mut;
use crate::runtime::Raised;

type Floats<'py> = Bound<'py, PyArray1<f64>>;
type Ints<'py> = Bound<'py, PyArray1<i32>>;
/// Arms, rewards and regret.
type Played<'py> = (Bound<'py, PyArray1<i64>>, Floats<'py>, Floats<'py>);
/// Means and luck.
type Offered<'py> = (Floats<'py>, Floats<'py>);
/// The arrays of a CSR matrix: offsets, columns, values.
type CsrArrays<'py> = (Ints<'py>, Ints<'py>, Bound<'py, PyArray1<f32>>);

/// Sparse vector on the way in: ascending columns and their values.
type Pairs<'py> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, f64>);

fn theta((columns, values): &Pairs<'_>, dimension: usize) -> PyResult<Theta> {
    let (columns, values) = (columns.as_slice()?, values.as_slice()?);
    if columns.len() != values.len() || columns.iter().any(|column| *column < 0) {
        return Err(Raised::from(Error::invalid("columns must be one for each value, none below 0")).into());
    }
    let pairs = columns.iter().map(|column| *column as usize).zip(values.iter().copied());
    Ok(Theta::from_pairs(pairs, dimension).map_err(Raised::from)?)
}

fn unknown(what: &str, name: &str) -> PyErr {
    Raised::from(Error::invalid(format!("unknown {what} {name:?}"))).into()
}

fn played(py: Python<'_>, outcome: Outcome) -> Played<'_> {
    (
        PyArray1::from_vec(py, outcome.arms),
        PyArray1::from_vec(py, outcome.rewards),
        PyArray1::from_vec(py, outcome.regret),
    )
}

fn offered(py: Python<'_>, offer: Offer) -> Offered<'_> {
    (PyArray1::from_vec(py, offer.means), PyArray1::from_vec(py, offer.luck))
}

fn sparse(py: Python<'_>, rows: SparseRows) -> CsrArrays<'_> {
    (
        PyArray1::from_vec(py, rows.offsets),
        PyArray1::from_vec(py, rows.columns),
        PyArray1::from_vec(py, rows.values),
    )
}

/// Dense contexts with mean rewards linear in a sparse truth.
#[pyclass(frozen, module = "fliphat._native")]
pub(crate) struct LinearWorld {
    world: Linear,
}

#[pymethods]
impl LinearWorld {
    #[new]
    #[pyo3(signature = (*, dim, arms, truth, contexts, shape, scale, reward, noise_scale, seed, margin=None, width=None))]
    #[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
    fn new(
        dim: usize,
        arms: usize,
        truth: Pairs<'_>,
        contexts: &str,
        shape: f64,
        scale: f64,
        reward: &str,
        noise_scale: f64,
        seed: u64,
        margin: Option<(f64, Option<f64>)>,
        width: Option<usize>,
    ) -> PyResult<Self> {
        let (marginal, dependence) = match contexts {
            "independent" => (Marginal::Gaussian, Dependence::Independent),
            "ar1" => (Marginal::Gaussian, Dependence::Chain(shape)),
            "equicorrelated" => {
                (Marginal::Gaussian, Dependence::Shared { rho: shape, width: width.unwrap_or(dim.max(1)) })
            }
            "student t 4" => (Marginal::StudentT4, Dependence::Independent),
            "uniform" => (Marginal::Uniform, Dependence::Independent),
            "truncated" => (Marginal::Truncated(shape as f32), Dependence::Independent),
            _ => return Err(unknown("contexts", contexts)),
        };
        let reward = match reward {
            "gaussian" => Reward::Gaussian(noise_scale),
            "uniform" => Reward::Uniform(noise_scale),
            "rademacher" => Reward::Rademacher(noise_scale),
            "binary" => Reward::Binary,
            _ => return Err(unknown("reward", reward)),
        };
        let margin = margin.map(|(width, alpha)| match alpha {
            Some(alpha) => Margin::Power { width, alpha },
            None => Margin::Fixed(width),
        });
        let truth = theta(&truth, dim)?;
        let world = Linear { arms, truth, marginal, dependence, scale, reward, margin, seed };
        world.check().map_err(Raised::from)?;
        Ok(LinearWorld { world })
    }

    /// Play rounds greedily on an estimate, drawing only what is looked at.
    #[pyo3(signature = (first, rounds, estimate, rows=None, offsets=None))]
    fn play<'py>(
        &self,
        py: Python<'py>,
        first: u64,
        rounds: usize,
        estimate: Pairs<'py>,
        rows: Option<PyReadwriteArray2<'py, f32>>,
        offsets: Option<(PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, f64>)>,
    ) -> PyResult<Played<'py>> {
        let estimate = theta(&estimate, self.world.truth.dimension())?;
        let mut rows = rows;
        let rows = rows.as_mut().map(in_order_mut).transpose()?;
        let offsets = match &offsets {
            Some((scores, means)) => Some(Offsets { scores: scores.as_slice()?, means: means.as_slice()? }),
            None => None,
        };
        let outcome = py.detach(|| self.world.play(first, rounds, &estimate, offsets, rows));
        Ok(played(py, outcome.map_err(Raised::from)?))
    }

    /// Draw rounds whole into `contexts`; returns means and luck.
    fn draw<'py>(
        &self,
        py: Python<'py>,
        first: u64,
        mut contexts: PyReadwriteArray3<'py, f32>,
    ) -> PyResult<Offered<'py>> {
        let rounds = contexts.as_array().dim().0;
        let contexts = in_order_mut(&mut contexts)?;
        let offer = py.detach(|| self.world.draw(first, rounds, contexts)).map_err(Raised::from)?;
        Ok(offered(py, offer))
    }
}

/// Sparse contexts with power-law features and binary rewards.
#[pyclass(frozen, module = "fliphat._native")]
pub(crate) struct ClickWorld {
    world: Clicks,
    dimension: usize,
}

#[pymethods]
impl ClickWorld {
    #[new]
    #[pyo3(signature = (*, dim, arms, truth, intercept, cardinalities, tokens, vocabulary, power, seed))]
    #[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
    fn new(
        dim: usize,
        arms: usize,
        truth: Pairs<'_>,
        intercept: f64,
        cardinalities: Vec<usize>,
        tokens: usize,
        vocabulary: usize,
        power: f64,
        seed: u64,
    ) -> PyResult<Self> {
        let truth = theta(&truth, dim)?;
        let world = Clicks::new(arms, truth, intercept, &cardinalities, tokens, vocabulary, power, seed);
        Ok(ClickWorld { world: world.map_err(Raised::from)?, dimension: dim })
    }

    /// Play rounds greedily on an estimate; returns the chosen rows too.
    fn play<'py>(
        &self,
        py: Python<'py>,
        first: u64,
        rounds: usize,
        estimate: Pairs<'py>,
    ) -> PyResult<(Played<'py>, CsrArrays<'py>)> {
        let estimate = theta(&estimate, self.dimension)?;
        let (outcome, rows) =
            py.detach(|| self.world.play(first, rounds, &estimate)).map_err(Raised::from)?;
        Ok((played(py, outcome), sparse(py, rows)))
    }

    /// Draw rounds whole; returns means and luck, and every arm's row.
    fn draw<'py>(
        &self,
        py: Python<'py>,
        first: u64,
        rounds: usize,
    ) -> PyResult<(Offered<'py>, CsrArrays<'py>)> {
        let (offer, rows) = py.detach(|| self.world.draw(first, rounds)).map_err(Raised::from)?;
        Ok((offered(py, offer), sparse(py, rows)))
    }
}

/// One uniform word for each of some rounds.
#[pyfunction]
pub(crate) fn round_words(
    py: Python<'_>,
    seed: u64,
    first: u64,
    rounds: usize,
) -> PyResult<Bound<'_, PyArray1<u64>>> {
    Ok(PyArray1::from_vec(py, simulate::round_words(seed, first, rounds).map_err(Raised::from)?))
}
