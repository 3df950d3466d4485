//! Rows as they lie in memory, dense in C order or compressed sparse, and the numbers they hold. Shapes are
//! checked once, here.

mod csr;
mod dense;
pub mod scalar;
pub mod sigmoid;

pub use csr::{Csr, Index};
pub use dense::Dense;
