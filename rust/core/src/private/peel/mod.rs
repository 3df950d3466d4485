//! Peeling: the private choice of the s largest coordinates, and their noisy values (algorithm "Peeling" of
//! the FLIPHAT paper).
//!
//! | here | paper |
//! |---|---|
//! | `v`, integers in lattice units | v |
//! | `pick_scale` | beta of the exponential mechanism, or xi of report-noisy-max |
//! | `value_scale` | the scale of the final noise w~ |
//!
//! `v` is private and integer; what leaves this module is public. If replacing a person moves every |v_j|
//! by at most L:
//! * a pick of the exponential mechanism is (2L/pick_scale)-bounded-range, so (L/pick_scale)^2/2 zCDP;
//! * a pick of report-noisy-max is (2L/pick_scale)-DP;
//! * a value is (L/value_scale)^2/2 zCDP (Gaussian, discrete or rounded) or (L/value_scale)-DP (Laplace), if v_j itself moves by
//!   at most L.

mod buckets;
mod columns;
mod exponential;
mod noisy_max;

pub use columns::{ColumnPick, ColumnPicker, SIGNED_LIMIT};

use std::iter::repeat_n;

use crate::noise::entropy::NoiseSource;
use crate::noise::exact::gaussian::DiscreteGaussian;
use crate::noise::exact::laplace::DiscreteLaplace;
use crate::noise::exact::rounded::RoundedGaussian;
use crate::noise::observe::drawn;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{make_room, with_room};
use exponential::{ExponentialMechanism, ExponentialScratch};
use noisy_max::{NoisyMax, NoisyMaxScratch};

/// |v_j| is below this; released values are clamped to it, exclusive.
pub const MAGNITUDE_LIMIT: u64 = 1 << 62;

/// How a coordinate is picked among the remaining ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// Probability exactly proportional to exp(|v_j|/pick_scale).
    Exponential,
    /// The largest |v_j| + fresh discrete Laplace noise of scale pick_scale, ties to the lowest index (the
    /// paper's Peeling).
    Laplace,
}

/// What is added to the value of a picked coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueNoise {
    /// Discrete Gaussian with sigma = value_scale.
    Gaussian,
    /// A Gaussian of standard deviation value_scale, rounded to integers.
    RoundedGaussian,
    /// Discrete Laplace of scale value_scale.
    Laplace,
}

/// A coordinate that was picked, with its released value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick {
    /// The coordinate.
    pub index: usize,
    /// clamp(v_j + noise, +-(2^62 - 1)).
    pub value: i64,
}

/// Memory that calls can share. What it holds between calls is private data.
#[derive(Default)]
pub struct PeelScratch {
    exponential: ExponentialScratch,
    noisy_max: NoisyMaxScratch,
}

/// Validated peeling: from here on only bad input sizes can fail.
pub struct Peeler {
    picks: PickSampler,
    values: ValueSampler,
    pick_scale: u64,
    value_scale: u64,
}

enum PickSampler {
    Exponential(ExponentialMechanism),
    Laplace(NoisyMax),
}

enum ValueSampler {
    Gaussian(DiscreteGaussian),
    RoundedGaussian(RoundedGaussian),
    Laplace(DiscreteLaplace),
}

impl PickSampler {
    /// Its name to whoever observes draws.
    fn law(&self) -> &'static str {
        match self {
            PickSampler::Exponential(_) => "pick",
            PickSampler::Laplace(_) => "noisy max",
        }
    }
}

impl ValueSampler {
    /// Its name to whoever observes draws.
    fn law(&self) -> &'static str {
        match self {
            ValueSampler::Gaussian(_) => "discrete gaussian",
            ValueSampler::RoundedGaussian(_) => "vector",
            ValueSampler::Laplace(_) => "laplace",
        }
    }
}

impl Peeler {
    /// # Errors
    /// If a scale is not in 1..2^40.
    pub fn new(
        mechanism: Mechanism,
        pick_scale: u64,
        value_noise: ValueNoise,
        value_scale: u64,
    ) -> Result<Self> {
        Ok(Peeler {
            picks: match mechanism {
                Mechanism::Exponential => {
                    PickSampler::Exponential(ExponentialMechanism::new("pick_scale", pick_scale)?)
                }
                Mechanism::Laplace => PickSampler::Laplace(NoisyMax::new(pick_scale)?),
            },
            values: match value_noise {
                ValueNoise::Gaussian => {
                    ValueSampler::Gaussian(DiscreteGaussian::new("value_scale", value_scale)?)
                }
                ValueNoise::RoundedGaussian => {
                    ValueSampler::RoundedGaussian(RoundedGaussian::new("value_scale", value_scale)?)
                }
                ValueNoise::Laplace => {
                    ValueSampler::Laplace(DiscreteLaplace::new("value_scale", value_scale)?)
                }
            },
            pick_scale,
            value_scale,
        })
    }

