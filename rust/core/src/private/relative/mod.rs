//! What a fit that knows public columns asks of rows: gradients relative to what those columns say.
//!
//! | step | here |
//! |---|---|
//! | public columns of all rows | [`support`] |
//! | gradients of all columns, less what public columns say of a typical one | [`shifted`] |
//! | both in one pass, with residuals of rewards | [`pass`] |
//! | gradients of public columns in coordinates of their own | [`whitened`] |
//! | the same with second moments and sizes of residuals, in one pass | [`settled`] |
//! | size and mean of whole rows | [`numbers`] |
//!
//! Each row's integers are bitwise a function of that row and of public numbers: floats of one row are added in a
//! fixed order, and rows only ever meet in sums of integers.

pub mod numbers;
pub mod pass;
pub mod settled;
pub mod shifted;
pub mod support;
pub mod whitened;

use crate::runtime::error::{Error, Result};

/// Check that there is a flag for each of `n` rows.
fn checked_flags(present: Option<&[u8]>, n: usize) -> Result<()> {
    if present.is_some_and(|flags| flags.len() != n) {
        return Err(Error::invalid("present must have one flag for each row"));
    }
    Ok(())
}

/// Check that there is a unit above zero for each of `d` columns.
fn checked_units(units: Option<&[f64]>, d: usize) -> Result<()> {
    match units {
        Some(units) if units.len() != d || units.iter().any(|unit| !(unit.is_finite() && *unit > 0.0)) => {
            Err(Error::invalid("units must be finite and above 0, one number for each column of X"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
