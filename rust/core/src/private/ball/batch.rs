//! Sums of `q q'` of rows with many columns: a batch of rows is multiplied at a time.
//!
//! Rows are kept as pairs, so that one instruction multiplies two of them, and in panels of sixteen columns, so that
//! what a block of products reads lies together and stays in the nearest cache. Only blocks on the diagonal and
//! above it are computed.
//!
//! **Why 32 bits are enough.** Products of a batch are added in 32 bits, batches in 64. By Cauchy-Schwarz no sum of
//! `q_a q_b` over rows of a batch passes the larger of the two columns' sums of squares. Those are kept while rows
//! come, and the batch ends before one of them passes `2^31 - 1`. A pair of rows adds at most `2 (2^15 - 1)^2`,
//! which is below that: every pair fits an empty batch, and the sums of squares fit 32 unsigned bits when one is
//! found to be too large.

use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{make_room, zeros};
use crate::runtime::simd::{Level, PANEL, RowPair};

/// Pairs of a batch at most: two panels of them stay in the nearest cache.
const MOST_PAIRS: usize = 128;

/// Rows of a batch at most.
pub(super) const MOST_BATCH: usize = 2 * MOST_PAIRS;

/// What the sums of squares of a batch may reach.
const REACH: u32 = i32::MAX as u32;

/// Numbers of a block of products: all columns of two panels.
const BLOCK: usize = PANEL * PANEL;

/// Sums of `q q'` over the rows pushed, after a flush.
#[derive(Debug)]
pub(super) struct Batch {
    /// Panels of sixteen columns; those beyond the width hold zeros.
    panels: usize,
    /// `MOST_PAIRS` for each panel, of which the first `count` are in use.
    pairs: Vec<RowPair>,
    count: usize,
    /// Sum of squares of each column over the batch.
    squares: Vec<u32>,
    /// A row that waits for its partner.
    waiting: Vec<i32>,
    has_waiting: bool,
    /// The partner of a last row.
    none: Vec<i32>,
    /// Blocks of panels `a <= b`, those with `a = 0` first.
    totals: Vec<i64>,
    level: Level,
}

impl Batch {
    /// Sums that are all zero, of rows of `width` integers.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub(super) fn new(width: usize, level: Level) -> Result<Self> {
        let panels = width.div_ceil(PANEL);
        let blocks = panels.checked_mul(panels + 1).ok_or(Error::Memory)? / 2;
        let mut pairs = Vec::new();
        make_room(&mut pairs, panels.checked_mul(MOST_PAIRS).ok_or(Error::Memory)?)?;
        pairs.resize(panels * MOST_PAIRS, RowPair::ZERO);
        Ok(Batch {
            panels,
            pairs,
            count: 0,
            squares: zeros(panels * PANEL)?,
            waiting: zeros(panels * PANEL)?,
            has_waiting: false,
            none: zeros(panels * PANEL)?,
            totals: zeros(blocks.checked_mul(BLOCK).ok_or(Error::Memory)?)?,
            level,
        })
    }

    /// Integers of a row, with those that fill up the last panel.
    pub(super) fn padded(&self) -> usize {
        self.panels * PANEL
    }

    /// Add a row of [`Self::padded`] integers, all within `2^15 - 1` of zero. What it holds afterwards means nothing,
    /// but entries beyond the width are zeros still.
    #[inline(always)]
    pub(super) fn push(&mut self, row: &mut Vec<i32>) {
        if self.has_waiting {
            self.has_waiting = false;
            self.push_pair(row);
        } else {
            std::mem::swap(&mut self.waiting, row);
            self.has_waiting = true;
        }
    }

    /// Add the waiting row and its partner.
    #[inline(always)]
    fn push_pair(&mut self, second: &[i32]) {
        if self.count == MOST_PAIRS {
            self.multiply();
        }
        if !self.write_pair(second) {
            // Rows before this pair are added; it begins the next batch.
            self.multiply();
            self.write_pair(second);
        }
        self.count += 1;
    }

    /// Add the pair's squares and write it behind the others, or return false if a sum of squares is too large.
    #[inline(always)]
    fn write_pair(&mut self, second: &[i32]) -> bool {
        for (square, (first, second)) in self.squares.iter_mut().zip(self.waiting.iter().zip(second)) {
            let (a, b) = (i32::from(*first as i16), i32::from(*second as i16));
            *square = square.wrapping_add((a * a + b * b) as u32);
        }
        if self.squares.iter().fold(0, |largest, square| largest.max(*square)) > REACH {
            return false;
        }
        let (firsts, seconds) = (self.waiting.as_chunks().0, second.as_chunks().0);
        for panel in 0..self.panels {
            self.pairs[panel * MOST_PAIRS + self.count] = RowPair::new(&firsts[panel], &seconds[panel]);
        }
        true
    }

    /// Add a row's products entry by entry: `places` are its non-zero integers, in ascending order.
    #[inline(always)]
    pub(super) fn add_entries(&mut self, row: &[i32], places: &[usize]) {
        for (first, a) in places.iter().enumerate() {
            let start = block_row(self.panels, a / PANEL) + a % PANEL * PANEL;
            for b in &places[first..] {
                let place = start + b / PANEL * BLOCK + b % PANEL;
                self.totals[place] += i64::from(row[*a]) * i64::from(row[*b]);
            }
        }
    }

    /// Add all rows that were pushed to the 64-bit sums.
    #[inline(always)]
    pub(super) fn flush(&mut self) {
        if self.has_waiting {
            self.has_waiting = false;
            let none = std::mem::take(&mut self.none);
            self.push_pair(&none);
            self.none = none;
        }
        self.multiply();
    }

    /// Add the products of the batch to the 64-bit sums.
    #[inline(always)]
    fn multiply(&mut self) {
        let panel = |p: usize| &self.pairs[p * MOST_PAIRS..][..self.count];
        let mut blocks = self.totals.as_chunks_mut::<BLOCK>().0.iter_mut();
        for a in 0..self.panels {
            for b in a..self.panels {
                let products = self.level.panel_products(panel(a), panel(b));
                let Some(totals) = blocks.next() else { return };
                for (total, product) in totals.iter_mut().zip(products.as_flattened()) {
                    *total += i64::from(*product);
                }
            }
        }
        self.count = 0;
        self.squares.fill(0);
    }

    /// Add the sums to a square of `width` columns, of which entries `a <= b` are complete then.
    pub(super) fn add_to(&self, square: &mut [i64], width: usize) {
        for (a, row) in square.chunks_exact_mut(width).enumerate() {
            let start = block_row(self.panels, a / PANEL) + a % PANEL * PANEL;
            // From the first column of the diagonal block on, a panel at a time.
            for (panel, out) in row.chunks_mut(PANEL).enumerate().skip(a / PANEL) {
                let sums = &self.totals[start + panel * BLOCK..][..PANEL];
                out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
            }
        }
    }
}

/// Where the blocks of panel `a` would start if there were one for panel 0: block `(a, b)` is `b` blocks on.
fn block_row(panels: usize, a: usize) -> usize {
    // Blocks of panels before `a` are `panels + ... + (panels - a + 1)`; the first of `a` itself is that of panel `a`.
    (a * panels - a * a.saturating_sub(1) / 2 - a) * BLOCK
}
