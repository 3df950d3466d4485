//! What an episode of pursuit asks of rows: the private integers of its release, of rows of this process.
//!
//! | [`Sums`] | integers |
//! |---|---|
//! | numbers | three of whole rows: [`row_numbers`] |
//! | candidates | gradients of all columns relative to the public ones: [`relative_sums`] |
//! | further | the same at residuals less what the picks so far may explain |
//! | vector | gradients, second moments and the residuals' size on public and picked columns: [`settled_sums`] |
//! | | then, where it is asked for, what was earned: [`board`] |
//!
//! Rows may also be a part of an episode's: the integers of parts are added up ([`Asked`] is all that another process
//! has to know), and the bits are those of all rows together.

use std::borrow::Cow;

use crate::private::board;
use crate::private::episode::Sums;
use crate::private::gradient::Plan;
use crate::private::peel::ColumnPick;
use crate::private::relative::numbers::{Ruler, ValueRows, row_numbers};
use crate::private::relative::pass::{Kept, Public, relative_sums};
use crate::private::relative::settled::{Measure, Settled, settled_sums};
use crate::private::relative::shifted::{Moved, ShiftedRows, shifted_sums};
use crate::private::relative::support::{Chosen, ColumnRows};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{copied, with_room, zeros};
use crate::runtime::parallel::{for_each, threads_for};

/// A picked column takes no more off a row's residual than at this many times its typical value: contexts that are
/// larger than was told do not make it worse than a sign.
const FARTHEST: f64 = 2.0;

/// Rows handed to a thread at a time, and values below which one thread is faster.
const BLOCK_ROWS: usize = 1 << 11;
const SERIAL_BELOW: usize = 1 << 16;

/// What an episode asks of its rows, fixed before they are read. Public.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What rewards are compared with, and the clip of candidates.
    pub public: Public<'a>,
    /// What a pick is assumed to explain of a reward, where a row's value is that of the constant column, while later
    /// ones are picked.
    pub assumed: f64,
    /// Bounds of what is measured on the `m` columns that are public then.
    pub measure: Measure<'a>,
    /// What whole rows are measured with, if they are.
    pub ruler: Option<Ruler<'a>>,
    /// Where rewards are expected, if what was earned is asked for.
    pub board: Option<board::Range>,
}

/// Standard deviations of the vector on `m` columns, from those of gradients, of second moments above the diagonal and of
/// the size of residuals.
///
/// Noise on the diagonal is at least sqrt(2) times that above it: the sensitivity `radius^4` of second moments counts on
/// it, `|v v' - w w'|_F^2 <= 2 radius^4` with every entry above the diagonal counted twice.
pub fn vector_sigmas(m: usize, [gradient, moments, size]: [u64; 3]) -> Vec<u64> {
    let squared = u128::from(moments) * u128::from(moments);
    let diagonal = (2 * squared).isqrt() as u64 + 1;
    let mut sigmas = vec![gradient; m];
    for row in 0..m {
        sigmas.push(diagonal);
        sigmas.extend(std::iter::repeat_n(moments, m - row - 1));
    }
    sigmas.push(size);
    sigmas
}

/// Rows that pursuit can read.
pub trait PursuitRows: ColumnRows + ShiftedRows + ValueRows {}
impl<R: ColumnRows + ShiftedRows + ValueRows> PursuitRows for R {}

/// The private integers of rows of this process; they end with this value.
pub struct RowSums<'a, R> {
    rows: &'a R,
    rewards: &'a [f64],
    present: Option<&'a [u8]>,
    asked: &'a Asked<'a>,
    plan: Plan,
    kept: Option<Residuals>,
}

/// The constant and the public columns of each row, and what they leave of its reward.
struct Residuals {
    support: Vec<f64>,
    residuals: Vec<f64>,
}

impl<'a, R: PursuitRows> RowSums<'a, R> {
    /// Sums of `rows`, of which none is read yet.
    pub fn new(
        rows: &'a R,
        rewards: &'a [f64],
        present: Option<&'a [u8]>,
        asked: &'a Asked<'a>,
        plan: Plan,
    ) -> Self {
        RowSums { rows, rewards, present, asked, plan, kept: None }
    }

    /// Integers of all columns, and what is kept of the rows for the steps that follow.
    fn first_pass(&self) -> Result<(Vec<i64>, Residuals)> {
        let (n, width) = (ColumnRows::rows(self.rows), 1 + self.asked.public.columns.len());
        let mut support = zeros(n.checked_mul(width).ok_or(Error::Memory)?)?;
        let mut residuals = zeros(n)?;
        let kept = Kept { support: &mut support, width, residuals: &mut residuals };
        let scores =
            relative_sums(self.rows, self.rewards, self.present, self.asked.public, kept, self.plan)?;
        Ok((scores, Residuals { support, residuals }))
    }

