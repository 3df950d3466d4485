//! Noisy iterative hard thresholding: the private sparse regression (algorithm N-IHT of the FLIPHAT paper).
//!
//! | paper | here |
//! |---|---|
//! | `X`, `y`, `n` | rows and rewards; `n` is the number of rows, missing ones included |
//! | `M` | `iterations` |
//! | `eta` | `step_size` |
//! | `C` | `l1_radius` |
//! | `R` | `reward_clip` |
//! | Peeling with `lambda`, `xi` | [`Peeler`] with integer scales |
//! | `theta^m` | [`Theta`], public |
//!
//! One iteration: integer sums of clipped gradients ([`crate::private::gradient`]), a subtraction on the lattice
//! ([`crate::private::lattice`]), peeling ([`crate::private::peel`]), and, from there on public, the projection on the l1 ball.
//! Private values live in `sums` and `v` only; replacing one row moves each of their entries by at most `2^16`.

use crate::noise::entropy::NoiseSource;
use crate::private::gradient::{Loss, Plan, Rewards, RowBlocks, RowMap, clipped_sums};
use crate::private::lattice::Lattice;
use crate::private::peel::{PeelScratch, Peeler, Pick};
use crate::public::project::project_l1;
use crate::public::theta::Theta;
use crate::runtime::error::{Error, Result};
use crate::runtime::simd::Level;

/// How the coordinates that survive an iteration are chosen and released.
pub enum Threshold {
    /// Privately.
    Private(Peeler),
    /// The largest, exactly: the test door through which the loop is compared with the textbook's.
    NotPrivate,
}

/// Public parameters of a fit.
pub struct Settings {
    /// Coordinates kept.
    pub sparsity: usize,
    /// Iterations; never stopped early, since stopping would depend on the rows.
    pub iterations: usize,
    /// Step size.
    pub step_size: f64,
    /// Radius of the l1 ball that holds the estimate.
    pub l1_radius: f64,
    /// Bound on each coordinate of a row's gradient.
    pub clip: f64,
    /// Bound on rewards (squared loss); infinite for none.
    pub reward_clip: f64,
    /// The loss.
    pub loss: Loss,
    /// Private threshold.
    pub threshold: Threshold,
}

/// Fit, and return the public estimate. `observe` sees every iterate: all of them are paid for.
///
/// # Errors
/// If a parameter breaks its rule, or rows or rewards are not finite or not canonical; nothing is released then.
pub fn niht<R: RowBlocks>(
    rows: &R,
    rewards: Rewards<'_>,
    start: Theta,
    settings: &Settings,
    noise: &mut impl NoiseSource,
    plan: Plan,
    mut observe: impl FnMut(&Theta),
) -> Result<Theta> {
    let mut step = Step::new(settings, rows.rows(), rows.columns())?;
    if settings.iterations == 0 {
        return Err(Error::invalid("iterations must be at least 1, got 0"));
    }
    let mut theta = inside_ball(start, settings.l1_radius)?;
    for _ in 0..settings.iterations {
        let map = RowMap::new(&theta, settings.clip, settings.reward_clip, settings.loss)?;
        let sums = clipped_sums(rows, rewards, &map, plan)?;
        theta = step.take(&theta, sums, noise)?;
        observe(&theta);
    }
    Ok(theta)
}

/// The part of an iteration after the sums: wherever they were computed, noise is added once, here.
pub struct Step<'a> {
    settings: &'a Settings,
    lattice: Lattice,
    scratch: PeelScratch,
    picked: Vec<Pick>,
}

impl<'a> Step<'a> {
    /// For sums over `rows` rows of `columns` columns.
    ///
    /// # Errors
    /// If the lattice could overflow or `sparsity` is not in `1..=columns`.
    pub fn new(settings: &'a Settings, rows: usize, columns: usize) -> Result<Self> {
        let sparsity = settings.sparsity;
        if sparsity == 0 || sparsity > columns {
            return Err(Error::invalid(format!(
                "sparsity must be an integer from 1 to {columns}, got {sparsity}"
            )));
        }
        let lattice = Lattice::new(rows, settings.step_size, settings.clip, settings.l1_radius)?;
        Ok(Step { settings, lattice, scratch: PeelScratch::default(), picked: Vec::new() })
    }

    /// The next estimate from the current one, which lies in the l1 ball, and the sums at it.
    ///
    /// # Errors
    /// If the sums do not fit theta.
    pub fn take(&mut self, theta: &Theta, sums: Vec<i64>, noise: &mut impl NoiseSource) -> Result<Theta> {
        if sums.len() != theta.dimension() {
            return Err(Error::invalid("sums must have one value for each column"));
        }
        // Private from here ...
        let mut v = sums;
        for sum in &mut v {
            *sum = -*sum;
        }
        for (column, value) in theta.support().iter().zip(theta.values()) {
            v[*column] += self.lattice.place(*value);
        }
        match &self.settings.threshold {
            Threshold::Private(peeler) => {
                peeler.peel(&v, self.settings.sparsity, noise, &mut self.scratch, &mut self.picked)?;
            }
            Threshold::NotPrivate => largest(&v, self.settings.sparsity, &mut self.picked),
        }
        // ... to here. What was picked is public.
        self.picked.sort_unstable_by_key(|pick| pick.index);
        let values: Vec<f64> = self.picked.iter().map(|pick| self.lattice.value(pick.value)).collect();
        let projected = project_l1(&values, self.settings.l1_radius, Level::BASELINE)?;
        let pairs = self.picked.iter().map(|pick| pick.index).zip(projected);
        Theta::from_pairs(pairs.filter(|(_, value)| *value != 0.0), theta.dimension())
    }
}

/// A public start projected on the ball: the lattice has room only for estimates inside it.
///
/// # Errors
/// If the radius is not finite and above zero.
pub fn inside_ball(start: Theta, l1_radius: f64) -> Result<Theta> {
    let projected = project_l1(start.values(), l1_radius, Level::BASELINE)?;
    let pairs = start.support().iter().copied().zip(projected);
    Theta::from_pairs(pairs.filter(|(_, value)| *value != 0.0), start.dimension())
}

fn largest(v: &[i64], count: usize, picked: &mut Vec<Pick>) {
    let mut order: Vec<usize> = (0..v.len()).collect();
    order.sort_by_key(|j| std::cmp::Reverse(v[*j].unsigned_abs()));
    picked.clear();
    picked.extend(order[..count].iter().map(|index| Pick { index: *index, value: v[*index] }));
}
