//! Dense contexts whose mean rewards are linear in a sparse truth, drawn whole or only where they are looked at.
//!
//! A round draws, in this order: a word for ties, the reward's luck, every arm's coordinates where the truth is
//! not zero, every arm's coordinates where only the policy's estimate is not zero, and the rest of the row of the
//! chosen arm alone (from a stream of that arm). Each draw is conditional on those before it
//! ([`conditional`](crate::research::simulate::conditional)), so rows have the distribution that drawing every arm whole would
//! give them, up to f32 rounding, at about one row a round instead of K. The truth comes first so that all
//! policies, and both ways of drawing, meet the same means.

use crate::public::score::best;
use crate::public::theta::Theta;
use crate::research::simulate::conditional::{ConditionalDraw, Dependence};
use crate::research::simulate::marginal::Marginal;
use crate::research::simulate::reward::Reward;
use crate::research::simulate::row_completion::{LANES, RowCompletion};
use crate::research::simulate::words::SimulationRng;
use crate::research::simulate::{Offer, Outcome, Streams};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::zeros;

/// Gap between the best arm's score and all others', set by moving contexts along the truth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Margin {
    /// Always this gap.
    Fixed(f64),
    /// `P(gap <= h) = (h / width)^alpha` for `h <= width`.
    Power {
        /// Largest gap.
        width: f64,
        /// The margin condition's exponent.
        alpha: f64,
    },
}

impl Margin {
    fn draw(self, rng: &mut SimulationRng) -> f64 {
        match self {
            Margin::Fixed(gap) => gap,
            Margin::Power { width, alpha } => width * (1.0 - rng.uniform()).powf(1.0 / alpha),
        }
    }
}

/// A linear environment. Everything but the truth's values is public.
#[derive(Debug, Clone)]
pub struct Linear {
    /// Arms a round.
    pub arms: usize,
    /// Coefficients of the mean reward.
    pub truth: Theta,
    /// One coordinate's distribution.
    pub marginal: Marginal,
    /// Dependence between coordinates.
    pub dependence: Dependence,
    /// Multiplies every coordinate.
    pub scale: f64,
    /// From scores to rewards.
    pub reward: Reward,
    /// A prescribed gap between arms, if any.
    pub margin: Option<Margin>,
    /// Which world this is.
    pub seed: u64,
}

/// Parts of scores and means that other features of the same rounds contribute, one for each arm of each round.
#[derive(Debug, Clone, Copy)]
pub struct Offsets<'a> {
    /// Added to the estimate's scores.
    pub scores: &'a [f64],
    /// Added to the truth's scores.
    pub means: &'a [f64],
}

/// One round's arms: a row of `cells` has the columns and then the factors that columns share.
struct Table {
    cells: Vec<f32>,
    fresh: Vec<f32>,
    scores: Vec<f64>,
    width: usize,
}

impl Table {
    fn arm(&self, arm: usize) -> &[f32] {
        &self.cells[arm * self.width..(arm + 1) * self.width]
    }
}

impl Linear {
    /// Check what memory safety and termination rest on.
    ///
    /// # Errors
    /// If a parameter is out of its range.
    pub fn check(&self) -> Result<()> {
        let correlated = match self.dependence {
            Dependence::Independent => false,
            Dependence::Chain(phi) if phi.abs() < 1.0 => true,
            Dependence::Shared { width: 0, .. } => {
                return Err(Error::invalid("a group of correlated columns must have at least one"));
            }
            Dependence::Shared { rho, .. } if (0.0..1.0).contains(&rho) => true,
            _ => return Err(Error::invalid("correlation must be below 1 in size")),
        };
        if correlated && self.marginal != Marginal::Gaussian {
            return Err(Error::invalid("only Gaussian coordinates can depend on each other"));
        }
        if matches!(self.marginal, Marginal::Truncated(bound) if !(bound >= 0.1 && bound.is_finite())) {
            return Err(Error::invalid("the bound of truncated coordinates must be at least 0.1"));
        }
        if self.arms == 0 || self.truth.dimension() == 0 {
            return Err(Error::invalid("there must be at least one arm and one column"));
        }
        if !(self.scale > 0.0 && self.scale.is_finite()) {
            return Err(Error::invalid("scale must be a finite number above 0"));
        }
        if self.margin.is_some() && self.truth.support().is_empty() {
            return Err(Error::invalid("a margin needs a truth that is not zero"));
        }
        Ok(())
    }

