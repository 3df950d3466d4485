//! Simulated environments: contexts, rewards and regret. Simulation only; nothing here may touch private data.
//!
//! A round is a pure function of (seed, round number): every round owns streams of its own, so how
//! rounds are cut into calls changes no bit, and two policies that run on one seed meet the same people.

pub mod clicks;
pub mod conditional;
pub mod gaussian;
pub mod linear;
pub mod marginal;
pub mod reward;
pub mod row_completion;
pub mod words;

use crate::research::simulate::words::{SimulationRng, Starts, TOGETHER};
use crate::runtime::error::Result;
use crate::runtime::memory::with_room;

/// What a policy met in some rounds, one entry a round.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// The arms played.
    pub arms: Vec<i64>,
    /// The rewards of those arms.
    pub rewards: Vec<f64>,
    /// The best arm's mean reward less the played arm's.
    pub regret: Vec<f64>,
}

impl Outcome {
    fn with_room(rounds: usize) -> Result<Self> {
        Ok(Outcome { arms: with_room(rounds)?, rewards: with_room(rounds)?, regret: with_room(rounds)? })
    }

    fn push(&mut self, arm: usize, reward: f64, regret: f64) {
        self.arms.push(arm as i64);
        self.rewards.push(reward);
        self.regret.push(regret);
    }
}

/// What rounds hold before anyone chooses.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offer {
    /// Mean reward of every arm, round after round.
    pub means: Vec<f64>,
    /// Each round's share of reward randomness, as [`reward::Reward::observe`] takes it.
    pub luck: Vec<f64>,
}

impl Offer {
    fn with_room(rounds: usize, arms: usize) -> Result<Self> {
        Ok(Offer { means: with_room(rounds.saturating_mul(arms))?, luck: with_room(rounds)? })
    }
}

/// The streams of rounds that are drawn one after the other: `lanes` a round, and no two overlap.
struct Streams {
    lanes: usize,
    round: SimulationRng,
    arm: SimulationRng,
    starts: Starts,
    /// The round that `starts` begins with, if any.
    first: Option<u64>,
}

impl Streams {
    fn new(seed: u64, lanes: usize) -> Self {
        let round = SimulationRng::new(seed, 0);
        Streams { lanes, starts: round.starts(0, 0), round, arm: SimulationRng::new(seed, 0), first: None }
    }

    /// Stream 0 of a round, from its start.
    fn of_round(&mut self, round: u64) -> &mut SimulationRng {
        let first = self.number(round, 0);
        let mut which = self.first.map_or(TOGETHER as u64, |begun| round.wrapping_sub(begun));
        if which >= TOGETHER as u64 {
            self.starts = self.round.starts(first, self.lanes as u64);
            (self.first, which) = (Some(round), 0);
        }
        self.round.begin_with(first, &self.starts, which as usize);
        &mut self.round
    }

    /// The stream of an arm's whole row, from its start.
    fn of_arm(&mut self, round: u64, arm: usize) -> &mut SimulationRng {
        self.arm.begin(self.number(round, 1 + arm));
        &mut self.arm
    }

    fn number(&self, round: u64, lane: usize) -> u64 {
        round.wrapping_mul(self.lanes as u64).wrapping_add(lane as u64)
    }
}

/// One uniform word for each of `count` rounds, from streams that no other draw of these rounds uses.
///
/// # Errors
/// If there is no memory for them.
pub fn round_words(seed: u64, first: u64, count: usize) -> Result<Vec<u64>> {
    let mut words = with_room(count)?;
    // The complement is a different key: its streams share nothing with those of `seed`.
    let mut streams = Streams::new(!seed, 1);
    words.extend((0..count as u64).map(|i| streams.of_round(first.wrapping_add(i)).next_u64()));
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_belong_to_rounds() {
        let words = |seed, first, count| round_words(seed, first, count).expect("memory");
        let whole = words(3, 10, 5);
        assert_eq!(whole[2..], words(3, 12, 3));
        assert_ne!(whole, words(4, 10, 5));
        assert!(whole.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
