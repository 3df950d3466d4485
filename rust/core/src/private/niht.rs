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
//! ([`crate::private::lattice`]), peeling ([`crate::private::peel`]), and, from there on public, the projection
//! on the l1 ball. Private values live in `sums` and `v` only; replacing one row moves each of their entries by
//! at most `2^16`.

use std::borrow::Cow;

use crate::matrix::scalar::LIMIT;
use crate::private::draws::{Added, Noise};
use crate::private::episode::{Last, Picking, Question, Sums, release};
use crate::private::gradient::{Loss, Plan, Rewards, RowBlocks, RowMap, clipped_sums};
use crate::private::lattice::Lattice;
use crate::private::peel::{ColumnPick, Peeler, Pick};
use crate::public::project::project_l1;
use crate::public::theta::Theta;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::with_room;
use crate::runtime::simd::Level;

/// How the coordinates that survive an iteration are chosen and released.
pub enum Threshold {
    /// Privately.
    Private(Peeler),
    /// The largest, exactly and without noise: for baselines, and to compare the loop with the textbook's.
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
    noise: &mut impl Noise,
    plan: Plan,
    observe: impl FnMut(&Theta),
) -> Result<Theta> {
    if start.dimension() != rows.columns() {
        return Err(Error::invalid("start must have one value for each column of X"));
    }
    let sums_at = |theta: &Theta| {
        let map = RowMap::new(theta, settings.clip, settings.reward_clip, settings.loss)?;
        clipped_sums(rows, rewards, &map, plan)
    };
    niht_from_sums(sums_at, rows.rows(), start, settings, noise, observe)
}

/// As [`niht`], for `rows` rows that the caller holds: `sums_at` returns their integer sums at an estimate,
/// wherever it finds them. Each iteration is a [`release`] of picks and of their values.
///
/// # Errors
/// As [`niht`], whatever `sums_at` returns, or if it returns sums that `rows` rows can't have.
pub fn niht_from_sums<E: From<Error>>(
    mut sums_at: impl FnMut(&Theta) -> std::result::Result<Vec<i64>, E>,
    rows: usize,
    start: Theta,
    settings: &Settings,
    noise: &mut impl Noise,
    mut observe: impl FnMut(&Theta),
) -> std::result::Result<Theta, E> {
    let step = NoisyStep::new(settings, rows, start.dimension())?;
    if settings.iterations == 0 {
        return Err(Error::invalid("iterations must be at least 1, got 0").into());
    }
    let mut theta = inside_ball(start, settings.l1_radius)?;
    for _ in 0..settings.iterations {
        let sums = sums_at(&theta)?;
        require_sums_of_rows(&sums, rows)?;
        theta = step.take(&theta, sums, noise)?;
        observe(&theta);
    }
    Ok(theta)
}

/// Larger sums than `rows` rows can have would break the lattice's bounds, and with them the sensitivity.
fn require_sums_of_rows(sums: &[i64], rows: usize) -> Result<()> {
    let most = rows as u128 * LIMIT as u128;
    let largest = sums.iter().fold(0, |largest, sum| sum.unsigned_abs().max(largest));
    if u128::from(largest) > most {
        return Err(Error::invalid(
            "sums must be sums of rows: none may pass 2**15 times the number of rows",
        ));
    }
    Ok(())
}

/// The part of an iteration that follows the sums: subtraction, private threshold, projection.
struct NoisyStep<'a> {
    settings: &'a Settings,
    lattice: Lattice,
}

/// The private integers of one iteration: all of them are candidates, and those that are picked are released.
struct Moved(Vec<i64>);

impl Sums for Moved {
    type Error = Error;

    fn candidates(&mut self) -> Result<Cow<'_, [i64]>> {
        Ok(Cow::Borrowed(&self.0))
    }

    fn vector(&mut self, picked: &[ColumnPick]) -> Result<Vec<i64>> {
        let mut values = with_room(picked.len())?;
        values.extend(picked.iter().map(|pick| self.0[pick.column]));
        Ok(values)
    }
}

impl<'a> NoisyStep<'a> {
    /// For sums over `rows` rows of `columns` columns.
    ///
    /// # Errors
    /// If the lattice could overflow or `sparsity` is not in `1..=columns`.
    fn new(settings: &'a Settings, rows: usize, columns: usize) -> Result<Self> {
        let sparsity = settings.sparsity;
        if sparsity == 0 || sparsity > columns {
            return Err(Error::invalid(format!(
                "sparsity must be an integer from 1 to {columns}, got {sparsity}"
            )));
        }
        let lattice = Lattice::new(rows, settings.step_size, settings.clip, settings.l1_radius)?;
        Ok(NoisyStep { settings, lattice })
    }

    /// The next estimate from the current one, which lies in the l1 ball, and the sums at it.
    ///
    /// # Errors
    /// If the sums do not fit theta.
    fn take(&self, theta: &Theta, sums: Vec<i64>, noise: &mut impl Noise) -> Result<Theta> {
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
        let count = self.settings.sparsity;
        let mut picked = match &self.settings.threshold {
            Threshold::Private(peeler) => {
                let picking = Picking::Largest { count, peeler };
                let question =
                    Question { numbers: None, picking, vector: Last::Fresh(Added::Values(peeler)) };
                let answer = release(&question, &mut Moved(v), noise)?;
                let pairs = answer.picks.iter().zip(answer.vector);
                pairs.map(|(pick, value)| Pick { index: pick.column, value }).collect()
            }
            Threshold::NotPrivate => largest(&v, count)?,
        };
        // ... to here. What was picked is public.
        picked.sort_unstable_by_key(|pick| pick.index);
        let values: Vec<f64> = picked.iter().map(|pick| self.lattice.value(pick.value)).collect();
        let projected = project_l1(&values, self.settings.l1_radius, Level::BASELINE)?;
        let pairs = picked.iter().map(|pick| pick.index).zip(projected);
        Theta::from_pairs(pairs.filter(|(_, value)| *value != 0.0), theta.dimension())
    }
}

