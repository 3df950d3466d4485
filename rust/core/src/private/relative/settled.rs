//! What an episode releases of its public columns once they are settled, in one pass over them: gradients in
//! coordinates of their own, second moments, and the size of residuals. All are integer sums.

use std::ops::Range;

use super::checked_flags;
use super::shifted::checked_clip;
use super::support::{Chosen, ColumnRows};
use super::whitened::{WhitenedTiles, factor, put, work_on_row};
use crate::private::ball::tile::{TILE, TileMoments};
use crate::private::ball::{MOST_RADIUS, MOST_ROWS, clipped_size_of, mirror};
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::zeros;
use crate::runtime::parallel::{Plan, in_blocks, threads_for};
use crate::runtime::simd::Vectorised;

/// Rows between the one whose new columns are read and the one whose are asked for.
const AHEAD: usize = 2 * TILE;

/// Below this much work, in values of a plain sum, one thread is faster: 5 000 rows of seven columns take about 80 us, and
/// a second thread that is started after 30 us would save little of it.
const SERIAL_BELOW: usize = 1 << 20;

/// Bounds and coordinates of the sums. Public.
#[derive(Debug, Clone, Copy)]
pub struct Measure<'a> {
    /// Coordinates of gradients: `m` times `m`, row after row.
    pub whiten: &'a [f64],
    /// Bound on one coordinate of a row's gradient.
    pub clip: f64,
    /// Integer radius of the ball that second moments are of.
    pub radius: i64,
    /// What values are multiplied with before they are cut to it.
    pub scale: f64,
    /// Bound on a residual's size.
    pub cap: f64,
}

/// Columns of all rows that were read before, and those that are new.
#[derive(Debug, Clone, Copy)]
pub struct Settled<'a> {
    /// `filled` values a row. Private.
    pub support: &'a [f64],
    /// See `support`.
    pub filled: usize,
    /// Columns that are still to be read.
    pub columns: &'a [usize],
    /// What each of those is divided by.
    pub units: Option<&'a [f64]>,
    /// What is left of each reward. Private.
    pub residuals: &'a [f64],
    /// A row with flag 0 is a row of zeros, and is not read.
    pub present: Option<&'a [u8]>,
}

/// Integer sums over all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledSums {
    /// Of `(whiten v) * residual`, each coordinate clipped, in steps of `clip / 2^15`: replacing one row moves none by
    /// more than `2^16`.
    pub gradient: Vec<i64>,
    /// Those of [`second_moments`](crate::private::ball::second_moments), `m` times `m`.
    pub moments: Vec<i64>,
    /// Of `min(|residual|, cap)`, in steps of `cap / 2^15`, each rounded toward zero: replacing one row moves it by at
    /// most `2^15`.
    pub size: i64,
}

