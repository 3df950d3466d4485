//! What every room stands on: errors and instruction sets.

pub mod error;
pub mod simd;
