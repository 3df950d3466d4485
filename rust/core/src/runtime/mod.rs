//! What every room stands on: errors, files, memory, threads and instruction sets.

pub mod error;
pub mod files;
pub mod memory;
pub mod parallel;
pub mod simd;