/// A public start projected on the ball: the lattice has room only for estimates inside it.
///
/// # Errors
/// If the radius is not finite and above zero.
fn inside_ball(start: Theta, l1_radius: f64) -> Result<Theta> {
    let projected = project_l1(start.values(), l1_radius, Level::BASELINE)?;
    let pairs = start.support().iter().copied().zip(projected);
    Theta::from_pairs(pairs.filter(|(_, value)| *value != 0.0), start.dimension())
}

fn largest(v: &[i64], count: usize) -> Result<Vec<Pick>> {
    let mut order = with_room(v.len())?;
    order.extend(0..v.len());
    order.sort_by_key(|j: &usize| std::cmp::Reverse(v[*j].unsigned_abs()));
    Ok(order[..count].iter().map(|index| Pick { index: *index, value: v[*index] }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Dense;
    use crate::noise::entropy::predictable::SeededNoise;
    use crate::private::peel::{Mechanism, ValueNoise};

    const ROWS: usize = 60;
    const COLUMNS: usize = 8;

    fn settings(iterations: usize) -> Settings {
        let peeler = Peeler::new(Mechanism::Exponential, 90_000, ValueNoise::Gaussian, 90_000);
        Settings {
            sparsity: 3,
            iterations,
            step_size: 0.5,
            l1_radius: 2.0,
            clip: 1.0,
            reward_clip: 3.0,
            loss: Loss::Squared,
            threshold: Threshold::Private(peeler.expect("valid")),
        }
    }

    fn data() -> (Vec<f64>, Vec<f64>) {
        let number = |i: usize| ((i * 7919) % 1013) as f64 / 400.0 - 1.2;
        ((0..ROWS * COLUMNS).map(number).collect(), (0..ROWS).map(|i| number(i * 31 + 5)).collect())
    }

    fn zero() -> Theta {
        Theta::from_pairs([], COLUMNS).expect("valid")
    }

    #[test]
    fn sums_of_parts_give_the_same_fit_as_the_rows() {
        let (x, y) = data();
        let rows = Dense::new(&x, ROWS, COLUMNS).expect("shape");
        let settings = settings(4);
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        let rewards = Rewards::new(&y, None).expect("one a row");
        let keep = |theta: &Theta| whole.push(theta.to_dense());
        let noise = &mut SeededNoise::new(3, 1);
        niht(&rows, rewards, zero(), &settings, noise, Plan::default(), keep).expect("valid");
        let sums_at = |theta: &Theta| -> Result<Vec<i64>> {
            let map = RowMap::new(theta, settings.clip, settings.reward_clip, settings.loss)?;
            let mut total = vec![0; COLUMNS];
            for (x, y) in x.chunks(7 * COLUMNS).zip(y.chunks(7)) {
                let part = Dense::new(x, y.len(), COLUMNS)?;
                let sums = clipped_sums(&part, Rewards::new(y, None)?, &map, Plan::default())?;
                total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
            }
            Ok(total)
        };
        let keep = |theta: &Theta| parts.push(theta.to_dense());
        niht_from_sums(sums_at, ROWS, zero(), &settings, &mut SeededNoise::new(3, 1), keep).expect("valid");
        assert_eq!(whole.len(), 4);
        assert_eq!(whole, parts);
    }

    #[test]
    fn sums_that_rows_cannot_have_are_refused_before_any_noise() {
        let most = LIMIT * ROWS as i64;
        for (sum, fits) in
            [(most, true), (-most, true), (most + 1, false), (-most - 1, false), (i64::MIN, false)]
        {
            let mut seen = 0;
            let sums_at = |_: &Theta| -> Result<Vec<i64>> {
                let mut sums = vec![0; COLUMNS];
                sums[COLUMNS - 1] = sum;
                Ok(sums)
            };
            let noise = &mut SeededNoise::new(1, 0);
            let fit = niht_from_sums(sums_at, ROWS, zero(), &settings(1), noise, |_| seen += 1);
            assert_eq!((fit.is_ok(), seen), (fits, usize::from(fits)), "{sum}");
            assert_eq!(noise.words_drawn() > 0, fits);
        }
    }

    #[test]
    fn wrong_lengths_no_iterations_and_failing_sums_are_refused() {
        let fit = |columns: usize, iterations: usize| {
            let sums_at = |_: &Theta| -> Result<Vec<i64>> { Ok(vec![0; columns]) };
            niht_from_sums(sums_at, ROWS, zero(), &settings(iterations), &mut SeededNoise::new(1, 0), |_| ())
        };
        assert!(fit(COLUMNS, 1).is_ok());
        assert!(fit(COLUMNS + 1, 1).is_err());
        assert!(fit(COLUMNS, 0).is_err());
        let fails = |_: &Theta| -> Result<Vec<i64>> { Err(Error::invalid("lost")) };
        let failed = niht_from_sums(fails, ROWS, zero(), &settings(1), &mut SeededNoise::new(1, 0), |_| ());
        assert_eq!(failed.err(), Some(Error::invalid("lost")));
    }
}
