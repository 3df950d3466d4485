//! Sparse contexts like those of search advertising: one-hot fields and hashed tokens, with power-law frequencies.
//!
//! Work and memory a round are those of its non-zeros: nothing of the length of a row is ever touched.

use crate::public::score::best;
use crate::public::theta::Theta;
use crate::research::simulate::reward::Reward;
use crate::research::simulate::words::SimulationRng;
use crate::research::simulate::{Offer, Outcome, Streams};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{with_room, zeros};

/// Ranks `0..count` with `P(rank < r) = (1 - (r+1)^(1-a)) / (1 - (count+1)^(1-a))`: about `1/(rank+1)^a`.
#[derive(Debug, Clone, Copy)]
pub struct PowerLaw {
    count: f64,
    /// `1 - a`, and what `(count+1)^(1-a) - 1` is; for `a = 1` its logarithmic limit.
    exponent: f64,
    span: f64,
}

impl PowerLaw {
    /// `count` ranks with power `a`.
    pub fn new(count: usize, power: f64) -> Self {
        let (ends, exponent) = (count as f64 + 1.0, 1.0 - power);
        let span = if exponent == 0.0 { ends.ln() } else { (exponent * ends.ln()).exp_m1() };
        PowerLaw { count: count as f64, exponent, span }
    }

    /// The rank at quantile `u` in [0, 1).
    #[inline]
    pub fn rank(&self, u: f64) -> usize {
        let position = if self.exponent == 0.0 {
            (u * self.span).exp()
        } else {
            ((u * self.span).ln_1p() / self.exponent).exp()
        };
        // Rounding may pass either end by one unit in the last place.
        (position - 1.0).clamp(0.0, self.count - 1.0) as usize
    }
}

/// Sparse environment with binary rewards.
#[derive(Debug, Clone)]
pub struct Clicks {
    arms: usize,
    truth: Theta,
    intercept: f64,
    /// One-hot fields: first column, and frequencies of the columns from there on.
    fields: Vec<(usize, PowerLaw)>,
    /// Hashed tokens a row, their frequencies, and the buckets' first column and number.
    tokens: usize,
    vocabulary: PowerLaw,
    first_bucket: usize,
    buckets: usize,
    seed: u64,
}

/// Sparse rows, one after another: columns ascending within a row.
#[derive(Debug, Clone, Default)]
pub struct SparseRows {
    /// Where each row starts, and where the last ends.
    pub offsets: Vec<i32>,
    /// Columns.
    pub columns: Vec<i32>,
    /// Values: how often the row's features fall on the column.
    pub values: Vec<f32>,
}

impl SparseRows {
    fn with_room(rows: usize, stored: usize) -> Result<Self> {
        let mut offsets = with_room(rows + 1)?;
        offsets.push(0);
        Ok(SparseRows { offsets, columns: with_room(stored)?, values: with_room(stored)? })
    }

    /// Append a row of ascending columns; equal ones are counted.
    fn push(&mut self, columns: &[i32]) {
        let start = self.columns.len();
        for column in columns {
            if self.columns.len() > start && self.columns.last() == Some(column) {
                if let Some(value) = self.values.last_mut() {
                    *value += 1.0;
                }
            } else {
                self.columns.push(*column);
                self.values.push(1.0);
            }
        }
        self.offsets.push(self.columns.len() as i32);
    }
}

impl Clicks {
    /// `cardinalities[f]` columns for field `f`, then `buckets` for `tokens` hashed features a row.
    ///
    /// # Errors
    /// If columns do not add up to the truth's dimension, or a row would have none.
    #[allow(clippy::too_many_arguments)] // Plain numbers, named at the one place that calls it.
    pub fn new(
        arms: usize,
        truth: Theta,
        intercept: f64,
        cardinalities: &[usize],
        tokens: usize,
        vocabulary: usize,
        power: f64,
        seed: u64,
    ) -> Result<Self> {
        let (mut fields, mut first) = (Vec::with_capacity(cardinalities.len()), 0usize);
        for cardinality in cardinalities {
            fields.push((first, PowerLaw::new(*cardinality, power)));
            first = first.saturating_add(*cardinality);
        }
        let buckets = truth.dimension().saturating_sub(first);
        if first > truth.dimension() || cardinalities.contains(&0) || (tokens > 0) != (buckets > 0) {
            return Err(Error::invalid(
                "fields and buckets must add up to the dimension, none of them empty",
            ));
        }
        if arms == 0 || fields.len() + tokens == 0 || (tokens > 0 && vocabulary == 0) {
            return Err(Error::invalid("there must be at least one arm and one feature a row"));
        }
        if truth.dimension() > i32::MAX as usize
            || !(power >= 0.0 && power.is_finite() && intercept.is_finite())
        {
            return Err(Error::invalid("power and intercept must be finite, and columns fewer than 2^31"));
        }
        let vocabulary = PowerLaw::new(vocabulary, power);
        Ok(Clicks { arms, truth, intercept, fields, tokens, vocabulary, first_bucket: first, buckets, seed })
    }

    /// Features a row, those that share a column counted apart.
    fn features(&self) -> usize {
        self.fields.len() + self.tokens
    }

