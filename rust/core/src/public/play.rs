//! Rounds of play: the best arm of each round, whether its contexts can be used, and the chosen row, copied.
//!
//! What happens to a round is a function of that round's own contexts, its one random word and the public
//! estimate. In particular contents never raise: a bad round would otherwise stop the others of its batch, or
//! move every later episode.
//!
//! A round is *valid* if every value of every arm is finite in single precision, sparse rows have strictly
//! increasing columns in range, and all scores are finite. An invalid round plays a uniform arm and leaves a
//! row of zeros.
//!
//! A round may be *explored*: it then plays a uniform arm, whatever the scores. Which rounds are is decided by
//! the caller, from random words of their own.

use crate::matrix::scalar::Real;
use crate::matrix::{Csr, Dense, Index};
use crate::public::score::{Arms, best_and_tied, nth_of};
use crate::public::theta::Theta;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{make_room, with_room, zeros};
use crate::runtime::parallel::{for_each, threads_for};
use crate::runtime::simd::{Level, Vectorised};

/// Below this many values one thread is faster: starting a second takes about as long.
const SERIAL_BELOW: usize = 1 << 18;

/// Counts of tied arms end here: stores keep them in three bytes.
pub const MOST_TIED: usize = (1 << 24) - 1;

/// Contexts whose rows can be checked and copied: dense or sparse.
pub trait Contexts: Arms {
    /// Whether row `i` can be stored: canonical, and finite in single precision.
    fn storable(&self, i: usize) -> bool;
    /// Copy row `i`, rounded to the stored type. False if what was copied can't be stored: another thread of
    /// the caller may have written to the row since it was checked.
    fn copy_dense<S: Real>(&self, i: usize, out: &mut [S]) -> bool;
    /// Append row `i`'s non-zero values, rounded to the stored type. False as for `copy_dense`.
    fn append<S: Real>(&self, i: usize, columns: &mut Vec<i32>, values: &mut Vec<S>) -> bool;
    /// Values that row `i` has at most.
    fn row_size(&self, i: usize) -> usize;
    /// Values read by checking all rows.
    fn size(&self) -> usize;
}

#[inline(always)]
fn all_finite<T: Real>(row: &[T]) -> bool {
    !f32::tripped(row.iter().fold(0, |probe, x| f32::join(probe, (x.to_f64() as f32).probe())))
}

impl<T: Real> Contexts for Dense<'_, T> {
    #[inline(always)]
    fn storable(&self, i: usize) -> bool {
        all_finite(self.row(i))
    }

    #[inline(always)]
    fn copy_dense<S: Real>(&self, i: usize, out: &mut [S]) -> bool {
        for (stored, x) in out.iter_mut().zip(self.row(i)) {
            *stored = S::from_f64(x.to_f64());
        }
        all_finite(out)
    }

    fn append<S: Real>(&self, i: usize, columns: &mut Vec<i32>, values: &mut Vec<S>) -> bool {
        let before = values.len();
        for (column, x) in self.row(i).iter().enumerate().filter(|(_, x)| **x != T::ZERO) {
            columns.push(column as i32);
            values.push(S::from_f64(x.to_f64()));
        }
        all_finite(&values[before..])
    }

    fn row_size(&self, _i: usize) -> usize {
        self.columns()
    }

    fn size(&self) -> usize {
        self.rows() * self.columns()
    }
}