    /// What is kept; rows are read for it where nothing was picked before.
    fn kept(&mut self) -> Result<&Residuals> {
        if self.kept.is_none() {
            self.kept = Some(self.first_pass()?.1);
        }
        Ok(self.kept.as_ref().expect("set above"))
    }

    /// What was earned, and how often rewards, and the public columns of rows, had to be cut.
    fn board(&mut self, range: board::Range) -> Result<[i64; board::WIDTH]> {
        let Measure { scale, radius, .. } = self.asked.measure;
        let width = 1 + self.asked.public.columns.len();
        let longest = board::CUT * (radius as f64 / scale).powi(2);
        self.kept()?;
        let kept = self.kept.as_ref().expect("set above");
        let mut board = [0; board::WIDTH];
        for (i, row) in kept.support.chunks_exact(width).enumerate().filter(|(i, _)| self.counts(*i)) {
            let square = row.iter().fold(0.0, |sum, value| sum + value * value);
            range.add(&mut board, self.rewards[i], square.is_nan() || square > longest);
        }
        Ok(board)
    }

    fn counts(&self, i: usize) -> bool {
        self.present.is_none_or(|flags| flags[i] != 0)
    }

    /// Residuals less what the picks may explain, and what is taken off all coordinates of each row. What is no number
    /// in them counts as 0 in sums.
    fn less_explained(
        &self,
        kept: &Residuals,
        picked: &[ColumnPick],
    ) -> Result<(Vec<f64>, Option<Vec<f64>>)> {
        let Public { one, shift, units, .. } = self.asked.public;
        let mut columns = with_room(picked.len())?;
        columns.extend(picked.iter().map(|pick| pick.column));
        let chosen = Chosen::new(&columns, ColumnRows::columns(self.rows))?;
        let most = FARTHEST * one;
        let width = 1 + self.asked.public.columns.len();
        let mut left = copied(&kept.residuals)?;
        let mut shifts = zeros(if shift.is_some() { left.len() } else { 0 })?;
        if let Some(shift) = shift {
            for (sum, row) in shifts.iter_mut().zip(kept.support.chunks_exact(width)) {
                *sum = row.iter().zip(shift).fold(0.0, |sum, (value, weight)| sum + weight * value);
            }
        }
        let threads = threads_for(self.plan.threads, left.len() * picked.len(), SERIAL_BELOW);
        for_each(threads, left.chunks_mut(BLOCK_ROWS).enumerate(), |(block, left)| {
            let mut values = zeros(picked.len())?;
            for (offset, left) in left.iter_mut().enumerate() {
                let i = block * BLOCK_ROWS + offset;
                if !self.counts(i) {
                    continue;
                }
                values.fill(0.0);
                self.rows.read(i, &chosen, |place, value| values[place] = value)?;
                for (pick, value) in picked.iter().zip(&values) {
                    let value = units.map_or(*value, |units| value / units[pick.column]);
                    *left -= pick.sign as f64 * self.asked.assumed / one * value.clamp(-most, most);
                }
            }
            Ok(())
        })?;
        Ok((left, shift.map(|_| shifts)))
    }
}