    /// Play `count` rounds greedily on `estimate` (ties uniformly), filling `rows` with the chosen arms' contexts.
    ///
    /// # Errors
    /// If lengths differ.
    pub fn play(
        &self,
        first: u64,
        count: usize,
        estimate: &Theta,
        offsets: Option<Offsets<'_>>,
        rows: Option<&mut [f32]>,
    ) -> Result<Outcome> {
        let d = self.truth.dimension();
        if estimate.dimension() != d {
            return Err(Error::invalid("estimate must have the environment's dimension"));
        }
        let cells = count.checked_mul(self.arms);
        if offsets.is_some_and(|known| Some(known.scores.len()) != cells || Some(known.means.len()) != cells)
        {
            return Err(Error::invalid("offsets must have one value for each arm of each round"));
        }
        let mut rows = match rows {
            Some(rows) if Some(rows.len()) != count.checked_mul(d) => {
                return Err(Error::invalid("rows must have one row for each round"));
            }
            rows => rows,
        };
        let mut known = Vec::new();
        let truth_steps = self.dependence.steps(self.truth.support(), &mut known, d);
        let outside = |column: &usize| self.truth.support().binary_search(column).is_err();
        let extra: Vec<usize> = estimate.support().iter().copied().filter(outside).collect();
        let extra_steps = self.dependence.steps(&extra, &mut known, d);
        let weights = || RowCompletion::new(self.dependence, &known, d, self.scale);
        let completion = rows.is_some().then(weights).transpose()?;

        let mut table = self.table(known.len())?;
        // Rows are finished where memory is fast.
        let mut fresh = zeros(if rows.is_some() { LANES * d } else { 0 })?;
        let mut means = zeros(self.arms)?;
        let mut outcome = Outcome::with_room(count)?;
        let mut streams = Streams::new(self.seed, self.arms + 1);
        for i in 0..count {
            let round = first.wrapping_add(i as u64);
            let rng = streams.of_round(round);
            let (word, luck) = (rng.next_u64(), self.reward.luck(rng));
            self.draw_truth(rng, &truth_steps, &mut table);
            let here = i * self.arms..(i + 1) * self.arms;
            for (arm, mean) in means.iter_mut().enumerate() {
                let offset = offsets.map_or(0.0, |known| known.means[here.clone()][arm]);
                *mean = self.reward.mean(offset + table.scores[arm]);
            }
            self.draw_extra(rng, &extra_steps, &mut table);
            for arm in 0..self.arms {
                let offset = offsets.map_or(0.0, |known| known.scores[here.clone()][arm]);
                table.scores[arm] = offset + estimate.dot_dense(table.arm(arm));
            }
            let arm = best(&table.scores, word);
            let top = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            outcome.push(arm, self.reward.observe(means[arm], luck), top - means[arm]);
            if let (Some(completion), Some(rows)) = (&completion, &mut rows) {
                let at = i % LANES;
                let row = &mut fresh[at * d..(at + 1) * d];
                self.marginal.fill(streams.of_arm(round, arm), row);
                completion.complete(table.arm(arm), row);
                if at + 1 == LANES || i + 1 == count {
                    let done = &mut fresh[..(at + 1) * d];
                    completion.link(done);
                    rows[(i - at) * d..(i + 1) * d].copy_from_slice(done);
                }
            }
        }
        Ok(outcome)
    }

