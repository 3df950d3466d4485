//! Three numbers of each whole row, as exact integer sums: its size, its mean over its size, and that squared.

use super::{checked_flags, checked_units};
use crate::matrix::scalar::{LIMIT, Real};
use crate::matrix::{Csr, Dense, Index};
use crate::runtime::error::{Error, Result};
use crate::runtime::parallel::{Plan, in_blocks};

/// Sums are added over this many lanes: lane `j % LANES` holds column `j`, so that zeros, stored or not, change
/// nothing.
const LANES: usize = 8;

/// Binary digits of a logarithm.
const DIGITS: u32 = 24;

/// Sizes beyond 2^-1000 and 2^1000 count as these: what is between is a normal float.
const LARGEST_EXPONENT: i32 = 1000;

/// Rows whose values can be read one after the other, in the order of their columns.
pub trait ValueRows: Sync {
    /// Number of rows.
    fn rows(&self) -> usize;
    /// Number of columns.
    fn columns(&self) -> usize;
    /// Values stored in all rows.
    fn stored(&self) -> usize;
    /// Call `see` with the column and value of each stored value of row `i`.
    ///
    /// # Errors
    /// If a sparse row is not canonical.
    fn visit(&self, i: usize, see: impl FnMut(usize, f64)) -> Result<()>;
}

impl<T: Real> ValueRows for Dense<'_, T> {
    fn rows(&self) -> usize {
        Dense::rows(self)
    }

    fn columns(&self) -> usize {
        Dense::columns(self)
    }

    fn stored(&self) -> usize {
        Dense::rows(self) * Dense::columns(self)
    }

    #[inline(always)]
    fn visit(&self, i: usize, mut see: impl FnMut(usize, f64)) -> Result<()> {
        self.row(i).iter().enumerate().for_each(|(j, x)| see(j, x.to_f64()));
        Ok(())
    }
}

impl<T: Real, I: Index> ValueRows for Csr<'_, T, I> {
    fn rows(&self) -> usize {
        Csr::rows(self)
    }

    fn columns(&self) -> usize {
        Csr::columns(self)
    }

    fn stored(&self) -> usize {
        Csr::stored(self)
    }

    #[inline(always)]
    fn visit(&self, i: usize, mut see: impl FnMut(usize, f64)) -> Result<()> {
        let (columns, values) = self.canonical_row(i)?;
        columns.iter().zip(values).for_each(|(j, x)| see(j.position(), x.to_f64()));
        Ok(())
    }
}

/// What a row is measured with. Public.
#[derive(Debug, Clone, Copy)]
pub struct Ruler<'a> {
    /// Size that a row's is compared with.
    pub size: f64,
    /// Largest power of two that is told apart.
    pub octaves: f64,
    /// Public sizes of columns.
    pub units: Option<&'a [f64]>,
}

/// Sums over rows of log2 of the root mean square of the values that are not zero over `size`, in steps of
/// `octaves / 2^15`; of the row's mean over that root; and of the square of this, both in steps of `2^-15`.
///
/// A row of zeros, or with a value that is not finite, counts as three zeros. Replacing one row moves the first
/// two by at most `2^16` and the third by at most `2^15`.
///
/// # Errors
/// If lengths do not fit, `size` or `octaves` are not finite and above zero, or a sparse row is not canonical.
pub fn row_numbers<R: ValueRows>(
    rows: &R,
    ruler: Ruler<'_>,
    present: Option<&[u8]>,
    plan: Plan,
) -> Result<[i64; 3]> {
    checked_flags(present, rows.rows())?;
    checked_units(ruler.units, rows.columns())?;
    for (name, value) in [("size", ruler.size), ("octaves", ruler.octaves)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(Error::invalid(format!("{name} must be a finite number above 0, got {value}")));
        }
    }
    if rows.rows() >= 1 << 46 {
        return Err(Error::invalid("X must have fewer than 2^46 rows"));
    }
    let row_size = rows.stored() / rows.rows().max(1);
    let parts = in_blocks(
        rows.rows(),
        row_size,
        plan,
        || Ok([0i64; 3]),
        |range, sums| {
            for i in range.filter(|i| present.is_none_or(|flags| flags[*i] != 0)) {
                let numbers = numbers_of(rows, i, ruler)?;
                sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
            }
            Ok(())
        },
    )?;
    Ok(parts.into_iter().fold([0; 3], |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]]))
}

fn numbers_of<R: ValueRows>(rows: &R, i: usize, ruler: Ruler<'_>) -> Result<[i64; 3]> {
    let scaled = |j: usize, x: f64| ruler.units.map_or(x, |units| x / units[j]);
    let (mut largest, mut finite) = (0.0f64, true);
    rows.visit(i, |j, x| {
        let value = scaled(j, x).abs();
        finite &= value.is_finite();
        largest = largest.max(value);
    })?;
    if !finite || largest == 0.0 {
        return Ok([0; 3]);
    }
    let (mut squares, mut plain, mut count) = ([0.0; LANES], [0.0; LANES], 0u64);
    rows.visit(i, |j, x| {
        let value = scaled(j, x);
        let relative = value / largest;
        squares[j % LANES] += relative * relative;
        plain[j % LANES] += relative;
        count += u64::from(value != 0.0);
    })?;
    let total = |lanes: [f64; LANES]| lanes.iter().fold(0.0, |sum, lane| sum + lane);
    let root = (total(squares) / count as f64).sqrt();
    let octave = log2(root * (largest / ruler.size));
    let ratio = (total(plain) / rows.columns() as f64 / root).clamp(-1.0, 1.0);
    let steps = |value: f64| (value * LIMIT as f64).round_ties_even() as i64;
    Ok([steps((octave / ruler.octaves).clamp(-1.0, 1.0)), steps(ratio), steps(ratio * ratio)])
}

/// Binary logarithm, digit after digit: IEEE operations only, the same on every machine. Within 2^-22.
fn log2(value: f64) -> f64 {
    let bound = f64::from(LARGEST_EXPONENT);
    if value >= 2f64.powi(LARGEST_EXPONENT) {
        return bound;
    }
    if value <= 2f64.powi(-LARGEST_EXPONENT) {
        return -bound;
    }
    let bits = value.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let (mut fraction, mut digit) = (0.0, 0.5);
    for _ in 0..DIGITS {
        mantissa *= mantissa;
        if mantissa >= 2.0 {
            mantissa *= 0.5;
            fraction += digit;
        }
        digit *= 0.5;
    }
    exponent as f64 + fraction
}

#[cfg(test)]
mod tests {
    use super::log2;

    #[test]
    fn the_logarithm_is_near_and_never_above() {
        for i in 1..4000 {
            for value in [f64::from(i) * 1e-3, f64::from(i) * 1e200, f64::from(i) * 1e-250] {
                let off = value.log2() - log2(value);
                assert!((-1e-12..1e-6).contains(&off), "{value} {off}");
            }
        }
        assert_eq!([log2(1.0), log2(8.0), log2(f64::MAX), log2(0.0)], [0.0, 3.0, 1000.0, -1000.0]);
    }
}
