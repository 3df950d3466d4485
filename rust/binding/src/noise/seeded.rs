//! Raw samplers with predictable draws in bulk, for tests of their distributions. No privacy.

use fliphat_core::noise::entropy::NoiseSource;
use fliphat_core::noise::entropy::predictable::SeededNoise;
use fliphat_core::noise::exact::bernoulli::BernoulliExp;
use fliphat_core::noise::exact::gaussian::DiscreteGaussian;
use fliphat_core::noise::exact::laplace::DiscreteLaplace;
use fliphat_core::noise::exact::rounded::RoundedGaussian;
use fliphat_core::noise::exact::textbook;
use fliphat_core::private::peel::{ColumnPicker, PeelScratch};
use fliphat_core::runtime::error::{Error, Result};
use numpy::{PyReadonlyArray1, PyReadwriteArray1, PyReadwriteArray2};
use pyo3::prelude::*;

use crate::matrix::in_order_mut;
use crate::noise::release::{contiguous, peeler, positions};
use crate::runtime::Raised;

/// Runs `$body` with `$noise` bound to the secure generator or, given a seed and a stream, to predictable noise.
macro_rules! with_noise {
    ($seeded:expr, |$noise:ident| $body:expr) => {
        match $seeded {
            None => {
                let $noise = &mut fliphat_core::noise::entropy::SecureRng::from_os()?;
                $body
            }
            Some((seed, stream)) => {
                let $noise = &mut fliphat_core::noise::entropy::predictable::SeededNoise::new(seed, stream);
                $body
            }
        }
    };
}

pub(crate) use with_noise;

/// Fills `out` with raw 64-bit words of stream `stream` of `seed`.
#[pyfunction]
pub(crate) fn seeded_words(mut out: PyReadwriteArray1<'_, u64>, seed: u64, stream: u64) -> PyResult<()> {
    let out = contiguous(out.as_slice_mut()).map_err(Raised::from)?;
    SeededNoise::new(seed, stream).fill(out);
    Ok(())
}

/// Fills `out` with draws of `sampler` and returns how many words they took.
///
/// `bernoulli` flips a coin of probability exp(-scale/denominator); the others ignore `denominator`.
#[pyfunction]
#[pyo3(signature = (out, sampler, scale, seed, *, stream=0, denominator=1))]
pub(crate) fn seeded_draw(
    py: Python<'_>,
    mut out: PyReadwriteArray1<'_, i64>,
    sampler: &str,
    scale: u64,
    seed: u64,
    stream: u64,
    denominator: u64,
) -> PyResult<u64> {
    let out = contiguous(out.as_slice_mut()).map_err(Raised::from)?;
    let draw = || -> Result<u64> {
        let noise = &mut SeededNoise::new(seed, stream);
        match sampler {
            "laplace" => DiscreteLaplace::new("scale", scale)?.fill(out, noise),
            "laplace exact" => DiscreteLaplace::new("scale", scale)?.always_exact().fill(out, noise),
            "laplace textbook" => out.fill_with(|| textbook::laplace(scale, noise)),
            "gaussian" => {
                let gaussian = DiscreteGaussian::new("scale", scale)?;
                out.fill_with(|| gaussian.sample(noise));
            }
            "gaussian exact" => {
                let gaussian = DiscreteGaussian::new("scale", scale)?.always_exact();
                out.fill_with(|| gaussian.sample(noise));
            }
            "rounded_gaussian" => RoundedGaussian::new("scale", scale)?.fill(out, noise),
            "rounded_gaussian exact" => RoundedGaussian::new("scale", scale)?.always_exact().fill(out, noise),
            "gaussian textbook" => out.fill_with(|| textbook::gaussian(scale, noise)),
            "bernoulli" => {
                let coin = BernoulliExp::new(scale, denominator)?;
                out.fill_with(|| i64::from(coin.sample(noise)));
            }
            "bernoulli textbook" => {
                out.fill_with(|| i64::from(textbook::bernoulli_exp(scale.into(), denominator.into(), noise)));
            }
            _ => return Err(Error::invalid("no such sampler")),
        }
        Ok(noise.words_drawn())
    };
    Ok(py.detach(draw).map_err(Raised::from)?)
}

/// Peels `v` once for each row of `supports` and `values`, on one stream.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn seeded_peel(
    py: Python<'_>,
    v: PyReadonlyArray1<'_, i64>,
    pick_scale: u64,
    value_scale: u64,
    mechanism: &str,
    value_noise: &str,
    seed: u64,
    mut supports: PyReadwriteArray2<'_, i64>,
    mut values: PyReadwriteArray2<'_, i64>,
) -> PyResult<()> {
    let s = supports.as_array().ncols();
    let v = contiguous(v.as_slice()).map_err(Raised::from)?;
    let supports = in_order_mut(&mut supports)?;
    let values = in_order_mut(&mut values)?;
    let run = || -> Result<()> {
        let peeler = peeler(mechanism, pick_scale, value_noise, value_scale)?;
        let (mut scratch, mut picked) = (PeelScratch::default(), Vec::new());
        let noise = &mut SeededNoise::new(seed, 0);
        for (support, values) in supports.chunks_mut(s.max(1)).zip(values.chunks_mut(s.max(1))) {
            peeler.peel(v, s, noise, &mut scratch, &mut picked)?;
            for ((index, value), pick) in support.iter_mut().zip(values).zip(&picked) {
                (*index, *value) = (pick.index as i64, pick.value);
            }
        }
        Ok(())
    };
    Ok(py.detach(run).map_err(Raised::from)?)
}

/// Picks columns once for each row of `columns` and `signs`, on one stream.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // One Python call; the core takes them grouped.
pub(crate) fn seeded_picks(
    py: Python<'_>,
    scores: PyReadonlyArray1<'_, i64>,
    scale: u64,
    excluded: PyReadonlyArray1<'_, i64>,
    signed: bool,
    seed: u64,
    mut columns: PyReadwriteArray2<'_, i64>,
    mut signs: PyReadwriteArray2<'_, i64>,
) -> PyResult<()> {
    let picks = columns.as_array().ncols();
    let scores = contiguous(scores.as_slice()).map_err(Raised::from)?;
    let excluded = positions(contiguous(excluded.as_slice()).map_err(Raised::from)?);
    let columns = in_order_mut(&mut columns)?;
    let signs = in_order_mut(&mut signs)?;
    let run = || -> Result<()> {
        let picker = ColumnPicker::new(scale, signed)?;
        let noise = &mut SeededNoise::new(seed, 0);
        for (columns, signs) in columns.chunks_mut(picks.max(1)).zip(signs.chunks_mut(picks.max(1))) {
            let picked = picker.pick(scores, &excluded, picks, noise)?;
            for ((column, sign), pick) in columns.iter_mut().zip(signs).zip(picked) {
                (*column, *sign) = (pick.column as i64, pick.sign);
            }
        }
        Ok(())
    };
    Ok(py.detach(run).map_err(Raised::from)?)
}
