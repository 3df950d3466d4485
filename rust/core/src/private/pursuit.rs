//! One episode of pursuit, from rows to what is released of them: picks outside the public columns, then one Gaussian
//! vector about the public ones and those just picked.
//!
//! | step | here |
//! |---|---|
//! | integer sums of all columns | [`relative_sums`] |
//! | **noise**: picks of new columns, by the exponential mechanism | [`ColumnPicker`] |
//! | integer sums on the public and the new columns | [`settled_sums`], and where they are asked for [`row_numbers`] |
//! | **noise**: one vector of them | [`release_vector`] |
//!
//! Sums live in here and end with the call: nothing private leaves. What noise there must be is the caller's to say and
//! to price.

use crate::noise::entropy::NoiseSource;
use crate::noise::gaussian_vector::release_vector;
use crate::private::gradient::Plan;
use crate::private::peel::{ColumnPick, ColumnPicker};
use crate::private::relative::numbers::{Ruler, ValueRows, row_numbers};
use crate::private::relative::pass::{Kept, Public, relative_sums};
use crate::private::relative::settled::{Measure, Settled, settled_sums};
use crate::private::relative::shifted::ShiftedRows;
use crate::private::relative::support::ColumnRows;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{with_room, zeros};

/// What an episode asks of its rows, fixed before they are read. Public.
pub struct Question<'a> {
    /// What rewards are compared with, and the clip of candidates.
    pub public: Public<'a>,
    /// What picks.
    pub picker: ColumnPicker,
    /// How many columns are picked; none if 0.
    pub picks: usize,
    /// Bounds of what is measured on the `m` columns that are public then.
    pub measure: Measure<'a>,
    /// What whole rows are measured with, if they are.
    pub ruler: Option<Ruler<'a>>,
    /// Standard deviations: of `m` gradients, of second moments on and above the diagonal row after row, of the size of
    /// residuals, and of three numbers of whole rows if they are measured.
    pub sigmas: &'a [u64],
}

/// What may be seen of an episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// New columns in the order picked.
    pub picks: Vec<ColumnPick>,
    /// Noisy sums, in the order of [`Question::sigmas`].
    pub vector: Vec<i64>,
}

