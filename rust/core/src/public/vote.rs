//! Rounds that draws of coefficients vote on: each draw names the arm it thinks best, and the round's random word
//! says which draw decides. So an arm's probability is the share of draws that chose it, exactly.
//!
//! A row is cut to a norm before it is kept, and what is scored is what a fit makes of the kept row: moved, scaled and
//! cut to a ball. Scores are sums of single precision, column after column, whatever the width of registers, the
//! number of threads and the rounds of a batch.
//!
//! As in [`crate::public::play`], what happens to a round is a function of its own contexts, its word and public
//! numbers, and contents never raise: a round that can't be used plays a uniform arm and leaves a row of zeros.

use crate::matrix::scalar::Real;
use crate::public::play::{Chosen, Contexts, MOST_TIED};
use crate::public::score::nth_of;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{with_room, zeros};
use crate::runtime::parallel::{for_each, threads_for};
use crate::runtime::simd::{Level, Vectorised};

/// Draws that vote.
pub const DRAWS: usize = 32;

/// Rows whose scores are summed at once: a weight is read once for all of them.
const TOGETHER: usize = 4;

/// Where an arm is chosen by votes, their share in steps of one over `ALL_VOTES` is kept, on top of this: no count of
/// tied arms is as large.
const VOTES: u32 = 1 << 23;
const ALL_VOTES: u32 = 1 << 16;

/// Below this many products one thread is faster: starting a second takes about as long.
const SERIAL_BELOW: usize = 1 << 20;

/// Public draws of coefficients, and what rows become before they are scored.
#[derive(Debug)]
pub struct Votes {
    /// Weights `[group][column][draw]`: a group of its own for each arm, or one for all.
    weights: Vec<[f32; DRAWS]>,
    /// What each arm's draws begin with; all zeros where arms share a group.
    levels: Vec<[f32; DRAWS]>,
    /// Number that stands for each arm, kept behind its rows.
    slots: Vec<i64>,
    inverse: Vec<f32>,
    shift: Vec<f32>,
    ball: f32,
    norm: f64,
    /// Each arm has its own coefficients, and a round one row for all arms.
    disjoint: bool,
    /// Every round plays a uniform arm.
    uniform: bool,
    /// Draws from this one on vote for this arm, whatever their scores.
    fixed: Option<(usize, usize)>,
}

/// How rows are moved, scaled and cut.
#[derive(Debug)]
pub struct Map {
    /// What columns are multiplied by.
    pub inverse: Vec<f32>,
    /// What is then taken off.
    pub shift: Vec<f32>,
    /// Length that is left at most after both.
    pub ball: f32,
    /// Length of a row before both at most.
    pub norm: f64,
}

impl Votes {
    /// Group `draws`, shape `(DRAWS, groups, columns + 1)` with the level last: one group for each slot, or one in all.
    ///
    /// # Errors
    /// If shapes do not fit.
    pub fn new(draws: &[f64], slots: Vec<i64>, map: Map, disjoint: bool) -> Result<Self> {
        let (d, arms) = (map.inverse.len(), slots.len());
        let groups = if disjoint { arms } else { 1 };
        if arms == 0 || map.shift.len() != d || draws.len() != DRAWS * groups * (d + 1) {
            return Err(Error::invalid(
                "draws must have a value for each draw, group and column, and a level",
            ));
        }
        let of = |group: usize, column: usize| -> [f32; DRAWS] {
            std::array::from_fn(|k| draws[(k * groups + group) * (d + 1) + column] as f32)
        };
        let weights = (0..groups).flat_map(|g| (0..d).map(move |c| (g, c))).map(|(g, c)| of(g, c)).collect();
        let levels = (0..arms).map(|arm| if disjoint { of(arm, d) } else { [0.0; DRAWS] }).collect();
        let Map { inverse, shift, ball, norm } = map;
        Ok(Votes {
            weights,
            levels,
            slots,
            inverse,
            shift,
            ball,
            norm,
            disjoint,
            uniform: false,
            fixed: None,
        })
    }

    /// Play a uniform arm in every round.
    #[must_use]
    pub fn uniform(self) -> Self {
        Votes { uniform: true, ..self }
    }

