//! Greedy arms: score each arm on the estimate's support, take the best, break ties uniformly.
//!
//! This is after the noise: scores are functions of a public estimate and one person's own contexts.

use crate::matrix::scalar::Real;
use crate::matrix::{Csr, Dense, Index};
use crate::public::theta::Theta;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{with_room, zeros};
use crate::runtime::parallel::{for_each, threads_for};
use crate::runtime::simd::prefetch;

/// Rows between one that is scored and one that is asked for.
const AHEAD: usize = 8;

/// Rounds whose scores are compared before the next are computed.
const ROUNDS_TOGETHER: usize = 64;

/// Parts that several threads share the work in.
const SHARES: usize = 32;

/// Below this many values one thread is faster: starting a second takes about as long (30 us).
const SERIAL_BELOW: usize = 1 << 16;

/// Arms of many rounds, one row an arm: dense or sparse.
pub trait Arms: Sync {
    /// Number of rows, arms of all rounds together.
    fn rows(&self) -> usize;
    /// Number of columns.
    fn columns(&self) -> usize;
    /// About how many values scoring reads.
    fn values_read(&self, theta: &Theta) -> usize;
    /// Scores of the rows from `first` on; only the support's columns are read.
    ///
    /// # Errors
    /// If a sparse row is not canonical.
    fn score(&self, first: usize, theta: &Theta, scores: &mut [f64]) -> Result<()>;
}

impl<T: Real> Arms for Dense<'_, T> {
    fn rows(&self) -> usize {
        Dense::rows(self)
    }

    fn columns(&self) -> usize {
        Dense::columns(self)
    }

    fn values_read(&self, theta: &Theta) -> usize {
        Dense::rows(self) * theta.support().len()
    }

    fn score(&self, first: usize, theta: &Theta, scores: &mut [f64]) -> Result<()> {
        let (d, rows) = (Dense::columns(self), self.rows_from(first, Dense::rows(self) - first));
        for (i, score) in scores.iter_mut().enumerate() {
            // Reads jump from row to row, which hardware prefetchers do not follow.
            for column in theta.support() {
                rows.get((i + AHEAD) * d + column).into_iter().for_each(prefetch);
            }
            *score = theta.dot_dense(self.row(first + i));
        }
        Ok(())
    }
}

impl<T: Real, I: Index> Arms for Csr<'_, T, I> {
    fn rows(&self) -> usize {
        Csr::rows(self)
    }

    fn columns(&self) -> usize {
        Csr::columns(self)
    }

    fn values_read(&self, _theta: &Theta) -> usize {
        self.stored()
    }

    fn score(&self, first: usize, theta: &Theta, scores: &mut [f64]) -> Result<()> {
        for (i, score) in scores.iter_mut().enumerate() {
            let (columns, values) = self.canonical_row(first + i)?;
            *score = theta.dot_sparse(columns, values);
        }
        Ok(())
    }
}

/// Score of every row.
///
/// # Errors
/// If theta does not fit, a sparse row is not canonical, or a score is not finite.
pub fn scores<A: Arms>(contexts: &A, theta: &Theta) -> Result<Vec<f64>> {
    check_dimension(contexts, theta)?;
    let mut scores = zeros(contexts.rows())?;
    in_shares(contexts, theta, &mut scores, |first, share| finite_scores(contexts, first, theta, share))?;
    Ok(scores)
}

/// The best arm of each round. Round `i` is rows `i * arms .. (i + 1) * arms`, and `words[i]` is its share of
/// randomness: always one word a round, so that one person's ties never move another's draw.
///
/// # Errors
/// As [`scores`], or if the rows are not `words.len()` rounds of `arms` each.
pub fn select_arms<A: Arms>(contexts: &A, arms: usize, theta: &Theta, words: &[u64]) -> Result<Vec<i64>> {
    if arms == 0 || words.len().checked_mul(arms) != Some(contexts.rows()) {
        return Err(Error::invalid("contexts must hold a whole number of rounds of at least one arm"));
    }
    check_dimension(contexts, theta)?;
    if theta.support().is_empty() {
        let mut chosen = with_room(words.len())?;
        chosen.extend(words.iter().map(|word| nth_of(*word, arms) as i64));
        return Ok(chosen);
    }
    let mut chosen = zeros(words.len())?;
    in_shares(contexts, theta, &mut chosen, |first, share| {
        // A few rounds at a time: their scores never leave the nearest cache.
        let mut scores = zeros(ROUNDS_TOGETHER.min(share.len()) * arms)?;
        for (b, block) in share.chunks_mut(ROUNDS_TOGETHER).enumerate() {
            let from = first + b * ROUNDS_TOGETHER;
            let scores = &mut scores[..block.len() * arms];
            finite_scores(contexts, from * arms, theta, scores)?;
            for ((arm, round), word) in block.iter_mut().zip(scores.chunks_exact(arms)).zip(&words[from..]) {
                *arm = best(round, *word) as i64;
            }
        }
        Ok(())
    })?;
    Ok(chosen)
}

