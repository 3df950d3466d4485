//! Kernels of fliphat: what private rows meet before noise is added, and the noise.
#![deny(unsafe_code)]

pub mod error;
