//! Blocks of rows handed to threads. Sums are integers: who adds what, and when, changes nothing.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Rewards, RowMap};
use crate::runtime::error::Result;
use crate::runtime::parallel::{on_threads, threads_for};
use crate::runtime::simd::Level;

/// Values a block should hold: 1 MB of f32, so that handing out a block costs nothing and no thread ends
/// long after the others.
const BLOCK_VALUES: usize = 1 << 18;

/// Below this many values one thread is faster: starting a second takes about as long (30 us).
const SERIAL_BELOW: usize = 1 << 18;

/// How the work is cut up. No choice here can change a bit of the result.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Threads to use; `None` takes the machine's, or one if the work is small.
    pub threads: Option<usize>,
    /// Rows handed out at a time; `None` chooses.
    pub block_rows: Option<usize>,
    /// Instruction set.
    pub level: Level,
}

impl Default for Plan {
    fn default() -> Self {
        Plan { threads: None, block_rows: None, level: Level::best() }
    }
}

/// A matrix that can add a range of its rows to integer sums.
pub trait RowBlocks: Sync {
    /// One thread's sums.
    type Sums;

    /// Number of rows.
    fn rows(&self) -> usize;
    /// Number of columns.
    fn columns(&self) -> usize;
    /// Values stored in all rows.
    fn stored(&self) -> usize;
    /// Sums that are all zero.
    ///
    /// # Errors
    /// If there is no memory for them.
    fn zero_sums(&self) -> Result<Self::Sums>;
    /// Add the rows in `range`.
    fn add(
        &self,
        range: Range<usize>,
        rewards: Rewards<'_>,
        map: &RowMap<'_>,
        level: Level,
        sums: &mut Self::Sums,
    ) -> Result<()>;
    /// The finished sums.
    ///
    /// # Errors
    /// If there is no memory for them.
    fn totals(&self, sums: Self::Sums) -> Result<Vec<i64>>;
}

pub(super) fn sum<R: RowBlocks>(
    rows: &R,
    rewards: Rewards<'_>,
    map: &RowMap<'_>,
    plan: Plan,
) -> Result<Vec<i64>> {
    let row_values = (rows.stored() / rows.rows().max(1)).max(1);
    let block_rows = plan.block_rows.unwrap_or((BLOCK_VALUES / row_values).max(1)).max(1);
    let blocks = rows.rows().div_ceil(block_rows);
    let next = AtomicUsize::new(0);
    let work = |_| -> Result<Vec<i64>> {
        let mut sums = rows.zero_sums()?;
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= blocks {
                return rows.totals(sums);
            }
            let range = block * block_rows..((block + 1) * block_rows).min(rows.rows());
            let added = rows.add(range, rewards, map, plan.level, &mut sums);
            if added.is_err() {
                // Nothing will be returned: let the other threads stop at their next block.
                next.store(blocks, Ordering::Relaxed);
                added?;
            }
        }
    };
    let threads = threads_for(plan.threads, rows.stored(), SERIAL_BELOW).min(blocks.max(1));
    let mut parts = on_threads(threads, work)?.into_iter();
    let mut total = parts.next().unwrap_or_default();
    for part in parts {
        for (a, b) in total.iter_mut().zip(part) {
            *a += b;
        }
    }
    Ok(total)
}