    /// Play `count` rounds greedily on `estimate`; returns the chosen arms' rows too.
    ///
    /// # Errors
    /// If the estimate has another dimension, or the rows would hold 2^31 values or more.
    pub fn play(&self, first: u64, count: usize, estimate: &Theta) -> Result<(Outcome, SparseRows)> {
        if estimate.dimension() != self.truth.dimension() {
            return Err(Error::invalid("estimate must have the environment's dimension"));
        }
        let mut rows = self.rows(count)?;
        let mut outcome = Outcome::with_room(count)?;
        let mut table: Vec<i32> = zeros(self.arms.saturating_mul(self.features()))?;
        let (mut means, mut scores) = (zeros(self.arms)?, zeros(self.arms)?);
        let mut streams = Streams::new(self.seed, 1);
        for i in 0..count {
            let rng = streams.of_round(first.wrapping_add(i as u64));
            let (word, luck) = (rng.next_u64(), Reward::Binary.luck(rng));
            for (arm, columns) in table.chunks_exact_mut(self.features()).enumerate() {
                self.draw_row(rng, columns);
                means[arm] = self.mean(columns);
                scores[arm] = dot(estimate, columns);
            }
            let arm = best(&scores, word);
            let top = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            outcome.push(arm, Reward::Binary.observe(means[arm], luck), top - means[arm]);
            rows.push(&table[arm * self.features()..(arm + 1) * self.features()]);
        }
        Ok((outcome, rows))
    }

    /// Draw `count` rounds whole: every arm's row, round by round.
    ///
    /// # Errors
    /// If the rows would hold 2^31 values or more.
    pub fn draw(&self, first: u64, count: usize) -> Result<(Offer, SparseRows)> {
        let mut rows = self.rows(count.saturating_mul(self.arms))?;
        let mut offer = Offer::with_room(count, self.arms)?;
        let mut columns = zeros(self.features())?;
        let mut streams = Streams::new(self.seed, 1);
        for i in 0..count {
            let rng = streams.of_round(first.wrapping_add(i as u64));
            rng.next_u64(); // The word for ties: a policy that chooses for itself brings its own.
            offer.luck.push(Reward::Binary.luck(rng));
            for _ in 0..self.arms {
                self.draw_row(rng, &mut columns);
                offer.means.push(self.mean(&columns));
                rows.push(&columns);
            }
        }
        Ok((offer, rows))
    }

    fn rows(&self, count: usize) -> Result<SparseRows> {
        match count.checked_mul(self.features()) {
            Some(stored) if stored < i32::MAX as usize => SparseRows::with_room(count, stored),
            _ => Err(Error::invalid(
                "too many rounds for one call: their rows must hold fewer than 2^31 values",
            )),
        }
    }

    fn draw_row(&self, rng: &mut SimulationRng, columns: &mut [i32]) {
        let (one_hot, hashed) = columns.split_at_mut(self.fields.len());
        for (column, (first, ranks)) in one_hot.iter_mut().zip(&self.fields) {
            *column = (first + ranks.rank(rng.uniform())) as i32;
        }
        for column in hashed.iter_mut() {
            *column = (self.first_bucket + bucket(self.vocabulary.rank(rng.uniform()), self.buckets)) as i32;
        }
        hashed.sort_unstable();
    }

    fn mean(&self, columns: &[i32]) -> f64 {
        Reward::Binary.mean(self.intercept + dot(&self.truth, columns))
    }
}

/// `x'theta` of a row given by its features' columns: each occurrence adds the column's value once.
fn dot(theta: &Theta, columns: &[i32]) -> f64 {
    columns.chunks(ONES.len()).map(|part| theta.dot_sparse(part, &ONES[..part.len()])).sum()
}

/// Values of one-hot features, as many as a usual row has.
static ONES: [f32; 256] = [1.0; 256];

/// The bucket of a token: a fixed mixing of its bits (SplitMix64's finaliser), scaled to the buckets.
fn bucket(token: usize, buckets: usize) -> usize {
    let mut mixed = (token as u64).wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (((mixed ^ (mixed >> 31)) as u128 * buckets as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_the_stated_distribution() {
        for power in [0.0, 0.7, 1.0, 1.5] {
            let (law, count, draws) = (PowerLaw::new(50, power), 50usize, 400_000);
            let mut rng = SimulationRng::new(1, 0);
            let mut below = [0u32; 51];
            for _ in 0..draws {
                below[law.rank(rng.uniform()) + 1] += 1;
            }
            let total = |r: f64| {
                if power == 1.0 { (r + 1.0).ln() } else { 1.0 - (r + 1.0).powf(1.0 - power) }
            };
            let mut seen = 0;
            for (r, hits) in below.iter().enumerate() {
                seen += hits;
                let expected = total(r as f64) / total(count as f64);
                // Kolmogorov's statistic beyond 2.6 / sqrt(draws) has probability 3e-6.
                assert!((f64::from(seen) / f64::from(draws) - expected).abs() < 2.6 / 632.0, "{power} {r}");
            }
        }
    }

    #[test]
    fn repeated_columns_are_counted_once_each() {
        let mut rows = SparseRows::with_room(2, 5).expect("memory");
        rows.push(&[1, 4, 4, 4]);
        rows.push(&[4]);
        assert_eq!((rows.offsets, rows.columns), (vec![0, 2, 3], vec![1, 4, 4]));
        assert_eq!(rows.values, vec![1.0, 3.0, 1.0]);
    }

    #[test]
    fn the_dot_product_does_not_stop_at_the_table_of_ones() {
        let theta = Theta::from_pairs([(3, 2.0)], 10).expect("valid");
        assert_eq!(dot(&theta, &[3; 700]), 1400.0);
    }

    #[test]
    fn buckets_are_even() {
        let mut counts = [0u32; 10];
        (0..10_000).for_each(|token| counts[bucket(token, 10)] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
