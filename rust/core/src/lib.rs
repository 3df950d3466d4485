//! Kernels of fliphat: what private rows meet before noise is added, the noise, and what follows it.
//!
//! Data flows one way: rows ([`matrix`]) -> integers and their sums ([`private`]) -> noise ([`noise`]) ->
//! estimate and arms ([`public`]). [`research`] is for simulations, audits and baselines, [`serving`] for a
//! policy behind HTTP; [`runtime`] is what all of them stand on: errors, files, threads and instruction sets.
#![deny(unsafe_code)]

pub mod matrix;
pub mod noise;
pub mod private;
pub mod public;
pub mod research;
pub mod runtime;
pub mod serving;
