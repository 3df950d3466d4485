//! Rows cut to an l2 ball and turned into integers: what second moments and grouped gradients are sums of.
//!
//! A row's vector is `v_j = (x_j - center_j) * scale_j * multiplier` over public columns, with a constant
//! `one * multiplier` behind them if one is given. It is cut to length `radius` and rounded toward zero, and then *the integers
//! themselves* are checked: `sum q_j^2 <= radius^2`, or the row becomes zeros. So whatever floats did on the
//! way, replacing one row moves the sum of `q` by at most `2 radius` in l2 norm, and the sum of `q q'` by at
//! most `sqrt(2) radius^2` in Frobenius norm.
//!
//! The integers are bitwise a function of the row and of public numbers: squares are added in fixed lanes, in
//! the order of the columns given, so that storage, position, threads and instruction set change nothing.

mod arms;
mod batch;
mod gradient;
mod moments;
mod rows;
pub mod tile;

pub use arms::{ArmRows, SQUARE_UNIT, arm_sums};
pub use gradient::{Groups, ball_gradient};
pub(crate) use moments::mirror;
pub use moments::second_moments;
pub use rows::BallRows;

use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{copied, with_room, zeros};
use crate::runtime::simd::rounded_to_zero;

/// Largest integer radius: integers of one row fit an `i16`.
pub const MOST_RADIUS: i64 = (1 << 15) - 1;

/// A size is at most this many steps.
const SIZE_LIMIT: i32 = 1 << 15;

/// Most rows: `2^31` rows of `radius^2 < 2^30` stay below `2^62`.
pub const MOST_ROWS: usize = 1 << 31;

/// Squares are added over this many lanes: lane `j % LANES` holds column `j`.
const LANES: usize = 8;

/// Everything public that a row's integers depend on.
#[derive(Debug)]
pub struct BallMap {
    /// Columns in the order of the result.
    columns: Vec<usize>,
    /// The same in ascending order, with their place in the result.
    sorted: Vec<(usize, usize)>,
    /// One bit a column of X: sparse rows store many columns that are not asked for.
    members: Vec<u64>,
    /// The first column, if the others follow it one by one: they are read without looking each up.
    first: Option<usize>,
    scales: Vec<f64>,
    /// What is taken off each column, if anything is.
    centers: Option<Vec<f64>>,
    one: Option<f64>,
    radius: i64,
    dimension: usize,
}

