//! The gradient of the squared loss in plain floats, as the paper's algorithm N-IHT reads it.
//!
//! **Nothing here is private.** It exists for `fliphat.paper`; [`crate::private::gradient`] is what people's data go
//! through.

use crate::matrix::Dense;
use crate::matrix::scalar::Real;
use crate::public::theta::Theta;
use crate::runtime::error::{Error, Result};
use crate::runtime::memory::zeros;
use crate::runtime::simd::{Level, Vectorised};

struct AddMultiple<'a, 'b, T> {
    row: &'a [T],
    factor: f64,
    sum: &'b mut [f64],
}

impl<T: Real> Vectorised for AddMultiple<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (sum, x) in self.sum.iter_mut().zip(self.row) {
            *sum += self.factor * x.to_f64();
        }
    }
}

/// `2 X'(X theta - y) / n`, the gradient of `mean((y - X theta)^2)`.
///
/// # Errors
/// If shapes do not fit each other, or the result is not finite.
pub fn squared_loss_gradient<T: Real>(rows: &Dense<'_, T>, y: &[f64], theta: &Theta) -> Result<Vec<f64>> {
    let (n, d) = (y.len(), theta.dimension());
    if rows.rows() != n || rows.columns() != d || n == 0 {
        return Err(Error::invalid("X, y and theta must fit each other"));
    }
    let mut gradient = zeros(d)?;
    let level = Level::best();
    for (i, reward) in y.iter().enumerate() {
        let row = rows.row(i);
        let factor = 2.0 * (theta.dot_dense(row) - reward) / n as f64;
        level.run(AddMultiple { row, factor, sum: &mut gradient });
    }
    if !gradient.iter().all(|value: &f64| value.is_finite()) {
        return Err(Error::invalid("X and y must be finite"));
    }
    Ok(gradient)
}
