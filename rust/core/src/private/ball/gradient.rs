//! Sums of rows times their residuals, cut to a ball, for each group of rows.

use std::ops::Range;

use super::{BallMap, BallRows, MOST_ROWS};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::zeros;
use crate::runtime::parallel::{Plan, add_up, in_blocks};
use crate::runtime::simd::Vectorised;

/// Each row's residual and the group it belongs to (its arm). Both lengths are those of the rows.
#[derive(Debug, Clone, Copy)]
pub struct Groups<'a> {
    /// Multiplies the row. Private.
    pub residuals: &'a [f64],
    /// From 0 to `count - 1`. Public.
    pub group_of: &'a [i64],
    /// Number of groups.
    pub count: usize,
    /// A row with flag 0 is a row of zeros, and is not read.
    pub present: Option<&'a [u8]>,
}

/// Sums over each group's rows of the integers of `x * residual`: `count` times `map.width()` sums.
///
/// # Errors
/// If lengths do not fit, a group is out of range or a sparse row is not canonical.
pub fn ball_gradient<R: BallRows>(
    rows: &R,
    groups: Groups<'_>,
    map: &BallMap,
    plan: Plan,
) -> Result<Vec<i64>> {
    let n = rows.rows();
    if groups.residuals.len() != n || groups.group_of.len() != n {
        return Err(Error::invalid("residuals and arms must have one value for each row of X"));
    }
    if groups.present.is_some_and(|flags| flags.len() != n) {
        return Err(Error::invalid("present must have one flag for each row"));
    }
    if map.dimension() != rows.columns() || n >= MOST_ROWS {
        return Err(Error::invalid("X must have the columns of the map and fewer than 2**31 rows"));
    }
    if !groups.group_of.iter().all(|group| (0..groups.count as i64).contains(group)) {
        return Err(Error::invalid("arms must be from 0 to the number of arms less 1"));
    }
    let size = groups.count.checked_mul(map.width()).ok_or(Error::Memory)?;
    let start =
        || Ok(Sums { totals: zeros(size)?, values: zeros(map.width())?, integers: zeros(map.width())? });
    let parts = in_blocks(n, map.width(), plan, start, |range, sums| {
        plan.level.run(AddBlock { rows, range, groups, map, sums })
    })?;
    add_up(parts.into_iter().map(|sums| Ok(sums.totals)))
}

struct Sums {
    totals: Vec<i64>,
    values: Vec<f64>,
    integers: Vec<i32>,
}

struct AddBlock<'a, 'b, R> {
    rows: &'a R,
    range: Range<usize>,
    groups: Groups<'a>,
    map: &'a BallMap,
    sums: &'b mut Sums,
}

impl<R: BallRows> Vectorised for AddBlock<'_, '_, R> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let AddBlock { rows, range, groups, map, sums } = self;
        let width = map.width();
        for i in range {
            if groups.present.is_some_and(|flags| flags[i] == 0) {
                continue;
            }
            rows.gather(i, map, &mut sums.values)?;
            if map.quantise(&mut sums.values, groups.residuals[i], &mut sums.integers) == 0 {
                continue;
            }
            let totals = &mut sums.totals[groups.group_of[i] as usize * width..][..width];
            for (total, q) in totals.iter_mut().zip(&sums.integers) {
                *total += i64::from(*q);
            }
        }
        Ok(())
    }
}