impl BallMap {
    /// Use `columns` of rows with `dimension` columns, each multiplied by its scale, and a constant `one` behind
    /// them.
    ///
    /// # Errors
    /// If a column is repeated or out of range, a scale is not finite and above zero, `one` is not finite, or
    /// `radius` is not from 1 to [`MOST_RADIUS`].
    pub fn new(
        columns: &[usize],
        scales: &[f64],
        one: Option<f64>,
        radius: i64,
        dimension: usize,
    ) -> Result<Self> {
        let mut sorted = with_room(columns.len())?;
        sorted.extend(columns.iter().enumerate().map(|(place, column)| (*column, place)));
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0].0 == pair[1].0)
            || sorted.last().is_some_and(|last| last.0 >= dimension)
        {
            return Err(Error::invalid("columns must be different from each other and columns of X"));
        }
        if columns.is_empty() && one.is_none() {
            return Err(Error::invalid("columns must not be empty unless there is a constant"));
        }
        if scales.len() != columns.len() || scales.iter().any(|scale| !(scale.is_finite() && *scale > 0.0)) {
            return Err(Error::invalid("scale must be finite and above 0, one number for each column"));
        }
        if one.is_some_and(|one| !one.is_finite()) {
            return Err(Error::invalid("one must be finite"));
        }
        if !(1..=MOST_RADIUS).contains(&radius) {
            return Err(Error::invalid(format!(
                "radius must be an integer from 1 to {MOST_RADIUS}, got {radius}"
            )));
        }
        let mut members: Vec<u64> = zeros(dimension.div_ceil(64))?;
        for column in columns {
            members[column / 64] |= 1 << (column % 64);
        }
        let follows = |pair: &[usize]| pair[0] + 1 == pair[1];
        let first = columns.first().copied().filter(|_| columns.windows(2).all(follows));
        let (columns, scales) = (copied(columns)?, copied(scales)?);
        Ok(BallMap { columns, sorted, members, first, scales, centers: None, one, radius, dimension })
    }

    /// The same with columns moved: a public number is taken off each of them before it is scaled.
    ///
    /// # Errors
    /// If there is not one finite number for each column.
    pub fn with_centers(mut self, centers: &[f64]) -> Result<Self> {
        if centers.len() != self.columns.len() || centers.iter().any(|center| !center.is_finite()) {
            return Err(Error::invalid("center must be finite, one number for each column"));
        }
        self.centers = Some(copied(centers)?);
        Ok(self)
    }

    /// Integers of a row: one for each column, and one for the constant.
    pub fn width(&self) -> usize {
        self.columns.len() + usize::from(self.one.is_some())
    }

    /// Columns that rows must have.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Where a column of X stands in the result.
    #[inline(always)]
    fn place(&self, column: usize) -> Option<usize> {
        if self.members[column / 64] >> (column % 64) & 1 == 0 {
            return None;
        }
        let found = self.sorted.binary_search_by_key(&column, |(column, _)| *column);
        found.ok().map(|index| self.sorted[index].1)
    }

    /// Turn the scaled values of a row, times `multiplier`, into integers of norm at most `radius`. Returns how
    /// many of them are not zero.
    ///
    /// Both slices have one entry for each column and the constant; entries beyond them are zeros and stay so.
    #[inline(always)]
    pub(crate) fn quantise(&self, values: &mut [f64], multiplier: f64, integers: &mut [i32]) -> usize {
        if let Some(one) = self.one {
            values[self.width() - 1] = one;
        }
        let mut lanes = [0.0; LANES];
        let mut chunks = values.chunks_exact_mut(LANES);
        for chunk in &mut chunks {
            for lane in 0..LANES {
                chunk[lane] *= multiplier;
                lanes[lane] += chunk[lane] * chunk[lane];
            }
        }
        for (lane, value) in chunks.into_remainder().iter_mut().enumerate() {
            *value *= multiplier;
            lanes[lane] += *value * *value;
        }
        let square = lanes.iter().fold(0.0, |sum, lane| sum + lane);
        let radius = self.radius as f64;
        // NaN and infinity anywhere in the row arrive here, too.
        if !square.is_finite() {
            integers.fill(0);
            return 0;
        }
        let factor = if square > radius * radius { radius / square.sqrt() } else { 1.0 };
        // Loops of one thing each: the compiler does not find whole registers of numbers of different sizes.
        for (integer, value) in integers.iter_mut().zip(values.iter()) {
            *integer = rounded_to_zero(value * factor);
        }
        // Sums of squares up to 2^53 are exact in a float, and one beyond stays beyond.
        let mut norms = [0.0; LANES];
        let (whole, rest) = integers.as_chunks::<LANES>();
        for chunk in whole {
            for (norm, q) in norms.iter_mut().zip(chunk.map(f64::from)) {
                *norm += q * q;
            }
        }
        for (norm, q) in norms.iter_mut().zip(rest) {
            *norm += f64::from(*q) * f64::from(*q);
        }
        if norms.iter().sum::<f64>() > radius * radius {
            integers.fill(0);
            return 0;
        }
        integers.iter().fold(0u32, |count, q| count + u32::from(*q != 0)) as usize
    }
}

/// `min(|value|, cap)` in steps of `cap / 2^15`, rounded toward zero. NaN counts as 0.
#[inline(always)]
pub(crate) fn clipped_size_of(value: f64, cap: f64) -> i64 {
    let steps = value.abs() / cap * f64::from(SIZE_LIMIT);
    let most = if steps > f64::from(SIZE_LIMIT) { f64::from(SIZE_LIMIT) } else { steps };
    i64::from(rounded_to_zero(if most.is_nan() { 0.0 } else { most }))
}

#[cfg(test)]
mod tests;