    /// Let only the first `free` draws vote by their scores, the others for `arm`.
    ///
    /// # Errors
    /// If there is no such arm.
    pub fn fixed(self, free: usize, arm: usize) -> Result<Self> {
        if arm >= self.slots.len() {
            return Err(Error::invalid("the arm that is played must be one of the arms"));
        }
        Ok(Votes { fixed: Some((free.min(DRAWS), arm)), ..self })
    }

    /// Columns of contexts.
    #[must_use]
    pub fn dimension(&self) -> usize {
        self.inverse.len()
    }

    /// Arms of a round.
    #[must_use]
    pub fn arms(&self) -> usize {
        self.slots.len()
    }

    /// Rows of a round.
    fn rows_each(&self) -> usize {
        if self.disjoint { 1 } else { self.slots.len() }
    }

    /// Play rounds and write each one's row, with the arm's slot behind it, to `out`; zeros where none is kept.
    ///
    /// # Errors
    /// If shapes do not fit. Never because of what a context holds.
    pub fn play<C: Contexts, S: Real>(
        &self,
        contexts: &C,
        words: &[u64],
        keep: Option<&[u8]>,
        explored: Option<&[u8]>,
        out: &mut [S],
    ) -> Result<Chosen> {
        let (n, d) = (words.len(), self.dimension());
        if contexts.columns() != d || n.checked_mul(self.rows_each()) != Some(contexts.rows()) {
            return Err(Error::invalid("contexts must hold the rows of every round, with a column each"));
        }
        if n.checked_mul(d + 1) != Some(out.len()) {
            return Err(Error::invalid("out must have one row for each round, and a place for its arm"));
        }
        if [keep, explored].into_iter().flatten().any(|flags| flags.len() != n) {
            return Err(Error::invalid("keep and explored must have one flag for each round"));
        }
        let (mut arms, mut tied) = (zeros(n)?, zeros(n)?);
        let threads = threads_for(None, n.saturating_mul(self.slots.len() * DRAWS * d), SERIAL_BELOW);
        // Whole blocks, so that only the last one of all is shorter.
        let share = n.div_ceil(threads).next_multiple_of(TOGETHER).max(1);
        let chosen = arms.chunks_mut(share).zip(tied.chunks_mut(share));
        let parts = chosen.zip(out.chunks_mut(share * (d + 1))).enumerate();
        for_each(threads, parts, |(p, ((arms, tied), out))| {
            let part =
                Part { votes: self, contexts, words, keep, explored, first: p * share, arms, tied, out };
            Level::best().run(part)
        })?;
        Ok(Chosen { arms, tied })
    }

    /// Cut row `i` to the norm. False, and zeros, if it can't be used.
    #[inline(always)]
    fn cut<C: Contexts>(&self, contexts: &C, i: usize, row: &mut [f64]) -> bool {
        if !(contexts.storable(i) && contexts.copy_dense(i, row)) {
            row.fill(0.0);
            return false;
        }
        // Over the largest value first: squares of what a float32 can hold fit a float64, but only just.
        let largest = row.iter().fold(0.0, |most: f64, x| if x.abs() > most { x.abs() } else { most });
        if largest > 0.0 {
            let length = largest * sum_of(row, |x| (x / largest) * (x / largest)).sqrt();
            let factor = (self.norm / length).min(1.0);
            row.iter_mut().for_each(|x| *x *= factor);
        }
        true
    }

    /// Move and scale a kept row, and cut it to the ball.
    #[inline(always)]
    fn map(&self, row: &[f64], moved: &mut [f32]) {
        for ((to, x), (inverse, shift)) in moved.iter_mut().zip(row).zip(self.inverse.iter().zip(&self.shift))
        {
            *to = *x as f32 * inverse - shift;
        }
        let length = sum_of(moved, |x| f64::from(x) * f64::from(x)).sqrt() as f32;
        let factor = self.ball / length.max(self.ball);
        moved.iter_mut().for_each(|x| *x *= factor);
    }