/// Fill `out` in shares that threads fetch as they are ready: `work(first, share)` fills `share`, whose first
/// place is `first`.
fn in_shares<A: Arms, T: Send>(
    contexts: &A,
    theta: &Theta,
    out: &mut [T],
    work: impl Fn(usize, &mut [T]) -> Result<()> + Sync,
) -> Result<()> {
    let threads = threads_for(None, contexts.values_read(theta), SERIAL_BELOW);
    if threads == 1 {
        return work(0, out);
    }
    // Many shares: a thread takes a while to start, and meanwhile the others go on.
    let size = out.len().div_ceil(SHARES).max(1);
    for_each(threads, out.chunks_mut(size).enumerate(), |(s, share)| work(s * size, share))
}

fn check_dimension<A: Arms>(contexts: &A, theta: &Theta) -> Result<()> {
    if contexts.columns() == theta.dimension() {
        Ok(())
    } else {
        Err(Error::invalid("theta must have one value for each column of contexts"))
    }
}

fn finite_scores<A: Arms>(contexts: &A, first: usize, theta: &Theta, scores: &mut [f64]) -> Result<()> {
    contexts.score(first, theta, scores)?;
    if scores.iter().fold(true, |finite, score| finite & score.is_finite()) {
        Ok(())
    } else {
        Err(Error::invalid("contexts must be finite, and so must their scores, where theta is not zero"))
    }
}

/// The best of finite scores; among equal ones, each with the same probability.
#[inline]
pub fn best(scores: &[f64], word: u64) -> usize {
    best_and_tied(scores, word).0
}

/// As [`best`], and how many scores are equal to it, itself included.
#[inline]
pub fn best_and_tied(scores: &[f64], word: u64) -> (usize, usize) {
    // Without branches: which arm is best is what a processor can't guess.
    let top = scores.iter().fold(f64::NEG_INFINITY, |top, score| if *score > top { *score } else { top });
    let (mut ties, mut first) = (0, 0);
    for (a, score) in scores.iter().enumerate().rev() {
        let is_top = *score == top;
        ties += usize::from(is_top);
        first = if is_top { a } else { first };
    }
    if ties <= 1 {
        return (first, ties);
    }
    let tied = scores.iter().enumerate().filter(|(_, score)| **score == top);
    (tied.map(|(a, _)| a).nth(nth_of(word, ties)).unwrap_or(first), ties)
}

/// A number below `count`, each with probability within `2^-64` of `1 / count`. Arms are post-processing of a
/// released estimate: privacy does not rest on this draw.
pub fn nth_of(word: u64, count: usize) -> usize {
    ((u128::from(word) * count as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_are_shared_evenly() {
        let mut counts = [0; 4];
        for i in 0..3000u64 {
            counts[best(&[1.0, 3.0, 3.0, 3.0], i.wrapping_mul(0x9E37_79B9_7F4A_7C15))] += 1;
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    }

    #[test]
    fn zero_and_negative_zero_tie() {
        assert_eq!(best(&[0.0, -0.0], 0), 0);
        assert_eq!(best(&[0.0, -0.0], u64::MAX), 1);
    }

    #[test]
    fn rounds_must_be_whole() {
        let theta = Theta::from_dense(&[1.0, 0.0]).expect("finite");
        let contexts = Dense::new(&[0.0f32; 6], 3, 2).expect("shape");
        assert!(select_arms(&contexts, 2, &theta, &[0]).is_err());
        assert!(select_arms(&contexts, 0, &theta, &[]).is_err());
        assert!(select_arms(&contexts, 3, &theta, &[0]).is_ok());
    }
}
