//! A public estimate: sparse, and quick to multiply with a row.

use crate::matrix::Index;
use crate::matrix::scalar::Real;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::{make_room, zeros};

/// Bits for each column of the support: a column that is not one of them has its bit set once in so many.
const SPARE_BITS: usize = 512;

/// A public estimate: its non-zero values in ascending column order, and a filter that most other columns fail.
#[derive(Debug, Clone)]
pub struct Theta {
    support: Vec<usize>,
    values: Vec<f64>,
    /// Bit `column % (64 * length)` is set for each column of the support. The length is a power of two, and short:
    /// the filter stays in the nearest cache, whatever the dimension.
    filter: Vec<u64>,
    dimension: usize,
}

impl Theta {
    /// From a dense vector.
    ///
    /// # Errors
    /// If a value is not finite.
    pub fn from_dense(dense: &[f64]) -> Result<Self> {
        let mut pairs = Vec::new();
        for (c, chunk) in dense.chunks(64).enumerate() {
            // An estimate is mostly zeros: pass over them without a branch for each.
            if chunk.iter().fold(false, |any, value| any | (*value != 0.0)) {
                make_room(&mut pairs, chunk.len())?;
                let columns = (c * 64..).zip(chunk);
                pairs.extend(
                    columns.filter(|(_, value)| **value != 0.0).map(|(column, value)| (column, *value)),
                );
            }
        }
        Self::from_pairs(pairs, dense.len())
    }

    /// From columns in ascending order and their values.
    ///
    /// # Errors
    /// If a value is not finite or the columns are not strictly increasing below `dimension`.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (usize, f64)>, dimension: usize) -> Result<Self> {
        let (support, values): (Vec<usize>, Vec<f64>) = pairs.into_iter().unzip();
        if values.iter().any(|value| !value.is_finite()) {
            return Err(Error::invalid("theta must be finite"));
        }
        if support.windows(2).any(|pair| pair[0] >= pair[1])
            || support.last().is_some_and(|last| *last >= dimension)
        {
            return Err(Error::invalid("theta's columns must increase and stay below its dimension"));
        }
        let bits = support.len().saturating_mul(SPARE_BITS).min(dimension);
        let mut filter: Vec<u64> = zeros(bits.div_ceil(64).next_power_of_two())?;
        let last = filter.len() - 1;
        for column in &support {
            filter[(column / 64) & last] |= 1 << (column % 64);
        }
        Ok(Theta { support, values, filter, dimension })
    }

    /// As a dense vector.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn to_dense(&self) -> Result<Vec<f64>> {
        let mut dense = zeros(self.dimension)?;
        for (column, value) in self.support.iter().zip(&self.values) {
            dense[*column] = *value;
        }
        Ok(dense)
    }

    /// Columns of X it applies to.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Columns with a non-zero value, ascending.
    pub fn support(&self) -> &[usize] {
        &self.support
    }

    /// The non-zero values.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// `x'theta` for a dense row: ascending columns, multiply then add.
    #[inline(always)]
    pub fn dot_dense<T: Real>(&self, row: &[T]) -> f64 {
        let mut sum = 0.0;
        for (column, value) in self.support.iter().zip(&self.values) {
            sum += row[*column].to_f64() * value;
        }
        sum
    }

    /// `x'theta` for a canonical sparse row: the same additions in the same order. Columns that the row does
    /// not store would add a zero, which changes no bit of a sum that starts at +0.
    #[inline(always)]
    pub fn dot_sparse<T: Real, I: Index>(&self, columns: &[I], row: &[T]) -> f64 {
        let mut sum = 0.0;
        let last = self.filter.len() - 1;
        let passed = |column: usize| self.filter[(column / 64) & last] >> (column % 64);
        // Rare: a row meets few of the support's columns. Without a branch for each column until it does.
        if columns.iter().fold(0, |any, column| any | passed(column.position())) & 1 == 0 {
            return sum;
        }
        for (column, x) in columns.iter().zip(row) {
            let column = column.position();
            if passed(column) & 1 == 1
                && let Ok(place) = self.support.binary_search(&column)
            {
                sum += x.to_f64() * self.values[place];
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_dense_vector_takes_memory_for_every_column() {
        let theta = Theta::from_pairs([(1, 1.0)], 1 << 60).expect("one value");
        assert_eq!(theta.to_dense(), Err(Error::Memory));
        assert_eq!(theta.dot_sparse(&[1i64, 1 << 50], &[2.0f64, 3.0]), 2.0);
    }
}
