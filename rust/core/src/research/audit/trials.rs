//! What is audited: the package's own mechanisms, and broken ones that an audit must catch.

use super::{Output, Released, Trial};
use crate::matrix::Dense;
use crate::noise::entropy::NoiseSource;
use crate::noise::entropy::predictable::RepeatedNoise;
use crate::noise::exact::bernoulli::BernoulliExp;
use crate::private::gradient::{Plan, Rewards};
use crate::private::niht::{Settings, niht};
use crate::private::peel::{PeelScratch, Peeler, Pick};
use crate::public::theta::Theta;
use crate::runtime::error::Result;

/// Peeling of two neighbouring integer vectors.
pub struct PeelTrial {
    /// The mechanism.
    pub peeler: Peeler,
    /// The two vectors.
    pub inputs: [Vec<i64>; 2],
    /// Coordinates picked.
    pub count: usize,
}

/// What a thread keeps between peelings.
#[derive(Default)]
pub struct PeelState {
    scratch: PeelScratch,
    picked: Vec<Pick>,
}

impl Trial for PeelTrial {
    type State = PeelState;

    fn run(
        &self,
        side: usize,
        state: &mut PeelState,
        noise: &mut impl NoiseSource,
        output: &mut Output,
    ) -> Result<()> {
        self.peeler.peel(&self.inputs[side], self.count, noise, &mut state.scratch, &mut state.picked)?;
        let seen = state.picked.iter().enumerate();
        output.extend(seen.map(|(rank, pick)| Released {
            slot: 0,
            rank,
            index: pick.index,
            value: pick.value as f64,
        }));
        Ok(())
    }
}

/// Rows and rewards of one side, dense.
pub struct Side {
    /// Values in C order.
    pub values: Vec<f64>,
    /// One reward a row.
    pub rewards: Vec<f64>,
}

/// Whether noise is drawn afresh in each iteration, or (the control) repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// Fresh: the mechanism itself.
    Never,
    /// Every iteration restarts the same stream: each is private, all together are not.
    EveryIteration,
}

/// A fit on two neighbouring data sets; every iterate is looked at.
pub struct NihtTrial<'a> {
    /// Public parameters.
    pub settings: &'a Settings,
    /// The two data sets.
    pub sides: [Side; 2],
    /// Columns.
    pub columns: usize,
    /// Noise between iterations.
    pub reuse: Reuse,
}

impl Trial for NihtTrial<'_> {
    type State = ();

    fn run(&self, side: usize, _: &mut (), noise: &mut impl NoiseSource, output: &mut Output) -> Result<()> {
        let side = &self.sides[side];
        let rows = Dense::new(&side.values, side.rewards.len(), self.columns)?;
        let rewards = Rewards::new(&side.rewards, None)?;
        let theta = Theta::from_pairs([], self.columns)?;
        let mut slot = 0;
        let see = |theta: &Theta| {
            release(slot, theta, output);
            slot += 1;
        };
        match self.reuse {
            Reuse::Never => {
                niht(&rows, rewards, theta, self.settings, noise, Plan::default(), see)?;
            }
            Reuse::EveryIteration => {
                let repeated = &mut RepeatedNoise::new(noise.next_u64());
                niht(&rows, rewards, theta, self.settings, repeated, Plan::default(), see)?;
            }
        }
        Ok(())
    }
}

pub(super) fn release(slot: usize, theta: &Theta, output: &mut Output) {
    let seen = theta.support().iter().zip(theta.values()).enumerate();
    output.extend(seen.map(|(rank, (index, value))| Released { slot, rank, index: *index, value: *value }));
}

/// Many picks between two scores by permute-and-flip, whose count of the second is released: a control. It is as private as
/// the exponential mechanism in one pick, but it is not bounded-range, and must not be charged as if it were.
pub struct PermuteAndFlipTrial {
    /// The two scores on each side.
    pub scores: [[i64; 2]; 2],
    /// A score counts `exp(score / scale)`.
    pub scale: u64,
    /// Picks of a run.
    pub picks: usize,
}

impl Trial for PermuteAndFlipTrial {
    type State = ();

    fn run(&self, side: usize, _: &mut (), noise: &mut impl NoiseSource, output: &mut Output) -> Result<()> {
        let [a, b] = self.scores[side];
        let accept_first = BernoulliExp::new((a.max(b) - a).unsigned_abs(), self.scale)?;
        let accept_second = BernoulliExp::new((a.max(b) - b).unsigned_abs(), self.scale)?;
        let mut seconds = 0;
        for _ in 0..self.picks {
            // A random order; each in turn is taken with its probability, and the best one always is.
            let second_comes_first = noise.next_u64() >> 63 == 1;
            let taken = if second_comes_first { &accept_second } else { &accept_first }.sample(noise);
            seconds += usize::from(taken == second_comes_first);
        }
        output.push(Released { slot: 0, rank: 0, index: 0, value: seconds as f64 });
        Ok(())
    }
}
