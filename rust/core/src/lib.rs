//! Kernels of fliphat: what private rows meet before noise is added, and the noise.
#![deny(unsafe_code)]

pub mod entropy;
pub mod error;
pub mod exact;
pub mod laplace_mechanism;
pub mod peel;