    /// Add up the scores of some rows for one group's draws.
    #[inline(always)]
    fn score<const ROWS: usize>(&self, group: usize, rows: [&[f32]; ROWS]) -> [[f32; DRAWS]; ROWS] {
        let d = self.dimension();
        let mut sums = [[0.0; DRAWS]; ROWS];
        let rows = rows.map(|row| &row[..d]);
        for (column, weights) in self.weights[group * d..(group + 1) * d].iter().enumerate() {
            for (sums, row) in sums.iter_mut().zip(rows) {
                let x = row[column];
                for (sum, weight) in sums.iter_mut().zip(weights) {
                    *sum += x * weight;
                }
            }
        }
        sums
    }

    /// Which arm each draw votes for: of several that are best, the first.
    #[inline(always)]
    fn vote(&self, scores: &[[f32; DRAWS]]) -> [u32; DRAWS] {
        let (mut best, mut arms) = ([f32::NEG_INFINITY; DRAWS], [0u32; DRAWS]);
        for (arm, (scores, levels)) in scores.iter().zip(&self.levels).enumerate() {
            for k in 0..DRAWS {
                let score = scores[k] + levels[k];
                let better = score > best[k];
                best[k] = if better { score } else { best[k] };
                arms[k] = if better { arm as u32 } else { arms[k] };
            }
        }
        if let Some((free, arm)) = self.fixed {
            arms[free..].fill(arm as u32);
        }
        arms
    }
}

/// A sum in eight lanes, which are then added: the same bits at every width of registers.
#[inline(always)]
fn sum_of<T: Copy>(row: &[T], term: impl Fn(T) -> f64) -> f64 {
    let mut lanes = [0.0; 8];
    let (blocks, rest) = row.as_chunks::<8>();
    for block in blocks {
        for (lane, x) in lanes.iter_mut().zip(block) {
            *lane += term(*x);
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane += term(*x);
    }
    lanes.iter().sum()
}

struct Part<'a, C, S> {
    votes: &'a Votes,
    contexts: &'a C,
    words: &'a [u64],
    keep: Option<&'a [u8]>,
    explored: Option<&'a [u8]>,
    first: usize,
    arms: &'a mut [i64],
    tied: &'a mut [u32],
    out: &'a mut [S],
}

impl<C: Contexts, S: Real> Vectorised for Part<'_, C, S> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let (votes, d, arms) = (self.votes, self.votes.dimension(), self.votes.slots.len());
        let each = votes.rows_each();
        let most = TOGETHER.min(self.arms.len()) * each;
        let (mut kept, mut moved) = (zeros::<f64>(most * d)?, zeros::<f32>(most * d)?);
        let mut scores = with_room(most * arms / each)?;
        scores.resize(most * arms / each, [0.0; DRAWS]);
        for start in (0..self.arms.len()).step_by(TOGETHER) {
            let rounds = TOGETHER.min(self.arms.len() - start);
            let mut valid = [true; TOGETHER];
            for i in 0..rounds * each {
                let row = (self.first + start) * each + i;
                let kept = &mut kept[i * d..(i + 1) * d];
                valid[i / each] &= votes.cut(self.contexts, row, kept);
                kept.iter_mut().for_each(|x| *x = S::from_f64(*x).to_f64());
                if !votes.uniform {
                    votes.map(kept, &mut moved[i * d..(i + 1) * d]);
                }
            }
            if !votes.uniform {
                fill_scores(votes, &moved[..rounds * each * d], &mut scores);
            }
            for (i, valid) in valid.into_iter().enumerate().take(rounds) {
                let (at, word) = (start + i, self.words[self.first + start + i]);
                let mut place = nth_of(word, arms);
                let mut tied = arms.min(MOST_TIED) as u32;
                if valid && !votes.uniform {
                    let voted = votes.vote(&scores[i * arms..(i + 1) * arms]);
                    if self.explored.is_none_or(|explored| explored[self.first + at] == 0) {
                        place = voted[word as usize % DRAWS] as usize;
                    }
                    let count = voted.iter().filter(|arm| **arm as usize == place).count() as u32;
                    tied = VOTES + count * (ALL_VOTES / DRAWS as u32);
                }
                let slot = votes.slots[place];
                self.arms[at] = if valid { slot } else { -1 - slot };
                self.tied[at] = tied;
                let out = &mut self.out[at * (d + 1)..(at + 1) * (d + 1)];
                if valid && self.keep.is_none_or(|keep| keep[self.first + at] != 0) {
                    let row = if votes.disjoint { i } else { i * each + place };
                    let row = &kept[row * d..(row + 1) * d];
                    out.iter_mut().zip(row).for_each(|(to, x)| *to = S::from_f64(*x));
                    out[d] = S::from_f64(slot as f64);
                } else {
                    out.fill(S::ZERO);
                }
            }
        }
        Ok(())
    }
}