/// Sums of all three kinds over the `m` values of each row: those of the support, and behind them the new columns.
///
/// # Errors
/// If lengths do not fit, a bound is not finite and above 0, or a sparse row is not canonical.
pub fn settled_sums<R: ColumnRows>(
    rows: &R,
    settled: Settled<'_>,
    measure: Measure<'_>,
    plan: Plan,
) -> Result<SettledSums> {
    let (n, m) = (rows.rows(), settled.filled + settled.columns.len());
    let chosen = Chosen::new(settled.columns, rows.columns())?;
    checked_flags(settled.present, n)?;
    checked_clip(measure.clip)?;
    for (name, value) in [("scale", measure.scale), ("cap", measure.cap)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(Error::invalid(format!("{name} must be a finite number above 0, got {value}")));
        }
    }
    if !(1..=MOST_RADIUS).contains(&measure.radius) {
        return Err(Error::invalid(format!(
            "radius must be an integer from 1 to {MOST_RADIUS}, got {}",
            measure.radius
        )));
    }
    if n >= MOST_ROWS || settled.residuals.len() != n {
        return Err(Error::invalid("residuals must be one number for each of fewer than 2**31 rows"));
    }
    if m == 0 || n.checked_mul(settled.filled) != Some(settled.support.len()) {
        return Err(Error::invalid("support must have one row for each row of X"));
    }
    if settled.units.is_some_and(|units| units.len() != settled.columns.len()) {
        return Err(Error::invalid("units must be one number for each column"));
    }
    if m.checked_mul(m) != Some(measure.whiten.len()) {
        return Err(Error::invalid("whiten must be square, with one row for each column of the support"));
    }
    let start = || {
        Ok(Sums {
            gradient: WhitenedTiles::new(measure.whiten, m)?,
            moments: TileMoments::new(m, measure.radius, plan.level)?,
            size: 0,
            tile: zeros(m * TILE)?,
        })
    };
    let work = 2 * work_on_row(m);
    let plan =
        Plan { threads: Some(threads_for(plan.threads, n.saturating_mul(work), SERIAL_BELOW)), ..plan };
    let parts = in_blocks(n, work, plan, start, |range, sums| {
        plan.level.run(AddBlock { rows, settled, chosen: &chosen, measure, range, sums })
    })?;
    let mut total = SettledSums { gradient: zeros(m)?, moments: zeros(m * m)?, size: 0 };
    for part in parts {
        total.size += part.size;
        total.gradient.iter_mut().zip(part.gradient.totals()).for_each(|(sum, more)| *sum += more);
        total.moments.iter_mut().zip(part.moments.totals()).for_each(|(sum, more)| *sum += more);
    }
    mirror(&mut total.moments, m);
    Ok(total)
}

/// One thread's sums.
struct Sums {
    gradient: WhitenedTiles,
    moments: TileMoments,
    size: i64,
    /// Sixteen rows, column after column.
    tile: Vec<f64>,
}

struct AddBlock<'a, 'b, R> {
    rows: &'a R,
    settled: Settled<'a>,
    chosen: &'a Chosen,
    measure: Measure<'a>,
    range: Range<usize>,
    sums: &'b mut Sums,
}

impl<R: ColumnRows> Vectorised for AddBlock<'_, '_, R> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let AddBlock { rows, settled, chosen, measure, range, sums } = self;
        let Settled { support, filled, columns: _, units, residuals, present } = settled;
        for start in range.clone().step_by(TILE) {
            let mut left = [0.0; TILE];
            let here = start..(start + TILE).min(range.end);
            let counts = |i: &usize| present.is_none_or(|flags| flags[*i] != 0);
            (here.start + AHEAD..here.end + AHEAD).for_each(|i| rows.prefetch(i, chosen));
            sums.tile.fill(0.0);
            let (known, new) = sums.tile.as_chunks_mut::<TILE>().0.split_at_mut(filled);
            if here.clone().all(|i| counts(&i)) {
                left[..here.len()].copy_from_slice(&residuals[here.clone()]);
                let support = &support[here.start * filled..here.end * filled];
                for (r, row) in support.chunks_exact(filled.max(1)).enumerate() {
                    put(row, r, known);
                }
                rows.read_all(here, chosen, new)?;
            } else {
                for i in here.filter(counts) {
                    left[i - start] = residuals[i];
                    put(&support[i * filled..][..filled], i - start, known);
                    rows.read(i, chosen, |place, value| new[place][i - start] = value)?;
                }
            }
            if let Some(units) = units {
                for (column, unit) in new.iter_mut().zip(units) {
                    column.iter_mut().for_each(|value| *value /= unit);
                }
            }
            let (mut factors, mut sizes) = ([0.0; TILE], [0; TILE]);
            for r in 0..TILE {
                factors[r] = factor(left[r], measure.clip);
            }
            for r in 0..TILE {
                sizes[r] = clipped_size_of(left[r], measure.cap);
            }
            sums.size += sizes.iter().sum::<i64>();
            sums.gradient.add(&sums.tile, &factors);
            for value in &mut sums.tile {
                *value *= measure.scale;
            }
            sums.moments.add(&sums.tile);
        }
        Ok(())
    }
}
