//! Second moments of rows cut to a ball: exact integer sums of `q q'`.
//!
//! Rows are kept as pairs, so that one multiply-add instruction multiplies two of them. Products of a batch of
//! rows are added in 32 bits and the batch ends before that could overflow, which the largest integers of its
//! rows tell: the sums over batches are in 64 bits. A row with few non-zero integers is added entry by entry
//! instead. Which way a row takes can't be seen in the sums.

use std::ops::Range;

use super::tile::{TILE, TileMoments};
use super::{BallMap, BallRows, MOST_ROWS};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{make_room, with_room, zeros};
use crate::runtime::parallel::{Plan, in_blocks};
use crate::runtime::simd::{Level, TALL, Vectorised, WIDE};

/// Row pairs of a batch at most: they stay in the nearest cache.
const BATCH: usize = 64;

/// With at most so many columns, rows are added sixteen at a time: see [`tile`](super::tile).
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
    if width <= NARROW {
        return narrow_moments(rows, map, present, plan);
    }
    let parts = in_blocks(
        n,
        width.saturating_mul(width) / 8,
        plan,
        || Sums::new(width, plan.level),
        |range, sums| plan.level.run(AddBlock { rows, range, present, map, sums }),
    )?;
    let mut total = zeros(width.checked_mul(width).ok_or(Error::Memory)?)?;
    for part in parts {
        for a in 0..width {
            for b in a..width {
                total[a * width + b] += part.totals[a * part.stride + b];
            }
        }
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

/// One thread's sums. Of `totals`, only entries with `a <= b` are complete.
struct Sums {
    totals: Vec<i64>,
    /// Width rounded up to whole blocks; the columns beyond hold zeros.
    stride: usize,
    /// `[first row, second row]` of each pair at each column, pair after pair.
    pairs: Vec<[i16; 2]>,
    rows: usize,
    /// What the 32-bit sums of this batch can reach at most.
    reach: i64,
    values: Vec<f64>,
    integers: Vec<i16>,
    places: Vec<usize>,
    level: Level,
}

impl Sums {
    fn new(width: usize, level: Level) -> Result<Self> {
        let stride = width.next_multiple_of(WIDE);
        let size = stride.checked_mul(stride).ok_or(Error::Memory)?;
        let mut pairs = Vec::new();
        make_room(&mut pairs, BATCH * stride)?;
        pairs.resize(BATCH * stride, [0; 2]);
        Ok(Sums {
            totals: zeros(size)?,
            stride,
            pairs,
            rows: 0,
            reach: 0,
            values: zeros(width)?,
            integers: zeros(width)?,
            places: with_room(width)?,
            level,
        })
    }

    /// Add the row in `integers`, whose largest magnitude is `largest`.
    #[inline(always)]
    fn add(&mut self, largest: i16) {
        self.places.clear();
        if non_zero(&self.integers) * FEW <= self.integers.len() {
            let (integers, places) = (&self.integers, &mut self.places);
            places.extend((0..integers.len()).filter(|j| integers[*j] != 0));
            for (first, a) in places.iter().enumerate() {
                let row = &mut self.totals[a * self.stride..][..self.stride];
                for b in &places[first..] {
                    row[*b] += i64::from(integers[*a]) * i64::from(integers[*b]);
                }
            }
            return;
        }
        let square = i64::from(largest) * i64::from(largest);
        if self.reach + square > i64::from(i32::MAX) || self.rows == 2 * BATCH {
            self.flush();
        }
        self.reach += square;
        let (pair, side) = (self.rows / 2, self.rows % 2);
        let pairs = &mut self.pairs[pair * self.stride..][..self.stride];
        if side == 0 {
            // The first row of a pair clears what an earlier batch left beside it.
            pairs.iter_mut().zip(&self.integers).for_each(|(both, q)| *both = [*q, 0]);
        } else {
            pairs.iter_mut().zip(&self.integers).for_each(|(both, q)| *both = [both[0], *q]);
        }
        self.rows += 1;
    }

    /// Add the products of the batch's rows to the 64-bit sums.
    #[inline(always)]
    fn flush(&mut self) {
        let pairs = &self.pairs[..self.rows.div_ceil(2) * self.stride];
        for top in (0..self.stride).step_by(TALL) {
            for left in (top / WIDE * WIDE..self.stride).step_by(WIDE) {
                let block = self.level.pair_products(pairs, self.stride, top, left);
                for (r, row) in block.iter().enumerate() {
                    let totals = &mut self.totals[(top + r) * self.stride + left..][..WIDE];
                    for (total, sum) in totals.iter_mut().zip(row) {
                        *total += i64::from(*sum);
                    }
                }
            }
        }
        (self.rows, self.reach) = (0, 0);
    }
}

/// How many integers are not zero, counted in as narrow lanes as they lie in.
#[inline(always)]
fn non_zero(integers: &[i16]) -> usize {
    let count = |chunk: &[i16]| chunk.iter().fold(0u16, |count, q| count + u16::from(*q != 0));
    integers.chunks(1 << 12).map(|chunk| usize::from(count(chunk))).sum()
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
        for i in range {
            if present.is_some_and(|flags| flags[i] == 0) {
                continue;
            }
            rows.gather(i, map, &mut sums.values)?;
            let largest = map.quantise(&mut sums.values, 1.0, &mut sums.integers);
            if largest != 0 {
                sums.add(largest);
            }
        }
        sums.flush();
        Ok(())
    }
}
