//! What every room stands on: errors, memory, threads and instruction sets.

pub mod error;
pub mod memory;
pub mod parallel;
pub mod simd;