/// Write the scores of rows, those of one row for all its groups after another.
#[inline(always)]
fn fill_scores(votes: &Votes, moved: &[f32], scores: &mut [[f32; DRAWS]]) {
    let d = votes.dimension().max(1);
    let groups = if votes.disjoint { votes.slots.len() } else { 1 };
    let count = moved.len() / d;
    for group in 0..groups {
        for first in (0..count).step_by(TOGETHER) {
            let row = |i: usize| &moved[i * d..(i + 1) * d];
            if first + TOGETHER <= count {
                let sums = votes.score::<TOGETHER>(group, std::array::from_fn(|i| row(first + i)));
                for (i, sums) in sums.into_iter().enumerate() {
                    scores[(first + i) * groups + group] = sums;
                }
            } else {
                for i in first..count {
                    [scores[i * groups + group]] = votes.score::<1>(group, [row(i)]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Csr, Dense};

    /// Arms 7 and 9 with one column: every draw scores 7 by x, and 9 by 1/2.
    fn votes() -> Votes {
        let draws: Vec<f64> = [1.0, 0.0, 0.0, 0.5].repeat(DRAWS);
        let map = Map { inverse: vec![1.0], shift: vec![0.0], ball: 4.0, norm: 2.0 };
        Votes::new(&draws, vec![7, 9], map, true).expect("shape")
    }

    #[test]
    fn the_best_arm_is_played_and_its_row_kept_cut_to_the_norm() {
        let x = [1.0, 0.25, 8.0, 0.5, -3.0];
        let contexts = Dense::new(&x, 5, 1).expect("shape");
        let mut out = [5.0f32; 10];
        let chosen = votes().play(&contexts, &[0; 5], Some(&[1, 1, 1, 0, 1]), None, &mut out).expect("shape");
        assert_eq!(chosen.arms, [7, 9, 7, 7, 9]); // a tie is the first arm's
        assert_eq!(chosen.tied, [VOTES + ALL_VOTES; 5]);
        assert_eq!(out, [1.0, 7.0, 0.25, 9.0, 2.0, 7.0, 0.0, 0.0, -2.0, 9.0]);
    }

    #[test]
    fn an_explored_round_is_uniform_and_knows_its_votes() {
        let contexts = Dense::new(&[1.0], 1, 1).expect("shape");
        let mut out = [0.0f64; 2];
        for (word, arm, votes_for) in [(0, 7, ALL_VOTES), (u64::MAX, 9, 0)] {
            let chosen = votes().play(&contexts, &[word], None, Some(&[1]), &mut out).expect("shape");
            assert_eq!((chosen.arms[0], chosen.tied[0]), (arm, VOTES + votes_for));
            let uniform = votes().uniform().play(&contexts, &[word], None, None, &mut out).expect("shape");
            assert_eq!((uniform.arms[0], uniform.tied[0]), (arm, 2));
        }
    }

    #[test]
    fn the_guard_leaves_some_draws_to_learn_by() {
        let contexts = Dense::new(&[1.0], 1, 1).expect("shape");
        let guarded = votes().fixed(4, 1).expect("an arm");
        for word in 0..DRAWS as u64 {
            let chosen = guarded.play(&contexts, &[word], None, None, &mut [0.0f32; 2]).expect("shape");
            let (arm, count) = if word < 4 { (7, 4) } else { (9, 28) };
            assert_eq!((chosen.arms[0], chosen.tied[0]), (arm, VOTES + count * ALL_VOTES / 32));
        }
        assert!(votes().fixed(4, 2).is_err());
    }

    #[test]
    fn a_round_that_cannot_be_used_is_uniform_leaves_zeros_and_touches_no_other() {
        for bad in [f64::NAN, f64::INFINITY, 1e39] {
            let x = [1.0, bad, 1.0];
            let contexts = Dense::new(&x, 3, 1).expect("shape");
            let mut out = [5.0f32; 6];
            let chosen = votes().play(&contexts, &[u64::MAX; 3], None, None, &mut out).expect("shape");
            assert_eq!((chosen.arms, chosen.tied[1]), (vec![7, -10, 7], 2));
            assert_eq!(out, [1.0, 7.0, 0.0, 0.0, 1.0, 7.0]);
        }
        for columns in [[0i32, 0], [0, 1]] {
            let contexts = Csr::new(&[0, 2], &columns, &[1.0f32, 2.0], 1).expect("offsets");
            let chosen = votes().play(&contexts, &[0], None, None, &mut [1.0f32; 2]).expect("shape");
            assert_eq!(chosen.arms, [-8]);
        }
    }

    #[test]
    fn rows_for_each_arm_share_their_draws() {
        let draws: Vec<f64> = [1.0, 0.0].repeat(DRAWS);
        let map = || Map { inverse: vec![1.0], shift: vec![0.0], ball: 4.0, norm: 9.0 };
        let votes = Votes::new(&draws, vec![3, 4, 5], map(), false).expect("shape");
        let x = [1.0, 3.0, 2.0, -1.0, -3.0, f64::NAN];
        let contexts = Dense::new(&x, 6, 1).expect("shape");
        let mut out = [9.0f64; 4];
        let chosen = votes.play(&contexts, &[0, 0], None, None, &mut out).expect("shape");
        assert_eq!((chosen.arms, out), (vec![4, -4], [3.0, 4.0, 0.0, 0.0]));
        assert!(votes.play(&contexts, &[0], None, None, &mut out[..2]).is_err());
        assert!(Votes::new(&draws, vec![3, 4], map(), true).is_err());
    }

    #[test]
    fn a_batch_has_the_bits_of_its_rounds_dense_or_sparse() {
        let (n, d, arms) = (23, 19, 3);
        let value = |i: usize| ((i * 7919 % 1013) as f64 - 500.0) / 311.0;
        let draws: Vec<f64> = (0..DRAWS * arms * (d + 1)).map(value).collect();
        let map = Map { inverse: vec![0.7; d], shift: vec![0.1; d], ball: 1.5, norm: 2.0 };
        let votes = Votes::new(&draws, vec![0, 1, 2], map, true).expect("shape");
        let x: Vec<f64> = (0..n * d).map(|i| value(i * i + 3)).collect();
        let words: Vec<u64> = (0..n as u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        let mut out = vec![0.0f32; n * (d + 1)];
        let whole =
            votes.play(&Dense::new(&x, n, d).expect("shape"), &words, None, None, &mut out).expect("shape");
        for i in 0..n {
            let mut row = vec![0.0f32; d + 1];
            let one = Dense::new(&x[i * d..(i + 1) * d], 1, d).expect("shape");
            let alone = votes.play(&one, &words[i..=i], None, None, &mut row).expect("shape");
            assert_eq!((alone.arms[0], alone.tied[0]), (whole.arms[i], whole.tied[i]));
            assert_eq!(row, out[i * (d + 1)..(i + 1) * (d + 1)]);
        }
        let indptr: Vec<i64> = (0..=n).map(|i| (i * d) as i64).collect();
        let indices: Vec<i64> = (0..n * d).map(|i| (i % d) as i64).collect();
        let mut sparse = vec![0.0f32; n * (d + 1)];
        let contexts = Csr::new(&indptr, &indices, &x, d).expect("offsets");
        let chosen = votes.play(&contexts, &words, None, None, &mut sparse).expect("shape");
        assert_eq!((chosen.arms, chosen.tied, sparse), (whole.arms, whole.tied, out));
    }
}