impl<R: PursuitRows> Sums for RowSums<'_, R> {
    type Error = Error;

    fn numbers(&mut self) -> Result<Vec<i64>> {
        let ruler =
            self.asked.ruler.ok_or_else(|| Error::invalid("rows are not measured in this episode"))?;
        copied(&row_numbers(self.rows, ruler, self.present, self.plan)?)
    }

    fn candidates(&mut self) -> Result<Cow<'_, [i64]>> {
        let (scores, kept) = self.first_pass()?;
        self.kept = Some(kept);
        Ok(Cow::Owned(scores))
    }

    fn further(&mut self, picked: &[ColumnPick]) -> Result<Cow<'_, [i64]>> {
        self.kept()?;
        let kept = self.kept.as_ref().expect("set above");
        let (left, shifts) = self.less_explained(kept, picked)?;
        let Public { units, clip, .. } = self.asked.public;
        let present = self.present;
        let moved = Moved { residuals: &left, shifts: shifts.as_deref(), units, clip, present, first: 0 };
        shifted_sums(self.rows, moved, self.plan).map(Cow::Owned)
    }

    /// `m` gradients, second moments on and above the diagonal row after row, and the size of residuals.
    fn vector(&mut self, picked: &[ColumnPick]) -> Result<Vec<i64>> {
        let (rows, present, asked, plan) = (self.rows, self.present, self.asked, self.plan);
        let kept = self.kept()?;
        let filled = 1 + asked.public.columns.len();
        let mut columns = with_room(picked.len())?;
        columns.extend(picked.iter().map(|pick| pick.column));
        let mut units = with_room(columns.len())?;
        units.extend(asked.public.units.iter().flat_map(|units| columns.iter().map(|column| units[*column])));
        let settled = Settled {
            support: &kept.support,
            filled,
            columns: &columns,
            units: asked.public.units.map(|_| &units[..]),
            residuals: &kept.residuals,
            present,
        };
        let sums = settled_sums(rows, settled, asked.measure, plan)?;
        let m = filled + columns.len();
        let mut vector = with_room(m * (m + 3) / 2 + 1)?;
        vector.extend_from_slice(&sums.gradient);
        (0..m).for_each(|i| vector.extend_from_slice(&sums.moments[i * m + i..(i + 1) * m]));
        vector.push(sums.size);
        if let Some(range) = asked.board {
            vector.extend_from_slice(&self.board(range)?);
        }
        Ok(vector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Csr, Dense};
    use crate::noise::entropy::predictable::SeededNoise;
    use crate::noise::gaussian_vector::release_vector;
    use crate::private::draws::{Added, Call, Recording};
    use crate::private::episode::{Answer, Last, Picking, Question, Signs, release};
    use crate::private::gradient::Loss;
    use crate::private::peel::ColumnPicker;

    const WHITEN: [f64; 16] =
        [1.0, 0.1, 0.0, 0.0, 0.1, 0.9, 0.0, 0.2, 0.0, 0.0, 1.1, 0.0, 0.0, 0.2, 0.0, 1.0];
    const UNITS: [f64; 6] = [1.0, 2.0, 0.5, 1.0, 3.0, 1.0];
    const N: usize = 50;

    fn values(n: usize) -> Vec<f32> {
        (0..6 * n).map(|i| if i % 5 == 0 { 0.0 } else { (i * 37 % 101) as f32 * 0.04 - 2.0 }).collect()
    }

    fn rewards(n: usize) -> Vec<f64> {
        (0..n).map(|i| (i as f64 * 0.37).sin() * 2.0).collect()
    }

    fn asked(units: Option<&[f64]>, assumed: f64) -> Asked<'_> {
        Asked {
            public: Public {
                one: 1.5,
                columns: &[3],
                weights: &[0.2, 0.7],
                shift: Some(&[0.1, 0.3]),
                units,
                loss: Loss::Squared,
                range: None,
                clip: 1.3,
            },
            assumed,
            measure: Measure { whiten: &WHITEN, clip: 0.9, radius: 4095, scale: 700.0, cap: 2.5 },
            ruler: Some(Ruler { size: 1.1, octaves: 8.0, units }),
            board: None,
        }
    }

    fn question(sigmas: &[u64], signs: Signs, following: bool) -> Question<'_> {
        Question {
            numbers: Some(Added::Gaussian(&[70_000, 80_000, 90_000])),
            picking: Picking::Columns { count: 2, scale: 40_000, signs, following, excluded: &[3] },
            vector: Last::Fresh(Added::Gaussian(sigmas)),
        }
    }

    /// The steps one by one, on the same words.
    fn in_steps(
        rows: &Dense<'_, f32>,
        asked: &Asked<'_>,
        sigmas: &[u64],
        signed: bool,
        following: bool,
        noise: &mut SeededNoise,
    ) -> Answer {
        let (plan, rewards) = (Plan::default(), rewards(N));
        let mut numbers = row_numbers(rows, asked.ruler.expect("set"), None, plan).expect("valid").to_vec();
        release_vector(&mut numbers, &[70_000, 80_000, 90_000], noise).expect("valid");
        let (mut support, mut residuals) = (vec![0.0; 2 * N], vec![0.0; N]);
        let kept = Kept { support: &mut support, width: 2, residuals: &mut residuals };
        let scores = relative_sums(rows, &rewards, None, asked.public, kept, plan).expect("valid");
        let picker = |signed| ColumnPicker::new(40_000, signed).expect("valid");
        let unit = |column: usize| asked.public.units.map_or(1.0, |units| units[column]);
        let mut picks;
        if following {
            picks = picker(true).pick(&scores, &[3], 1, noise).expect("valid");
            let first = picks[0];
            let left: Vec<f64> = (0..N)
                .map(|i| {
                    let value = f64::from(rows.row(i)[first.column]) / unit(first.column);
                    residuals[i] - first.sign as f64 * asked.assumed / 1.5 * value.clamp(-3.0, 3.0)
                })
                .collect();
            let shifts: Vec<f64> = support.chunks(2).map(|row| 0.0 + 0.1 * row[0] + 0.3 * row[1]).collect();
            let moved = Moved {
                residuals: &left,
                shifts: Some(&shifts),
                units: asked.public.units,
                clip: 1.3,
                present: None,
                first: 0,
            };
            let scores = shifted_sums(rows, moved, plan).expect("valid");
            picks.extend(picker(signed).pick(&scores, &[3, first.column], 1, noise).expect("valid"));
            if !signed {
                picks[1].sign = 0;
            }
        } else {
            picks = picker(signed).pick(&scores, &[3], 2, noise).expect("valid");
            if !signed {
                picks.iter_mut().for_each(|pick| pick.sign = 0);
            }
        }
        let columns = [picks[0].column, picks[1].column];
        let units = asked.public.units.map(|units| columns.map(|column| units[column]));
        let settled = Settled {
            support: &support,
            filled: 2,
            columns: &columns,
            units: units.as_ref().map(|units| &units[..]),
            residuals: &residuals,
            present: None,
        };
        let sums = settled_sums(rows, settled, asked.measure, plan).expect("valid");
        let mut vector = sums.gradient.clone();
        for (i, j) in [(0, 0), (0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3)] {
            vector.push(sums.moments[4 * i + j]);
        }
        vector.push(sums.size);
        release_vector(&mut vector, sigmas, noise).expect("valid");
        Answer { numbers, picks, vector, secret: Vec::new() }
    }

    #[test]
    fn a_release_is_its_steps_on_the_same_words() {
        let values = values(N);
        let (rows, rewards) = (Dense::new(&values, N, 6).expect("valid"), rewards(N));
        let sigmas: Vec<u64> = (0..15).map(|i| 1 + 1000 * i).collect();
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..40 {
            for units in [None, Some(&UNITS[..])] {
                for (signs, following) in
                    [(Signs::All, false), (Signs::None, false), (Signs::All, true), (Signs::AllButLast, true)]
                {
                    let asked = asked(units, if following { 0.4 } else { 0.0 });
                    let (one, two) = (&mut SeededNoise::new(seed, 0), &mut SeededNoise::new(seed, 0));
                    let sums = &mut RowSums::new(&rows, &rewards, None, &asked, Plan::default());
                    let found = release(&question(&sigmas, signs, following), sums, one).expect("valid");
                    let signed = signs == Signs::All;
                    assert_eq!(found, in_steps(&rows, &asked, &sigmas, signed, following, two));
                    assert_eq!(one.words_drawn(), two.words_drawn());
                    seen.insert(found.picks[1].column);
                }
            }
        }
        // Noise decides, never for a column that is public.
        assert!(seen.len() > 1 && !seen.contains(&3));
    }

    #[test]
    fn sparse_rows_threads_and_parts_change_nothing_and_rows_that_are_absent_are_not_read() {
        let n = 64;
        let mut values = values(n);
        let rewards = vec![0.5; n];
        let mut present = vec![1u8; n];
        present[7] = 0;
        let (mut offsets, mut columns, mut data) = (vec![0i64], Vec::new(), Vec::new());
        for row in values.chunks(6) {
            for (j, x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                columns.push(j as i64);
                data.push(*x);
            }
            offsets.push(columns.len() as i64);
        }
        values[6 * 7..6 * 8].fill(f32::NAN);
        let dense = Dense::new(&values, n, 6).expect("valid");
        let sparse = Csr::new(&offsets, &columns, &data, 6).expect("valid");
        let (sigmas, asked) = ([1u64; 15], asked(None, 0.4));
        let question = question(&sigmas, Signs::All, true);
        let released = |threads| {
            let plan = Plan { threads: Some(threads), block_rows: Some(9), ..Plan::default() };
            let noise = || SeededNoise::new(3, 0);
            let mut sums = RowSums::new(&dense, &rewards, Some(&present), &asked, plan);
            let one = release(&question, &mut sums, &mut noise()).expect("valid");
            let mut sums = RowSums::new(&sparse, &rewards, Some(&present), &asked, plan);
            assert_eq!(one, release(&question, &mut sums, &mut noise()).expect("valid"));
            one
        };
        assert_eq!(released(1), released(3));
        // Parts of the rows add up to all of them, at every step.
        let picked = [ColumnPick { column: 1, sign: -1 }, ColumnPick { column: 4, sign: 1 }];
        let of = |from: usize, to: usize| {
            let rows = Dense::new(&values[6 * from..6 * to], to - from, 6).expect("valid");
            let flags = Some(&present[from..to]);
            let mut sums = RowSums::new(&rows, &rewards[from..to], flags, &asked, Plan::default());
            let mut all = sums.numbers().expect("valid");
            all.extend(sums.candidates().expect("valid").iter());
            all.extend(sums.further(&picked).expect("valid").iter());
            all.extend(sums.vector(&picked).expect("valid"));
            all
        };
        let parts = [of(0, 20), of(20, 21), of(21, n)];
        let added: Vec<i64> = (0..parts[0].len()).map(|i| parts.iter().map(|part| part[i]).sum()).collect();
        assert_eq!(added, of(0, n));
    }

    #[test]
    fn what_does_not_fit_releases_nothing() {
        let values = values(10);
        let rows = Dense::new(&values, 10, 6).expect("valid");
        let fails = |question: Question<'_>, asked: &Asked<'_>| {
            let noise = &mut SeededNoise::new(1, 0);
            release(&question, &mut RowSums::new(&rows, &[0.5; 10], None, asked, Plan::default()), noise)
                .is_err()
        };
        let (sigmas, usual) = ([5u64; 15], asked(None, 0.4));
        assert!(!fails(question(&sigmas, Signs::All, true), &usual));
        assert!(fails(question(&sigmas[..14], Signs::All, true), &usual));
        assert!(fails(question(&[0; 15], Signs::All, true), &usual));
        assert!(fails(question(&sigmas, Signs::AllButLast, false), &usual));
        assert!(fails(question(&sigmas, Signs::All, true), &asked(Some(&UNITS[..5]), 0.4)));
        assert!(fails(question(&sigmas, Signs::All, true), &Asked { ruler: None, ..usual }));
        let many =
            Picking::Columns { count: 6, scale: 9, signs: Signs::All, following: true, excluded: &[3] };
        assert!(fails(Question { picking: many, ..question(&sigmas, Signs::All, true) }, &usual));
    }

    #[test]
    fn a_recording_keeps_what_noise_is_asked_for_and_shows_no_sum() {
        let values = values(N);
        let (rows, rewards) = (Dense::new(&values, N, 6).expect("valid"), rewards(N));
        let (sigmas, asked) = ([7u64; 15], asked(None, 0.4));
        let given = [ColumnPick { column: 4, sign: -1 }, ColumnPick { column: 0, sign: 1 }];
        let mut noise = Recording::new(given);
        let mut sums = RowSums::new(&rows, &rewards, None, &asked, Plan::default());
        let answer = release(&question(&sigmas, Signs::All, true), &mut sums, &mut noise).expect("valid");
        let nothing =
            Answer { numbers: vec![0; 3], picks: given.to_vec(), vector: vec![0; 15], secret: Vec::new() };
        assert_eq!(answer, nothing);
        let [Call::Vector { values: numbers, .. }, Call::Picks { scores, excluded, .. }, second, last] =
            noise.calls()
        else {
            panic!("numbers, two picks, a vector")
        };
        let mut again = RowSums::new(&rows, &rewards, None, &asked, Plan::default());
        assert_eq!(*numbers, again.numbers().expect("valid"));
        assert_eq!(*scores, again.candidates().expect("valid").into_owned());
        assert_eq!(*excluded, [3]);
        let Call::Picks { scores, excluded, .. } = second else { panic!("a second pick") };
        assert_eq!(*scores, again.further(&given[..1]).expect("valid").into_owned());
        assert_eq!(*excluded, [3, 4]);
        let expected = Call::Vector { values: again.vector(&given).expect("valid"), sigmas: sigmas.to_vec() };
        assert_eq!(*last, expected);
        // Picks that can't be made are refused: an audit would count them as outcomes.
        let mut wrong = Recording::new([ColumnPick { column: 3, sign: 1 }]);
        assert!(release(&question(&sigmas, Signs::All, true), &mut again, &mut wrong).is_err());
    }

    #[test]
    fn the_diagonal_of_second_moments_has_sqrt_2_times_the_noise() {
        assert_eq!(vector_sigmas(2, [5, 1000, 9]), [5, 5, 1415, 1000, 1415, 9]);
        for moments in [1u64, 2, 12_345, (1 << 40) - 1] {
            let diagonal = u128::from(vector_sigmas(1, [1, moments, 1])[1]);
            assert!(diagonal * diagonal > 2 * u128::from(moments) * u128::from(moments));
        }
    }
}
