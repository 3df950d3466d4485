//! Second moments of rows cut to a ball: exact integer sums of `q q'`.
//!
//! Rows are collected and multiplied many at a time: see [`batch`](super::batch), and [`tile`](super::tile) for few
//! columns. A row with few non-zero integers is added entry by entry instead. Which way a row takes can't be seen
//! in the sums.

use std::ops::Range;

use super::batch::{Batch, GROUP, MOST_BATCH};
use super::tile::{TILE, TileMoments, worth_tiles};
use super::{BallMap, BallRows, LANES, MOST_ROWS};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{with_room, zeros};
use crate::runtime::parallel::{Plan, in_blocks};
use crate::runtime::simd::{Level, PANEL, Vectorised, rounded_to_zero};

/// Rows between one that is read and one that is asked for.
const AHEAD: usize = 4;

/// Few rows are cut into this many blocks at least, so that threads end at about the same time.
const BLOCKS: usize = 8;

/// Fewer rows than this are not worth a block of their own.
const FEWEST: usize = 32;

/// With at most so many columns, rows may be added sixteen at a time: see [`tile`](super::tile).
const NARROW: usize = 24;

/// A row whose non-zero integers are this many times fewer than the columns is added entry by entry.
const FEW: usize = 4;

/// In rows of at most so many columns zeros are multiplied like all others: to look for them would take longer.
const SHORT: usize = 4 * PANEL;

/// Columns of two panels.
const TWO_PANELS: usize = 2 * PANEL;

/// Sums of `q_a q_b` over all rows, `width` times `width`, symmetric.
///
/// # Errors
/// If lengths do not fit or a sparse row is not canonical.
pub fn second_moments<R: BallRows>(
    rows: &R,
    map: &BallMap,
    present: Option<&[u8]>,
    plan: Plan,
) -> Result<Vec<i64>> {
    let n = rows.rows();
    if present.is_some_and(|flags| flags.len() != n) {
        return Err(Error::invalid("present must have one flag for each row"));
    }
    if map.dimension() != rows.columns() || n >= MOST_ROWS {
        return Err(Error::invalid("X must have the columns of the map and fewer than 2**31 rows"));
    }
    let width = map.width();
    if width < PANEL || (width <= NARROW && worth_tiles(map.radius)) {
        return narrow_moments(rows, map, present, plan);
    }
    // A batch is added when its block ends: blocks that are shorter than a batch multiply fewer rows at a time.
    let block_rows = plan.block_rows.unwrap_or(n.div_ceil(BLOCKS).clamp(FEWEST, MOST_BATCH));
    let blocks = Plan { block_rows: Some(block_rows), ..plan };
    let parts = in_blocks(
        n,
        width.saturating_mul(width) / 8,
        blocks,
        || Sums::new(map, plan.level),
        |range, sums| plan.level.run(AddBlock { rows, range, present, map, sums }),
    )?;
    let mut total = zeros(width.checked_mul(width).ok_or(Error::Memory)?)?;
    for part in parts {
        part.batch.add_to(&mut total, width);
    }
    mirror(&mut total, width);
    Ok(total)
}

/// The same for few columns.
fn narrow_moments<R: BallRows>(
    rows: &R,
    map: &BallMap,
    present: Option<&[u8]>,
    plan: Plan,
) -> Result<Vec<i64>> {
    let width = map.width();
    let start = || {
        let (tile, values) = (zeros(width * TILE)?, zeros(width)?);
        Ok(NarrowSums { moments: TileMoments::new(width, map.radius, plan.level)?, tile, values })
    };
    let parts = in_blocks(rows.rows(), width * TILE / 2, plan, start, |range, sums| {
        plan.level.run(AddNarrow { rows, range, present, map, sums })
    })?;
    let mut total: Vec<i64> = zeros(width * width)?;
    for part in parts {
        total.iter_mut().zip(part.moments.totals()).for_each(|(sum, more)| *sum += more);
    }
    mirror(&mut total, width);
    Ok(total)
}

/// Write the entries above the diagonal below it, too.
pub(crate) fn mirror(square: &mut [i64], width: usize) {
    for a in 0..width {
        for b in 0..a {
            square[a * width + b] = square[b * width + a];
        }
    }
}

/// One thread's sums of few columns.
struct NarrowSums {
    moments: TileMoments,
    tile: Vec<f64>,
    values: Vec<f64>,
}

struct AddNarrow<'a, 'b, R> {
    rows: &'a R,
    range: Range<usize>,
    present: Option<&'a [u8]>,
    map: &'a BallMap,
    sums: &'b mut NarrowSums,
}

impl<R: BallRows> Vectorised for AddNarrow<'_, '_, R> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let AddNarrow { rows, range, present, map, sums } = self;
        if let (Some(one), Some(last)) = (map.one, sums.values.last_mut()) {
            *last = one;
        }
        for start in range.clone().step_by(TILE) {
            for r in 0..TILE {
                let i = start + r;
                let columns = sums.tile.as_chunks_mut::<TILE>().0;
                if i >= range.end || present.is_some_and(|flags| flags[i] == 0) {
                    columns.iter_mut().for_each(|column| column[r] = 0.0);
                    continue;
                }
                rows.gather(i, map, &mut sums.values)?;
                columns.iter_mut().zip(&sums.values).for_each(|(column, value)| column[r] = *value);
            }
            sums.moments.add(&sums.tile);
        }
        Ok(())
    }
}

