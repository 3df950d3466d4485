//! N-IHT as the paper's figures ran it: plain float gradients and its printed noise scale.
//!
//! **Nothing here is private.** Contexts are not clipped, gradients are added in floats and the printed scale
//! is too small for the loss it states. It exists to reproduce published figures; [`crate::private::niht`] is what
//! people's data go through.

use crate::matrix::scalar::Real;
use crate::matrix::{Csr, Dense, Index};
use crate::noise::entropy::NoiseSource;
use crate::private::gradient::{Rewards, RowBlocks};
use crate::private::peel::{Mechanism, PeelScratch, Peeler, ValueNoise};
use crate::public::project::project_l1;
use crate::public::theta::Theta;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{with_room, zeros};
use crate::runtime::simd::{Level, Vectorised};

/// Steps of the noise's lattice in one noise scale: far finer than any figure shows.
const STEPS: u64 = 1 << 20;

/// The paper's parameters.
pub struct PaperSettings {
    /// Coordinates kept.
    pub sparsity: usize,
    /// Iterations; none leaves the start as it is.
    pub iterations: usize,
    /// Step size.
    pub step_size: f64,
    /// Radius of the l1 ball.
    pub l1_radius: f64,
    /// Bound on rewards.
    pub reward_clip: f64,
    /// Scale of the Laplace noise, in units of theta.
    pub noise_scale: f64,
}

/// Rows whose products with an estimate are added in floats.
pub trait FloatRows: RowBlocks {
    /// `x_i'theta`.
    fn dot(&self, i: usize, theta: &Theta) -> Result<f64>;
    /// Add `factor * x_i`.
    fn add_multiple(&self, i: usize, factor: f64, sum: &mut [f64]) -> Result<()>;
}

impl<T: Real> FloatRows for Dense<'_, T> {
    fn dot(&self, i: usize, theta: &Theta) -> Result<f64> {
        Ok(theta.dot_dense(self.row(i)))
    }

    fn add_multiple(&self, i: usize, factor: f64, sum: &mut [f64]) -> Result<()> {
        Level::best().run(AddMultiple { row: self.row(i), factor, sum });
        Ok(())
    }
}

struct AddMultiple<'a, 'b, T> {
    row: &'a [T],
    factor: f64,
    sum: &'b mut [f64],
}

impl<T: Real> Vectorised for AddMultiple<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (sum, x) in self.sum.iter_mut().zip(self.row) {
            *sum += self.factor * x.to_f64();
        }
    }
}

impl<T: Real, I: Index> FloatRows for Csr<'_, T, I> {
    fn dot(&self, i: usize, theta: &Theta) -> Result<f64> {
        let (columns, values) = self.canonical_row(i)?;
        Ok(theta.dot_sparse(columns, values))
    }

    fn add_multiple(&self, i: usize, factor: f64, sum: &mut [f64]) -> Result<()> {
        let (columns, values) = self.canonical_row(i)?;
        for (column, x) in columns.iter().zip(values) {
            sum[column.position()] += factor * x.to_f64();
        }
        Ok(())
    }
}

/// The paper's N-IHT with the gradient `2 X'(X theta - clip(y)) / n`.
///
/// # Errors
/// If a parameter breaks its rule, or rows or rewards are not finite or not canonical.
pub fn paper_niht<R: FloatRows>(
    rows: &R,
    rewards: Rewards<'_>,
    start: Theta,
    settings: &PaperSettings,
    noise: &mut impl NoiseSource,
) -> Result<Theta> {
    let (n, d) = (rows.rows(), rows.columns());
    if rewards.len() != n || start.dimension() != d || n == 0 {
        return Err(Error::invalid("X, y and start must fit each other"));
    }
    if settings.sparsity == 0 || settings.sparsity > d {
        return Err(Error::invalid(format!(
            "sparsity must be an integer from 1 to {d}, got {}",
            settings.sparsity
        )));
    }
    for (name, value) in [("step_size", settings.step_size), ("noise_scale", settings.noise_scale)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(Error::invalid(format!("{name} must be a finite number above 0, got {value}")));
        }
    }
    let peeler = Peeler::new(Mechanism::Laplace, STEPS, ValueNoise::Laplace, STEPS)?;
    let unit = settings.noise_scale / STEPS as f64;
    let (mut scratch, mut picked) = (PeelScratch::default(), Vec::new());
    let mut theta = start;
    for _ in 0..settings.iterations {
        let mut gradient = zeros(d)?;
        for i in 0..n {
            let Some(reward) = rewards.get(i) else { continue };
            let residual = rows.dot(i, &theta)? - reward.clamp(-settings.reward_clip, settings.reward_clip);
            rows.add_multiple(i, 2.0 * residual, &mut gradient)?;
        }
        let mut v = gradient;
        for value in &mut v {
            *value *= -settings.step_size / n as f64;
        }
        for (column, value) in theta.support().iter().zip(theta.values()) {
            v[*column] += value;
        }
        if !v.iter().all(|value| value.is_finite()) {
            return Err(Error::invalid("X and y must be finite"));
        }
        // The cast saturates; peeling refuses what does not fit.
        let mut points = with_room(d)?;
        points.extend(v.iter().map(|value: &f64| (value / unit).round_ties_even() as i64));
        peeler.peel(&points, settings.sparsity, noise, &mut scratch, &mut picked)?;
        picked.sort_unstable_by_key(|pick| pick.index);
        let values: Vec<f64> = picked.iter().map(|pick| pick.value as f64 * unit).collect();
        let projected = project_l1(&values, settings.l1_radius, Level::BASELINE)?;
        let pairs = picked.iter().map(|pick| pick.index).zip(projected).filter(|(_, value)| *value != 0.0);
        theta = Theta::from_pairs(pairs, d)?;
    }
    Ok(theta)
}
