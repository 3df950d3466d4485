//! A pilot: about how far apart two rewards are, and where most of them are, each by one pick.
//!
//! Both count what is near a candidate, so that replacing one row moves a count, and with it a score, by at most one
//! `step`. A public handicap makes candidates near what was told more likely beforehand.

use std::borrow::Cow;

use crate::noise::exact::checked_scale;
use crate::private::draws::Noise;
use crate::private::episode::{Last, Picking, Question, Signs, Sums, release};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{with_room, zeros};

/// What a pilot asks of rewards. Public.
#[derive(Debug, Clone, Copy)]
pub struct Pilot<'a> {
    /// Distances that may be picked, ascending and above 0.
    pub distances: &'a [f64],
    /// Distances within this factor of a candidate count for it.
    pub factor: f64,
    /// Taken off the score of each distance, in scales.
    pub unlikely: &'a [f64],
    /// Places are multiples of this many distances.
    pub width: f64,
    /// Places reach this many steps to either side.
    pub most: usize,
    /// What one reward adds to a score.
    pub step: i64,
    /// Scales of the two picks.
    pub scales: [u64; 2],
}

/// What a pilot found: a distance of the list, and a multiple of `width` distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Place of the distance in the list.
    pub distance: usize,
    /// Where most rewards are, in steps.
    pub place: i64,
}

/// Candidates' scores, and nothing else.
struct Scores(Vec<i64>);

impl Sums for Scores {
    type Error = Error;

    fn candidates(&mut self) -> Result<Cow<'_, [i64]>> {
        Ok(Cow::Borrowed(&self.0))
    }
}

impl Pilot<'_> {
    /// Release a distance and a place: two picks, one after the other.
    ///
    /// # Errors
    /// If lengths do not fit, a parameter breaks its rule, or there is no memory or entropy. Then nothing is released.
    pub fn release(&self, rewards: &[f64], present: &[u8], noise: &mut impl Noise) -> Result<Found> {
        if rewards.len() != present.len() || self.distances.len() != self.unlikely.len() {
            return Err(Error::invalid("rewards and distances must have one flag and one handicap each"));
        }
        if self.most < 2 || self.most > 1 << 24 || !(1..1 << 20).contains(&self.step) {
            return Err(Error::invalid("most must be from 2 to 2**24 and step from 1 to 2**20"));
        }
        for (name, scale) in ["distance", "place"].into_iter().zip(self.scales) {
            checked_scale(name, scale)?;
        }
        let scores = self.scored(&self.near(rewards, present)?, 0, |at| self.unlikely[at])?;
        let distance = picked(scores, self.scales[0], noise)?;
        let counts = self.windows(rewards, present, self.width * self.distances[distance])?;
        let middle = self.most as i64 - 2;
        let scores = self.scored(&counts, 1, |at| ((at as i64 - middle).abs() as f64).ln_1p())?;
        let place = picked(scores, self.scales[1], noise)? as i64 - middle;
        Ok(Found { distance, place })
    }

    /// Counts as scores, less the handicaps. Picks go by absolute values: all scores are raised by the same number.
    fn scored(&self, counts: &[i64], which: usize, unlikely: impl Fn(usize) -> f64) -> Result<Scores> {
        let scale = self.scales[which] as f64;
        let raised = (scale * (2.0 * self.most as f64).ln()).ceil() as i64;
        let mut scores = with_room(counts.len())?;
        let scored = counts
            .iter()
            .enumerate()
            .map(|(at, count)| raised + count * self.step - (scale * unlikely(at)).round_ties_even() as i64);
        scores.extend(scored);
        Ok(Scores(scores))
    }

    /// How many distances of two neighbours are within a factor of each candidate. A row is in one pair.
    fn near(&self, rewards: &[f64], present: &[u8]) -> Result<Vec<i64>> {
        let mut apart: Vec<f64> = with_room(rewards.len() / 2)?;
        for (rewards, present) in rewards.as_chunks::<2>().0.iter().zip(present.as_chunks::<2>().0) {
            if present.iter().all(|flag| *flag != 0) {
                apart.push((rewards[0] - rewards[1]).abs());
            }
        }
        apart.sort_unstable_by(f64::total_cmp);
        let below = |bound: f64| apart.partition_point(|distance| *distance < bound) as i64;
        let mut counts = with_room(self.distances.len())?;
        counts.extend(self.distances.iter().map(|at| below(at * self.factor) - below(at / self.factor)));
        Ok(counts)
    }

    /// How many rewards are within two steps of each multiple of a step; those beyond count at the ends.
    fn windows(&self, rewards: &[f64], present: &[u8], step: f64) -> Result<Vec<i64>> {
        let most = self.most as f64;
        let mut cells: Vec<i64> = zeros(2 * self.most)?;
        for (reward, _) in rewards.iter().zip(present).filter(|(_, flag)| **flag != 0) {
            let cell = (reward / step).clamp(-2.0 * most, 2.0 * most).floor().clamp(-most, most - 1.0);
            // A reward that is no number is none that came.
            if !cell.is_nan() {
                cells[(cell + most) as usize] += 1;
            }
        }
        let mut counts = with_room(cells.len())?;
        counts.extend(cells.windows(4).map(|four| four.iter().sum::<i64>()));
        Ok(counts)
    }
}