impl<T: Real, I: Index> Contexts for Csr<'_, T, I> {
    #[inline(always)]
    fn storable(&self, i: usize) -> bool {
        self.canonical_row(i).is_ok_and(|(_, values)| all_finite(values))
    }

    #[inline(always)]
    fn copy_dense<S: Real>(&self, i: usize, out: &mut [S]) -> bool {
        out.fill(S::ZERO);
        let (columns, values) = self.row(i);
        let mut in_range = true;
        for (column, x) in columns.iter().zip(values) {
            match out.get_mut(column.position()) {
                Some(stored) => *stored = S::from_f64(x.to_f64()),
                None => in_range = false,
            }
        }
        in_range && all_finite(out)
    }

    fn append<S: Real>(&self, i: usize, columns: &mut Vec<i32>, values: &mut Vec<S>) -> bool {
        let (columns_of, row) = self.row(i);
        let before = values.len();
        columns.extend(columns_of.iter().map(|column| column.position() as i32));
        values.extend(row.iter().map(|x| S::from_f64(x.to_f64())));
        let copied = &columns[before..];
        let increasing = copied.iter().zip(copied.get(1..).unwrap_or_default()).all(|(a, b)| a < b);
        let in_range = copied.first().is_none_or(|first| *first >= 0)
            && copied.last().is_none_or(|last| (*last as usize) < self.columns());
        increasing && in_range && all_finite(&values[before..])
    }

    fn row_size(&self, i: usize) -> usize {
        self.row(i).1.len()
    }

    fn size(&self) -> usize {
        self.stored()
    }
}

/// What one estimate makes of many rounds: round `i` is rows `i * arms .. (i + 1) * arms` of the contexts,
/// `words[i]` its share of randomness, and `keep[i] == 0` says that its row must not be kept.
#[derive(Debug)]
pub struct Rounds<'a, C> {
    contexts: &'a C,
    arms: usize,
    theta: &'a Theta,
    words: &'a [u64],
    keep: Option<&'a [u8]>,
    explored: Option<&'a [u8]>,
}

/// What was played, one entry a round.
#[derive(Debug)]
pub struct Chosen {
    /// The arm, or `-1 - arm` if the round is invalid.
    pub arms: Vec<i64>,
    /// How many arms share the first place, if the arm is one of them; otherwise 0, which only an explored
    /// round can have. All arms of an invalid round. At most [`MOST_TIED`].
    pub tied: Vec<u32>,
}

/// Chosen rows as compressed sparse rows without offsets.
#[derive(Debug)]
pub struct SparseRows<S> {
    /// Stored values of each row.
    pub lengths: Vec<u32>,
    /// Column of each stored value.
    pub columns: Vec<i32>,
    /// The stored values.
    pub values: Vec<S>,
}

impl<'a, C: Contexts> Rounds<'a, C> {
    /// Group `contexts` into rounds.
    ///
    /// # Errors
    /// If shapes do not fit. Never because of what a context holds.
    pub fn new(
        contexts: &'a C,
        arms: usize,
        theta: &'a Theta,
        words: &'a [u64],
        keep: Option<&'a [u8]>,
    ) -> Result<Self> {
        if contexts.columns() != theta.dimension() || theta.dimension() > i32::MAX as usize {
            return Err(Error::invalid("contexts must have one column for each coordinate of the estimate"));
        }
        if arms == 0 || words.len().checked_mul(arms) != Some(contexts.rows()) {
            return Err(Error::invalid("contexts must hold a whole number of rounds of at least one arm"));
        }
        if keep.is_some_and(|keep| keep.len() != words.len()) {
            return Err(Error::invalid("keep must have one flag for each round"));
        }
        Ok(Rounds { contexts, arms, theta, words, keep, explored: None })
    }

    /// Play a uniform arm in the rounds whose flag is not 0.
    ///
    /// # Errors
    /// If there is not one flag for each round.
    pub fn exploring(self, explored: Option<&'a [u8]>) -> Result<Self> {
        if explored.is_some_and(|explored| explored.len() != self.words.len()) {
            return Err(Error::invalid("explored must have one flag for each round"));
        }
        Ok(Rounds { explored, ..self })
    }

    /// Play all rounds and copy the chosen rows into `out`, zeros where none is kept.
    ///
    /// # Errors
    /// If `out` has not one row for each round.
    pub fn play_dense<S: Real>(&self, out: &mut [S]) -> Result<Chosen> {
        let columns = self.contexts.columns();
        if self.words.len().checked_mul(columns) != Some(out.len()) {
            return Err(Error::invalid("out must have one row for each round"));
        }
        let (mut arms, mut tied) = (zeros(self.words.len())?, zeros(self.words.len())?);
        let level = Level::best();
        let threads = threads_for(None, self.contexts.size(), SERIAL_BELOW);
        let share = arms.len().div_ceil(threads).max(1);
        let chosen = arms.chunks_mut(share).zip(tied.chunks_mut(share));
        let parts = chosen.zip(out.chunks_mut((share * columns).max(1))).enumerate();
        for_each(threads, parts, |(p, (chosen, out))| {
            level.run(DensePart { rounds: self, first: p * share, chosen, out })
        })?;
        Ok(Chosen { arms, tied })
    }

