//! Clipped gradients as exact integer sums: the only thing private rows are ever turned into.
//!
//! | paper | here |
//! |---|---|
//! | `x_i`, `y_i` | a row and its reward |
//! | `theta` | [`Theta`](crate::public::theta::Theta), the current public estimate |
//! | `clip_R(y)` | `reward_clip` |
//! | gradient of the loss | `sums[j] * step / n`, `step = clip / 2^15` |
//!
//! Row `i` becomes integers `q_ij` in `-2^15..=2^15`, bitwise a function of that row and theta (see
//! [`map`]); the sums are integer, so neither order, blocks, threads nor registers can change a bit, and
//! replacing one row moves no sum by more than `2^16`.

mod blocks;
mod csr;
mod dense;
mod map;

pub use crate::runtime::parallel::Plan;
pub use blocks::RowBlocks;
pub use map::{Loss, RowMap};

use crate::matrix::scalar::LIMIT;
use crate::runtime::error::{Error, Result};

/// Rewards and whether each is there. A row whose reward is missing is a zero row, and is not read.
#[derive(Debug, Clone, Copy)]
pub struct Rewards<'a> {
    values: &'a [f64],
    present: Option<&'a [u8]>,
}

impl<'a> Rewards<'a> {
    /// One reward a row; `present[i] == 0` marks row `i` as missing.
    pub fn new(values: &'a [f64], present: Option<&'a [u8]>) -> Result<Self> {
        if present.is_some_and(|flags| flags.len() != values.len()) {
            return Err(Error::invalid("present must have one flag for each row"));
        }
        Ok(Rewards { values, present })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The reward of row `i`, if it is there.
    #[inline(always)]
    pub(crate) fn get(&self, i: usize) -> Option<f64> {
        match self.present {
            Some(flags) if flags[i] == 0 => None,
            _ => Some(self.values[i]),
        }
    }
}

/// Sum of every row's integers, one sum a column.
///
/// # Errors
/// If a value or reward is not finite, a sparse row is not canonical, or lengths differ. Nothing is returned
/// then: not even which row it was.
pub fn clipped_sums<R: RowBlocks>(
    rows: &R,
    rewards: Rewards<'_>,
    map: &RowMap<'_>,
    plan: Plan,
) -> Result<Vec<i64>> {
    if rows.rows() != rewards.len() {
        return Err(Error::invalid("y must have one reward for each row of X"));
    }
    if map.theta().dimension() != rows.columns() {
        return Err(Error::invalid("theta must have one value for each column of X"));
    }
    if rows.rows() as u64 >= (1 << 62) / LIMIT as u64 {
        return Err(Error::invalid("X must have fewer than 2^47 rows"));
    }
    blocks::sum(rows, rewards, map, plan)
}