/// One thread's sums, and a group of rows that are turned into integers together.
struct Sums {
    batch: Batch,
    values: Vec<f64>,
    integers: Vec<i32>,
    places: Vec<usize>,
}

impl Sums {
    fn new(map: &BallMap, level: Level) -> Result<Self> {
        let width = map.width();
        let batch = Batch::new(width, level)?;
        let padded = batch.padded();
        let size = padded.checked_mul(GROUP).ok_or(Error::Memory)?;
        let mut values: Vec<f64> = zeros(size)?;
        if let Some(one) = map.one {
            values.chunks_exact_mut(padded).for_each(|row| row[width - 1] = one);
        }
        Ok(Sums { batch, values, integers: zeros(size)?, places: with_room(width)? })
    }

    /// Add the first `count` rows of the group.
    ///
    /// A row's integers are those of [`BallMap::quantise`], by the same operations in the same order. Each step is
    /// taken for the whole group: a row alone would wait for its root and its quotient.
    #[inline(always)]
    fn add_group(&mut self, map: &BallMap, count: usize) {
        // Loops of a length that the compiler knows have no ends to look after: half the time of short rows.
        match self.batch.padded() {
            PANEL => self.add_padded(map, count, PANEL),
            TWO_PANELS => self.add_padded(map, count, TWO_PANELS),
            padded => self.add_padded(map, count, padded),
        }
    }

    #[inline(always)]
    fn add_padded(&mut self, map: &BallMap, count: usize, padded: usize) {
        let radius = map.radius as f64;
        let squares = square_sums(&self.values, padded, |value| *value);
        let mut factors = [0.0; GROUP];
        for r in 0..GROUP {
            // Of a row inside the ball this is 1 exactly: the root of the radius' square is the radius.
            let square = if squares[r] > radius * radius { squares[r] } else { radius * radius };
            factors[r] = radius / square.sqrt();
        }
        let rows = self.integers.chunks_exact_mut(padded).zip(self.values.chunks_exact(padded));
        for ((integers, values), factor) in rows.zip(factors) {
            for (integer, value) in integers.iter_mut().zip(values) {
                *integer = rounded_to_zero(value * factor);
            }
        }
        // Sums of squares up to 2^53 are exact in a float, and one beyond stays beyond.
        let norms = square_sums(&self.integers, padded, |q| f64::from(*q));
        let mut all = count == GROUP;
        let mut kept = [false; GROUP];
        for r in 0..GROUP {
            // NaN and infinity anywhere in a row arrive in its square, too.
            kept[r] = (r < count) & squares[r].is_finite() & (norms[r] <= radius * radius);
            all &= kept[r];
        }
        if !all {
            let rows = self.integers.chunks_exact_mut(padded).zip(kept);
            rows.filter(|(_, kept)| !kept).for_each(|(row, _)| row.fill(0));
        }
        if map.width() <= SHORT {
            self.batch.push_group(&self.integers, padded);
            return;
        }
        for row in self.integers.chunks_exact(padded) {
            let non_zero = row.iter().fold(0u32, |count, q| count + u32::from(*q != 0)) as usize;
            if non_zero * FEW > map.width() {
                self.batch.push(row);
            } else if non_zero > 0 {
                self.places.clear();
                self.places.extend((0..map.width()).filter(|j| row[*j] != 0));
                self.batch.add_entries(row, &self.places);
            }
        }
    }
}

/// The sum of squares of each row of a group: column `j` is added in lane `j % LANES`, and then lane after lane.
#[inline(always)]
fn square_sums<T>(rows: &[T], padded: usize, number: impl Fn(&T) -> f64) -> [f64; GROUP] {
    let mut lanes = [[0.0; LANES]; GROUP];
    // Plain loops of one thing each: others are not always compiled for wide registers.
    for (lanes, row) in lanes.iter_mut().zip(rows.chunks_exact(padded)) {
        let mut sums = [0.0; LANES];
        for chunk in row.as_chunks::<LANES>().0 {
            let mut values = [0.0; LANES];
            for l in 0..LANES {
                values[l] = number(&chunk[l]);
            }
            for l in 0..LANES {
                sums[l] += values[l] * values[l];
            }
        }
        *lanes = sums;
    }
    lanes.map(|lanes| lanes.iter().fold(0.0, |sum, lane| sum + lane))
}

struct AddBlock<'a, 'b, R> {
    rows: &'a R,
    range: Range<usize>,
    present: Option<&'a [u8]>,
    map: &'a BallMap,
    sums: &'b mut Sums,
}

impl<R: BallRows> Vectorised for AddBlock<'_, '_, R> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let AddBlock { rows, range, present, map, sums } = self;
        let (padded, end) = (sums.batch.padded(), range.end);
        let mut count = 0;
        for i in range {
            if i + AHEAD < end {
                rows.ask_for(i + AHEAD);
            }
            if present.is_some_and(|flags| flags[i] == 0) {
                continue;
            }
            rows.gather(i, map, &mut sums.values[count * padded..][..padded])?;
            count += 1;
            if count == GROUP {
                sums.add_group(map, count);
                count = 0;
            }
        }
        if count > 0 {
            sums.add_group(map, count);
        }
        sums.batch.flush();
        Ok(())
    }
}