    /// As [`Rounds::play_dense`], for rows that are stored sparse.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn play_sparse<S: Real>(&self) -> Result<(Chosen, SparseRows<S>)> {
        let mut rows =
            SparseRows { lengths: with_room(self.words.len())?, columns: Vec::new(), values: Vec::new() };
        let mut scores = zeros(self.arms)?;
        let mut played = Chosen { arms: with_room(self.words.len())?, tied: with_room(self.words.len())? };
        for round in 0..self.words.len() {
            let (mut arm, mut tied) = self.play(round, &mut scores);
            let before = rows.values.len();
            if self.keeps(round) && arm >= 0 {
                let row = round * self.arms + arm as usize;
                make_room(&mut rows.columns, self.contexts.row_size(row))?;
                make_room(&mut rows.values, self.contexts.row_size(row))?;
                if !self.contexts.append(row, &mut rows.columns, &mut rows.values) {
                    rows.columns.truncate(before);
                    rows.values.truncate(before);
                    (arm, tied) = self.invalid(round);
                }
            }
            rows.lengths.push((rows.values.len() - before) as u32);
            played.arms.push(arm);
            played.tied.push(tied);
        }
        Ok((played, rows))
    }

    #[inline(always)]
    fn keeps(&self, round: usize) -> bool {
        self.keep.is_none_or(|keep| keep[round] != 0)
    }

    #[inline(always)]
    fn play(&self, round: usize, scores: &mut [f64]) -> (i64, u32) {
        let first = round * self.arms;
        let word = self.words[round];
        let storable = (first..first + self.arms).all(|i| self.contexts.storable(i));
        if storable
            && self.contexts.score(first, self.theta, scores).is_ok()
            && scores.iter().all(|score| score.is_finite())
        {
            let (mut arm, mut tied) = best_and_tied(scores, word);
            if self.explored.is_some_and(|explored| explored[round] != 0) {
                let uniform = nth_of(word, self.arms);
                tied = if scores[uniform] == scores[arm] { tied } else { 0 };
                arm = uniform;
            }
            (arm as i64, tied.min(MOST_TIED) as u32)
        } else {
            self.invalid(round)
        }
    }

    /// A uniform arm, marked as that of an invalid round.
    #[inline(always)]
    fn invalid(&self, round: usize) -> (i64, u32) {
        (-1 - nth_of(self.words[round], self.arms) as i64, self.arms.min(MOST_TIED) as u32)
    }
}

struct DensePart<'a, 'b, C, S> {
    rounds: &'b Rounds<'a, C>,
    first: usize,
    chosen: (&'b mut [i64], &'b mut [u32]),
    out: &'b mut [S],
}

