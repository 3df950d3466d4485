//! Second moments of rows cut to a ball: exact integer sums of `q q'`.
//!
//! Rows are collected and multiplied many at a time: see [`batch`](super::batch), and [`tile`](super::tile) for few
//! columns. A row with few non-zero integers is added entry by entry instead. Which way a row takes can't be seen
//! in the sums.

use std::ops::Range;

use super::batch::{Batch, MOST_BATCH};
use super::tile::{TILE, TileMoments, worth_tiles};
use super::{BallMap, BallRows, MOST_ROWS};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{with_room, zeros};
use crate::runtime::parallel::{Plan, in_blocks};
use crate::runtime::simd::{Level, PANEL, Vectorised};

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
        || Sums::new(width, plan.level),
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

/// One thread's sums.
struct Sums {
    batch: Batch,
    values: Vec<f64>,
    integers: Vec<i32>,
    places: Vec<usize>,
}

impl Sums {
    fn new(width: usize, level: Level) -> Result<Self> {
        let batch = Batch::new(width, level)?;
        let padded = batch.padded();
        Ok(Sums { batch, values: zeros(padded)?, integers: zeros(padded)?, places: with_room(width)? })
    }
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
        let end = range.end;
        for i in range {
            if i + AHEAD < end {
                rows.ask_for(i + AHEAD);
            }
            if present.is_some_and(|flags| flags[i] == 0) {
                continue;
            }
            rows.gather(i, map, &mut sums.values)?;
            let non_zero = map.quantise(&mut sums.values, 1.0, &mut sums.integers);
            if non_zero * FEW > map.width() {
                sums.batch.push(&mut sums.integers);
            } else if non_zero > 0 {
                let Sums { batch, integers, places, .. } = &mut *sums;
                places.clear();
                places.extend((0..map.width()).filter(|j| integers[*j] != 0));
                batch.add_entries(integers, places);
            }
        }
        sums.batch.flush();
        Ok(())
    }
}
