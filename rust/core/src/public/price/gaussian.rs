//! One Gaussian vector: the expectation of a piecewise linear value, in closed form.
//!
//! With x' = x r, r the likelihood ratio of N(0, 1) to N(mu, 1) under N(mu, 1), write f as its lowest value plus
//! ramps: f = f_0 + sum of (f_k - f_(k-1)) ramp_k, where ramp_k is 1 for losses above node k, 0 below node k - 1,
//! linear in x between. All increments are at least 0, and E ramp depends on the distance d of node k from the
//! state only: (g delta((d-1) step) - delta(d step))/(g - 1) with g = exp(step) and delta(e) the Gaussian's delta
//! at epsilon = e. Ramps far below the state are taken as 1, and all beyond [`REACH`] standard deviations above
//! it as the last one: both make the value larger.
//!
//! # Error of floats
//! delta(e) = Q(z) - exp(e) Q(z'), z = e/mu - mu/2, z' = e/mu + mu/2. Each term is within (1536 + 8 (a + 1)^2) u
//! relative, a = |e/mu| + mu/2: 3u a of z moves Q(z) by at most 3u a (a + 1), the rest is [`super::elementary`]'s.
//! That is added (or subtracted, where delta is subtracted), and so is the error of a sum of as many terms of one
//! sign. Tails below 1e-300 are counted as 1e-300.

use super::elementary::{density, exp, exp_m1, mills, upper_tail};
use super::value::Value;
use crate::runtime::error::Result;
use crate::runtime::memory::with_room;
use crate::runtime::simd::{Level, Vectorised};

const U: f64 = 1.0 / (1u64 << 53) as f64;
const TINY: f64 = 1e-300;

/// Standard deviations of the loss that are looked at one by one; beyond them is a chance of 1e-33.
const REACH: f64 = 12.0;

/// Lower and upper bound of the Gaussian's delta at `epsilon`.
fn bounds(epsilon: f64, mu: f64) -> (f64, f64) {
    let (ratio, half) = (epsilon / mu, 0.5 * mu);
    let (z, beyond) = (ratio - half, ratio + half);
    if z > 37.0 {
        return (0.0, TINY);
    }
    let first = upper_tail(z.max(-37.0));
    // exp(epsilon) density(beyond) = density(z): no overflow where epsilon is large.
    let second = if beyond > 0.0 {
        density(z) * mills(beyond)
    } else {
        exp(epsilon.max(-700.0)) * upper_tail(beyond.max(-37.0))
    };
    let a = ratio.abs().min(80.0) + half;
    let error = U * (1536.0 + 8.0 * (a + 1.0) * (a + 1.0)) * (first + second) + TINY;
    ((first - second - error).max(0.0), (first - second + error).min(1.0))
}

/// The value before a last Gaussian, in closed form: delta at `epsilon`, rounded up.
pub(super) fn last(epsilon: f64, mu: f64) -> f64 {
    bounds(epsilon, mu).1
}

/// Upper bounds of E ramp for distances -reach + 1 ..= reach.
fn ramps(mu: f64, step: f64, reach: i64) -> Result<Vec<f64>> {
    let (growth, growth_m1) = (exp(step), exp_m1(step));
    let mut at: Vec<(f64, f64)> = with_room(2 * reach as usize + 1)?;
    at.extend((-reach..=reach).map(|d| bounds(d as f64 * step, mu)));
    let mut ramps = with_room(at.len())?;
    ramps.extend(at.windows(2).map(|pair| {
        let (above, below) = (growth * pair[0].1, pair[1].0);
        // 128u of either term: growth and the multiples of the step are rounded as well.
        ((above - below + 128.0 * U * (above + below)) / growth_m1 * (1.0 + 64.0 * U)).clamp(0.0, 1.0)
    }));
    Ok(ramps)
}

/// The value before a Gaussian of parameter `mu`, at `len` nodes from `first`.
pub(super) fn gaussian(after: &Value, mu: f64, step: f64, first: i64, len: usize) -> Result<Value> {
    let reach = reach(mu, step);
    let ramps = ramps(mu, step, reach)?;
    let nodes = after.between(first - reach, first + len as i64 + reach + 1, step)?;
    let mut increments: Vec<f64> = with_room(nodes.len())?;
    increments.extend(nodes.windows(2).map(|pair| (pair[1] - pair[0]).max(0.0)));
    let last = ramps[ramps.len() - 1];
    let mut values: Vec<f64> = with_room(len)?;
    values.extend((0..len).map(|j| nodes[j] + (1.0 - nodes[j + 2 * reach as usize]) * last));
    Level::best().run(Convolve { ramps: &ramps, increments: &increments, values: &mut values });
    let rounding = 1.0 + (4.0 * reach as f64 + 16.0) * U;
    for value in &mut values {
        *value = *value * rounding + TINY;
    }
    Ok(Value::new(first, values))
}

/// Nodes to either side of a state that a Gaussian is followed to.
pub(super) fn reach(mu: f64, step: f64) -> i64 {
    ((REACH * mu + mu * mu) / step).ceil() as i64 + 1
}

struct Convolve<'a> {
    ramps: &'a [f64],
    increments: &'a [f64],
    values: &'a mut [f64],
}

impl Vectorised for Convolve<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let len = self.values.len();
        for (offset, &ramp) in self.ramps.iter().enumerate() {
            let increments = &self.increments[offset..][..len];
            for (value, increment) in self.values.iter_mut().zip(increments) {
                *value += ramp * increment;
            }
        }
    }
}
