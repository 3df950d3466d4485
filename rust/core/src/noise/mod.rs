//! Randomness, and the exact distributions that are drawn from it.

pub mod entropy;
pub mod exact;
pub mod gaussian_vector;
pub mod laplace_mechanism;
pub mod observe;