fn picked(mut scores: Scores, scale: u64, noise: &mut impl Noise) -> Result<usize> {
    let picking = Picking::Columns { count: 1, scale, signs: Signs::None, following: false, excluded: &[] };
    let answer = release(&Question { numbers: None, picking, vector: Last::None }, &mut scores, noise)?;
    Ok(answer.picks[0].column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::entropy::predictable::SeededNoise;
    use crate::private::draws::{Call, Recording};

    const DISTANCES: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];

    fn pilot() -> Pilot<'static> {
        Pilot {
            distances: &DISTANCES,
            factor: 1.5,
            unlikely: &[0.0, 0.1, 0.2, 0.3, 0.4],
            width: 0.5,
            most: 1 << 10,
            step: 1 << 10,
            scales: [1 << 10, 1 << 10],
        }
    }

    #[test]
    fn rewards_that_stand_out_of_the_noise_are_found() {
        let rewards: Vec<f64> = (0..400).map(|i| 30.0 + f64::from(i % 2)).collect();
        let found = pilot().release(&rewards, &[1; 400], &mut SeededNoise::new(1, 0)).expect("valid");
        assert_eq!(DISTANCES[found.distance], 1.0);
        assert!((found.place as f64 * 0.5 - 30.5).abs() <= 1.0);
    }

    #[test]
    fn one_reward_moves_a_score_by_one_step_and_what_did_not_come_by_none() {
        let rewards: Vec<f64> = (0..40).map(|i| f64::from(i * i % 7) - 3.0).collect();
        let seen = |rewards: &[f64], flag: u8| {
            let mut present = [1; 40];
            present[5] = flag;
            let mut noise = Recording::default();
            pilot().release(rewards, &present, &mut noise).expect("valid");
            noise.calls().to_vec()
        };
        let mut other = rewards.clone();
        for value in [1e300, -2.0, f64::NAN] {
            other[5] = value;
            for (left, right) in seen(&rewards, 1).iter().zip(seen(&other, 1)) {
                let (Call::Picks { scores: left, .. }, Call::Picks { scores: right, .. }) = (left, right)
                else {
                    panic!("picks alone")
                };
                assert!(left.iter().zip(right).all(|(left, right)| (left - right).abs() <= 1 << 10));
            }
            assert_eq!(seen(&rewards, 0), seen(&other, 0));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let fails = |pilot: Pilot<'_>, flags: &[u8]| {
            pilot.release(&[0.0; 4], flags, &mut SeededNoise::new(1, 0)).is_err()
        };
        assert!(!fails(pilot(), &[1; 4]));
        assert!(fails(pilot(), &[1; 3]));
        assert!(fails(Pilot { unlikely: &[0.0], ..pilot() }, &[1; 4]));
        assert!(fails(Pilot { most: 1, ..pilot() }, &[1; 4]));
        assert!(fails(Pilot { step: 0, ..pilot() }, &[1; 4]));
        assert!(fails(Pilot { scales: [0, 5], ..pilot() }, &[1; 4]));
    }
}
