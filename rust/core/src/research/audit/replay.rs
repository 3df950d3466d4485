//! Fits exactly as a caller handed them to the kernel, run again and again with fresh noise.
//!
//! What surrounds a kernel call (playing rounds, planning, calibrating) happens once; what is random happens in each
//! run. So a policy's own rows, rewards, flags, start and scales are audited at the speed of the kernel.

use super::trials::release;
use super::{Output, Trial};
use crate::matrix::Dense;
use crate::noise::entropy::NoiseSource;
use crate::private::gradient::{Plan, Rewards};
use crate::private::niht::{Settings, niht};
use crate::public::theta::Theta;
use crate::runtime::error::Result;

/// Values of dense rows in C order, in the type they were stored in.
#[derive(Debug, Clone, Copy)]
pub enum RowValues<'a> {
    /// Single precision.
    Single(&'a [f32]),
    /// Double precision.
    Double(&'a [f64]),
}

/// One call of the private fit, argument for argument.
#[derive(Clone, Copy)]
pub struct FitCall<'a> {
    /// The rows.
    pub rows: RowValues<'a>,
    /// One reward a row.
    pub rewards: &'a [f64],
    /// Which rewards count; all without.
    pub present: Option<&'a [u8]>,
    /// The public start.
    pub start: &'a [f64],
    /// Public parameters, noise included.
    pub settings: &'a Settings,
}

impl FitCall<'_> {
    fn run(&self, noise: &mut impl NoiseSource) -> Result<Theta> {
        let rewards = Rewards::new(self.rewards, self.present)?;
        let start = Theta::from_dense(self.start)?;
        let (rows, columns) = (self.rewards.len(), self.start.len());
        let plan = Plan::default();
        match self.rows {
            RowValues::Single(values) => {
                niht(&Dense::new(values, rows, columns)?, rewards, start, self.settings, noise, plan, |_| ())
            }
            RowValues::Double(values) => {
                niht(&Dense::new(values, rows, columns)?, rewards, start, self.settings, noise, plan, |_| ())
            }
        }
    }
}

/// All fits that saw a person, on two neighbouring inputs; the estimate of each is looked at.
pub struct ReplayTrial<'a> {
    /// The calls of each side, in order.
    pub sides: [Vec<FitCall<'a>>; 2],
}

impl Trial for ReplayTrial<'_> {
    type State = ();

    fn run(&self, side: usize, _: &mut (), noise: &mut impl NoiseSource, output: &mut Output) -> Result<()> {
        for (slot, call) in self.sides[side].iter().enumerate() {
            release(slot, &call.run(noise)?, output);
        }
        Ok(())
    }
}