/// Release what is asked. Every call is a release: twice on the same rows costs twice.
///
/// # Errors
/// If lengths do not fit, a parameter breaks its rule, a row is not canonical, or there is no memory or entropy. Then
/// nothing is released.
pub fn pursue<R: ColumnRows + ShiftedRows + ValueRows>(
    rows: &R,
    rewards: &[f64],
    present: Option<&[u8]>,
    question: &Question<'_>,
    noise: &mut impl NoiseSource,
    plan: Plan,
) -> Result<Answer> {
    let Question { public, picker, picks, measure, ruler, sigmas } = question;
    let (n, filled) = (ColumnRows::rows(rows), 1 + public.columns.len());
    let mut support = zeros(n.checked_mul(filled).ok_or(Error::Memory)?)?;
    let mut residuals = zeros(n)?;
    let kept = Kept { support: &mut support, width: filled, residuals: &mut residuals };
    let scores = relative_sums(rows, rewards, present, *public, kept, plan)?;
    let picks = picker.pick(&scores, public.columns, *picks, noise)?;
    let mut columns = with_room(picks.len())?;
    columns.extend(picks.iter().map(|pick| pick.column));
    let mut units = with_room(columns.len())?;
    units.extend(public.units.iter().flat_map(|units| columns.iter().map(|column| units[*column])));
    let settled = Settled {
        support: &support,
        filled,
        columns: &columns,
        units: public.units.map(|_| &units[..]),
        residuals: &residuals,
        present,
    };
    let sums = settled_sums(rows, settled, *measure, plan)?;
    let m = filled + columns.len();
    let mut vector = with_room(sigmas.len().max(m * (m + 3) / 2 + 4))?;
    vector.extend_from_slice(&sums.gradient);
    (0..m).for_each(|i| vector.extend_from_slice(&sums.moments[i * m + i..(i + 1) * m]));
    vector.push(sums.size);
    if let Some(ruler) = ruler {
        vector.extend(row_numbers(rows, *ruler, present, plan)?);
    }
    release_vector(&mut vector, sigmas, noise)?;
    Ok(Answer { picks, vector })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Csr, Dense};
    use crate::noise::entropy::predictable::SeededNoise;
    use crate::private::gradient::Loss;

    const WHITEN: [f64; 16] =
        [1.0, 0.1, 0.0, 0.0, 0.1, 0.9, 0.0, 0.2, 0.0, 0.0, 1.1, 0.0, 0.0, 0.2, 0.0, 1.0];
    const UNITS: [f64; 6] = [1.0, 2.0, 0.5, 1.0, 3.0, 1.0];

    fn values(n: usize) -> Vec<f32> {
        (0..6 * n).map(|i| if i % 5 == 0 { 0.0 } else { (i * 37 % 101) as f32 * 0.04 - 2.0 }).collect()
    }

    fn question<'a>(sigmas: &'a [u64], units: Option<&'a [f64]>, whole: bool, signed: bool) -> Question<'a> {
        Question {
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
            picker: ColumnPicker::new(40_000, signed).expect("valid"),
            picks: 2,
            measure: Measure { whiten: &WHITEN, clip: 0.9, radius: 4095, scale: 700.0, cap: 2.5 },
            ruler: whole.then_some(Ruler { size: 1.1, octaves: 8.0, units }),
            sigmas,
        }
    }

    /// The steps one by one, on the same words.
    fn in_steps(
        rows: &Dense<'_, f32>,
        rewards: &[f64],
        asked: &Question<'_>,
        noise: &mut SeededNoise,
    ) -> Answer {
        let (n, plan) = (rewards.len(), Plan::default());
        let (mut support, mut residuals) = (vec![0.0; 2 * n], vec![0.0; n]);
        let kept = Kept { support: &mut support, width: 2, residuals: &mut residuals };
        let scores = relative_sums(rows, rewards, None, asked.public, kept, plan).expect("valid");
        let picks = asked.picker.pick(&scores, &[3], 2, noise).expect("valid");
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
        if let Some(ruler) = asked.ruler {
            vector.extend(row_numbers(rows, ruler, None, plan).expect("valid"));
        }
        release_vector(&mut vector, asked.sigmas, noise).expect("valid");
        Answer { picks, vector }
    }

    #[test]
    fn one_call_is_its_steps_on_the_same_words() {
        let n = 50;
        let values = values(n);
        let rows = Dense::new(&values, n, 6).expect("valid");
        let rewards: Vec<f64> = (0..n).map(|i| (i as f64 * 0.37).sin() * 2.0).collect();
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..40 {
            for units in [None, Some(&UNITS[..])] {
                for (whole, signed) in [(false, true), (true, false)] {
                    let sigmas: Vec<u64> = (0..15 + 3 * u64::from(whole)).map(|i| 1 + 1000 * i).collect();
                    let asked = question(&sigmas, units, whole, signed);
                    let (one, two) = (&mut SeededNoise::new(seed, 0), &mut SeededNoise::new(seed, 0));
                    let found = pursue(&rows, &rewards, None, &asked, one, Plan::default()).expect("valid");
                    assert_eq!(found, in_steps(&rows, &rewards, &asked, two));
                    assert_eq!(one.words_drawn(), two.words_drawn());
                    seen.insert(found.picks[0].column);
                }
            }
        }
        // Noise decides, never for a column that is public.
        assert!(seen.len() > 1 && !seen.contains(&3));
    }

    #[test]
    fn sparse_rows_and_threads_change_nothing_and_rows_that_are_absent_are_not_read() {
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
        let sigmas = [1u64; 18];
        let asked = question(&sigmas, None, true, true);
        let release = |threads| {
            let plan = Plan { threads: Some(threads), block_rows: Some(9), ..Plan::default() };
            let noise = || SeededNoise::new(3, 0);
            let one = pursue(&dense, &rewards, Some(&present), &asked, &mut noise(), plan).expect("valid");
            let two = pursue(&sparse, &rewards, Some(&present), &asked, &mut noise(), plan).expect("valid");
            assert_eq!(one, two);
            one
        };
        assert_eq!(release(1), release(3));
    }

    #[test]
    fn what_does_not_fit_releases_nothing() {
        let values = values(10);
        let rows = Dense::new(&values, 10, 6).expect("valid");
        let rewards = [0.5; 10];
        let fails = |asked: &Question<'_>| {
            let noise = &mut SeededNoise::new(1, 0);
            pursue(&rows, &rewards, None, asked, noise, Plan::default()).is_err()
        };
        let sigmas = [5u64; 15];
        assert!(!fails(&question(&sigmas, None, false, true)));
        assert!(fails(&question(&sigmas[..14], None, false, true)));
        assert!(fails(&question(&sigmas, None, true, true)));
        assert!(fails(&question(&[0; 15], None, false, true)));
        assert!(fails(&Question { picks: 6, ..question(&sigmas, None, false, true) }));
        assert!(fails(&question(&sigmas, Some(&UNITS[..5]), false, true)));
    }
}