    /// Draw `count` rounds whole: `contexts` is filled round by round, arm by arm.
    ///
    /// # Errors
    /// If `contexts` has another length than `count * arms * dimension`.
    pub fn draw(&self, first: u64, count: usize, contexts: &mut [f32]) -> Result<Offer> {
        let d = self.truth.dimension();
        if Some(contexts.len()) != count.checked_mul(self.arms).and_then(|rows| rows.checked_mul(d)) {
            return Err(Error::invalid("contexts must have one row for each arm of each round"));
        }
        let mut known = Vec::new();
        let steps = self.dependence.steps(self.truth.support(), &mut known, d);
        let completion = RowCompletion::new(self.dependence, &known, d, self.scale)?;
        let mut table = self.table(known.len())?;
        let mut offer = Offer::with_room(count, self.arms)?;
        let mut streams = Streams::new(self.seed, self.arms + 1);
        for (i, arms) in contexts.chunks_exact_mut(self.arms * d).enumerate() {
            let round = first.wrapping_add(i as u64);
            let rng = streams.of_round(round);
            rng.next_u64(); // The word for ties: a policy that chooses for itself brings its own.
            offer.luck.push(self.reward.luck(rng));
            self.draw_truth(rng, &steps, &mut table);
            offer.means.extend(table.scores.iter().map(|score| self.reward.mean(*score)));
            for (arm, row) in arms.chunks_exact_mut(d).enumerate() {
                self.marginal.fill(streams.of_arm(round, arm), row);
                completion.complete(table.arm(arm), row);
            }
            completion.link(arms);
        }
        Ok(offer)
    }

    fn table(&self, known: usize) -> Result<Table> {
        let d = self.truth.dimension();
        let factors = self.dependence.factors(d);
        let width = d.saturating_add(factors);
        let cells = zeros(self.arms.saturating_mul(width))?;
        Ok(Table { cells, fresh: zeros(known + factors)?, scores: zeros(self.arms)?, width })
    }

    /// Every arm's coordinates on the truth's support, and their scores under the truth.
    fn draw_truth(&self, rng: &mut SimulationRng, steps: &[ConditionalDraw], table: &mut Table) {
        let d = self.truth.dimension();
        let factors = table.width - d;
        for cells in table.cells.chunks_exact_mut(table.width) {
            let fresh = &mut table.fresh[..factors + steps.len()];
            self.marginal.fill(rng, fresh);
            for (cell, z) in cells[d..].iter_mut().zip(&*fresh) {
                *cell = z * self.scale as f32;
            }
            self.take(steps, &fresh[factors..], cells);
        }
        for arm in 0..self.arms {
            table.scores[arm] = self.truth.dot_dense(table.arm(arm));
        }
        if let Some(margin) = self.margin {
            self.separate(margin, rng, table);
        }
    }

    /// Move each arm along the truth: one arm `gap` above all others, around the first arm's score.
    fn separate(&self, margin: Margin, rng: &mut SimulationRng, table: &mut Table) {
        let gap = margin.draw(rng);
        let winner = ((u128::from(rng.next_u64()) * self.arms as u128) >> 64) as usize;
        let (columns, values) = (self.truth.support(), self.truth.values());
        let length: f64 = values.iter().map(|value| value * value).sum();
        let middle = table.scores[0];
        for (arm, cells) in table.cells.chunks_exact_mut(table.width).enumerate() {
            let aim = middle + if arm == winner { gap / 2.0 } else { -gap / 2.0 };
            let shift = (aim - table.scores[arm]) / length;
            for (column, value) in columns.iter().zip(values) {
                cells[*column] = (f64::from(cells[*column]) + shift * value) as f32;
            }
            table.scores[arm] = self.truth.dot_dense(cells);
        }
    }

    fn draw_extra(&self, rng: &mut SimulationRng, steps: &[ConditionalDraw], table: &mut Table) {
        if steps.is_empty() {
            return;
        }
        for cells in table.cells.chunks_exact_mut(table.width) {
            let fresh = &mut table.fresh[..steps.len()];
            self.marginal.fill(rng, fresh);
            self.take(steps, fresh, cells);
        }
    }

    fn take(&self, steps: &[ConditionalDraw], fresh: &[f32], cells: &mut [f32]) {
        for (step, z) in steps.iter().zip(fresh) {
            let known = step.left_weight * f64::from(cells[step.left])
                + step.right_weight * f64::from(cells[step.right]);
            cells[step.cell] = (known + step.spread * self.scale * f64::from(*z)) as f32;
        }
    }
}