impl<C: Contexts, S: Real> Vectorised for DensePart<'_, '_, C, S> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let rounds = self.rounds;
        let mut scores = zeros(rounds.arms)?;
        let rows = self.out.chunks_exact_mut(rounds.contexts.columns().max(1));
        let chosen = self.chosen.0.iter_mut().zip(self.chosen.1);
        for ((round, (arm, tied)), row) in (self.first..).zip(chosen).zip(rows) {
            (*arm, *tied) = rounds.play(round, &mut scores);
            if *arm >= 0 && rounds.keeps(round) {
                if rounds.contexts.copy_dense(round * rounds.arms + *arm as usize, row) {
                    continue;
                }
                (*arm, *tied) = rounds.invalid(round);
            }
            row.fill(S::ZERO);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theta() -> Theta {
        Theta::from_pairs([(1, 2.0)], 3).expect("valid")
    }

    /// Two rounds of two arms; the second has `bad` in a column the estimate never reads.
    fn values(bad: f64) -> Vec<f64> {
        vec![0.0, 1.0, 5.0, 0.0, 3.0, 6.0, 7.0, 1.0, bad, 8.0, -1.0, 0.0]
    }

    #[test]
    fn the_best_arm_is_chosen_and_its_row_copied() {
        let (x, theta) = (values(0.0), theta());
        let contexts = Dense::new(&x, 4, 3).expect("shape");
        let rounds = Rounds::new(&contexts, 2, &theta, &[0, 0], None).expect("shape");
        let mut out = [9.0f32; 6];
        assert_eq!(rounds.play_dense(&mut out).expect("shape").arms, [1, 0]);
        assert_eq!(out, [0.0, 3.0, 6.0, 7.0, 1.0, 0.0]);
        let (chosen, rows) = rounds.play_sparse::<f64>().expect("memory");
        assert_eq!(chosen.arms, [1, 0]);
        assert_eq!(
            (rows.lengths, rows.columns, rows.values),
            (vec![2, 2], vec![1, 2, 0, 1], vec![3.0, 6.0, 7.0, 1.0])
        );
    }

    #[test]
    fn an_explored_round_is_uniform_and_knows_whether_its_arm_is_a_best_one() {
        let theta = theta();
        // Scores of the three arms: 2, 2, 0.
        let x = [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 5.0, 0.0, 0.0];
        let contexts = Dense::new(&x, 3, 3).expect("shape");
        for (word, greedy, uniform, tied) in [(0, 0, 0, 2), (1 << 63, 1, 1, 2), (u64::MAX, 1, 2, 0)] {
            let words = [word];
            let rounds = || Rounds::new(&contexts, 3, &theta, &words, None).expect("shape");
            let mut out = [9.0f32; 3];
            for (flags, arm, tied) in [([0], greedy, 2), ([1], uniform, tied)] {
                let rounds = rounds().exploring(Some(&flags)).expect("shape");
                let chosen = rounds.play_dense(&mut out).expect("shape");
                assert_eq!((chosen.arms[0], chosen.tied[0]), (arm, tied));
                assert_eq!(out[..], x.map(|x| x as f32)[3 * arm as usize..][..3]);
                let (chosen, _) = rounds.play_sparse::<f64>().expect("memory");
                assert_eq!((chosen.arms[0], chosen.tied[0]), (arm, tied));
            }
            assert!(rounds().exploring(Some(&[0, 1])).is_err());
        }
    }

    #[test]
    fn an_invalid_round_is_uniform_leaves_zeros_and_touches_no_other() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e39] {
            let (x, theta) = (values(bad), theta());
            let contexts = Dense::new(&x, 4, 3).expect("shape");
            for (word, arm) in [(0, 0), (u64::MAX, 1)] {
                let words = [word, word];
                let rounds = Rounds::new(&contexts, 2, &theta, &words, None).expect("shape");
                let mut out = [9.0f32; 6];
                assert_eq!(rounds.play_dense(&mut out).expect("shape").arms, [1, -1 - arm]);
                assert_eq!(out, [0.0, 3.0, 6.0, 0.0, 0.0, 0.0]);
                assert_eq!(rounds.play_sparse::<f32>().expect("memory").1.lengths, [2, 0]);
            }
        }
    }

    #[test]
    fn a_sparse_round_with_bad_columns_is_invalid() {
        let theta = theta();
        for columns in [[0i32, 0], [1, 0], [0, 3], [-1, 1]] {
            let contexts = Csr::new(&[0, 2], &columns, &[1.0f32, 2.0], 3).expect("offsets");
            let rounds = Rounds::new(&contexts, 1, &theta, &[7], None).expect("shape");
            assert_eq!(rounds.play_sparse::<f32>().expect("memory").0.arms, [-1]);
            assert_eq!(rounds.play_dense(&mut [1.0f32; 3]).expect("shape").arms, [-1]);
        }
    }

    /// Contexts that another thread writes to between the check and the copy.
    struct Racing<'a, C> {
        checked: &'a C,
        copied: &'a C,
    }

    impl<C: Contexts> Arms for Racing<'_, C> {
        fn rows(&self) -> usize {
            self.checked.rows()
        }
        fn columns(&self) -> usize {
            self.checked.columns()
        }
        fn values_read(&self, theta: &Theta) -> usize {
            self.checked.values_read(theta)
        }
        fn score(&self, first: usize, theta: &Theta, scores: &mut [f64]) -> Result<()> {
            self.checked.score(first, theta, scores)
        }
    }

    impl<C: Contexts> Contexts for Racing<'_, C> {
        fn storable(&self, i: usize) -> bool {
            self.checked.storable(i)
        }
        fn copy_dense<S: Real>(&self, i: usize, out: &mut [S]) -> bool {
            self.copied.copy_dense(i, out)
        }
        fn append<S: Real>(&self, i: usize, columns: &mut Vec<i32>, values: &mut Vec<S>) -> bool {
            self.copied.append(i, columns, values)
        }
        fn row_size(&self, i: usize) -> usize {
            self.copied.row_size(i)
        }

        fn size(&self) -> usize {
            self.checked.size()
        }
    }

    fn assert_second_round_invalid<C: Contexts>(checked: &C, copied: &C) {
        let theta = theta();
        let contexts = Racing { checked, copied };
        let rounds = Rounds::new(&contexts, 1, &theta, &[0, 0], None).expect("shape");
        let mut out = [9.0f32; 6];
        assert_eq!(rounds.play_dense(&mut out).expect("shape").arms, [0, -1]);
        assert_eq!(out[3..], [0.0; 3]);
        let (chosen, rows) = rounds.play_sparse::<f64>().expect("memory");
        assert_eq!(chosen.arms, [0, -1]);
        assert_eq!((rows.lengths, rows.columns, rows.values), (vec![1, 0], vec![1], vec![2.0]));
    }

    #[test]
    fn a_row_written_to_after_its_check_is_invalid_as_it_was_copied() {
        let good = [0.0, 2.0, 0.0, 1.0, 0.0, 0.0];
        for bad in [f64::NAN, f64::INFINITY, 1e39] {
            let mut written = good;
            written[5] = bad;
            let (checked, copied) =
                (Dense::new(&good, 2, 3).expect("shape"), Dense::new(&written, 2, 3).expect("shape"));
            assert_second_round_invalid(&checked, &copied);
        }
        let checked = Csr::new(&[0, 1, 2], &[1, 0], &[2.0f32, 1.0], 3).expect("offsets");
        for (column, value) in [(0, f32::NAN), (3, 1.0), (-1, 1.0)] {
            let (columns, values) = ([1, column], [2.0, value]);
            let copied = Csr::new(&[0, 1, 2], &columns, &values, 3).expect("offsets");
            assert_second_round_invalid(&checked, &copied);
        }
    }

    #[test]
    fn rows_that_must_not_be_kept_are_zeros() {
        let (x, theta) = (values(0.0), theta());
        let contexts = Dense::new(&x, 4, 3).expect("shape");
        let rounds = Rounds::new(&contexts, 2, &theta, &[0, 0], Some(&[0, 1])).expect("shape");
        let mut out = [9.0f64; 6];
        assert_eq!(rounds.play_dense(&mut out).expect("shape").arms, [1, 0]);
        assert_eq!(out, [0.0, 0.0, 0.0, 7.0, 1.0, 0.0]);
        assert_eq!(rounds.play_sparse::<f32>().expect("memory").1.lengths, [0, 2]);
    }

    #[test]
    fn shapes_must_fit() {
        let (x, theta) = (values(0.0), theta());
        let contexts = Dense::new(&x, 4, 3).expect("shape");
        assert!(Rounds::new(&contexts, 3, &theta, &[0], None).is_err());
        assert!(Rounds::new(&contexts, 0, &theta, &[], None).is_err());
        assert!(Rounds::new(&contexts, 2, &theta, &[0, 0], Some(&[1])).is_err());
        let other = Theta::from_pairs([], 2).expect("valid");
        assert!(Rounds::new(&contexts, 2, &other, &[0, 0], None).is_err());
        let rounds = Rounds::new(&contexts, 2, &theta, &[0, 0], None).expect("shape");
        assert!(rounds.play_dense(&mut [0.0f32; 5]).is_err());
    }
}