    /// Scale of a pick.
    pub fn pick_scale(&self) -> u64 {
        self.pick_scale
    }

    /// Scale of a value's noise.
    pub fn value_scale(&self) -> u64 {
        self.value_scale
    }

    /// The same peeler decided by integers alone. For tests.
    #[doc(hidden)]
    pub fn always_exact(self) -> Self {
        Peeler {
            picks: match self.picks {
                PickSampler::Exponential(picks) => PickSampler::Exponential(picks.always_exact()),
                PickSampler::Laplace(picks) => PickSampler::Laplace(picks.always_exact()),
            },
            values: match self.values {
                ValueSampler::Gaussian(values) => ValueSampler::Gaussian(values.always_exact()),
                ValueSampler::RoundedGaussian(values) => ValueSampler::RoundedGaussian(values.always_exact()),
                ValueSampler::Laplace(values) => ValueSampler::Laplace(values.always_exact()),
            },
            ..self
        }
    }

    /// Picks `count` coordinates of `v` one after the other and writes them to `picked`, in that order;
    /// their values' noise is fresh.
    ///
    /// # Errors
    /// As [`pick`](Self::pick) and [`add`](Self::add).
    pub fn peel(
        &self,
        v: &[i64],
        count: usize,
        noise: &mut impl NoiseSource,
        scratch: &mut PeelScratch,
        picked: &mut Vec<Pick>,
    ) -> Result<()> {
        picked.clear();
        let (mut columns, mut values) = (Vec::new(), with_room(count.min(v.len()))?);
        self.pick(v, count, noise, scratch, &mut columns)?;
        values.extend(columns.iter().map(|index| v[*index]));
        self.add(&mut values, noise)?;
        make_room(picked, columns.len())?;
        picked.extend(columns.into_iter().zip(values).map(|(index, value)| Pick { index, value }));
        Ok(())
    }

    /// Picks `count` coordinates of `v` one after the other and writes them to `picked`, in that order.
    ///
    /// # Errors
    /// If `count` exceeds the length of `v`, that length is 2^32 or more, a coordinate is 2^62 or more in
    /// magnitude, or there is no memory for the work. Then nothing is released.
    pub fn pick(
        &self,
        v: &[i64],
        count: usize,
        noise: &mut impl NoiseSource,
        scratch: &mut PeelScratch,
        picked: &mut Vec<usize>,
    ) -> Result<()> {
        picked.clear();
        if count > v.len() {
            return Err(Error::invalid(format!(
                "s must be an integer from 0 to the length of v ({}), got {count}",
                v.len()
            )));
        }
        if v.len() > u32::MAX as usize {
            return Err(Error::invalid("v must have fewer than 2**32 elements"));
        }
        let largest = checked_largest(v)?;
        if count == 0 {
            return Ok(());
        }
        make_room(picked, count)?;
        let mut keep = |index: usize| {
            picked.push(index);
            true
        };
        drawn(self.picks.law(), repeat_n(self.pick_scale, count));
        match &self.picks {
            PickSampler::Exponential(picks) => {
                picks.pick(v, largest, count, noise, &mut scratch.exponential, &mut keep)
            }
            PickSampler::Laplace(picks) => picks.pick(v, count, noise, &mut scratch.noisy_max, &mut keep),
        }
    }

    /// Adds fresh noise to each of `values`: clamp(value + noise, +-(2^62 - 1)).
    ///
    /// # Errors
    /// If a value is 2^62 or more in magnitude. Then nothing is released.
    pub fn add(&self, values: &mut [i64], noise: &mut impl NoiseSource) -> Result<()> {
        checked_largest(values)?;
        drawn(self.values.law(), repeat_n(self.value_scale, values.len()));
        for value in values {
            let draw = match &self.values {
                ValueSampler::Gaussian(sampler) => sampler.sample(noise),
                ValueSampler::RoundedGaussian(sampler) => sampler.sample(noise),
                ValueSampler::Laplace(sampler) => sampler.sample(noise),
            };
            *value = released(*value, draw);
        }
        Ok(())
    }
}

/// The largest magnitude of integers that leave room for noise.
fn checked_largest(v: &[i64]) -> Result<u64> {
    let largest = v.iter().map(|x| x.unsigned_abs()).max().unwrap_or(0);
    if largest >= MAGNITUDE_LIMIT {
        return Err(Error::invalid("v must lie strictly between -2**62 and 2**62"));
    }
    Ok(largest)
}

/// clamp(value + noise) as post-processing of the exact sum: noise that saturated at 2^63 - 1 clamps just
/// the same, because
/// |value| < 2^62.
fn released(value: i64, noise: i64) -> i64 {
    const LIMIT: i64 = MAGNITUDE_LIMIT as i64 - 1;
    value.saturating_add(noise).clamp(-LIMIT, LIMIT)
}

#[cfg(test)]
mod tests;
