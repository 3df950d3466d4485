//! Kernels of fliphat: what private rows meet before noise is added, and the noise.
//!
//! Data flows one way: rows -> integers ([`gradient`]) -> sums -> noise -> estimate -> arms ([`select`]).
#![deny(unsafe_code)]

pub mod audit;
pub mod bandwidth;
pub mod entropy;
pub mod error;
pub mod exact;
pub mod gradient;
pub mod laplace_mechanism;
pub mod lasso;
pub mod lattice;
pub mod niht;
pub mod paper;
pub mod peel;
pub mod price;
pub mod project;
pub mod real;
pub mod rounds;
pub mod rows;
pub mod select;
pub mod sigmoid;
pub mod simd;
pub mod simulate;
