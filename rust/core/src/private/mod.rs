//! Before the noise: rows become integers, and sums of integers. Whatever leaves this room was released by a
//! mechanism of it.

pub mod ball;
pub mod board;
pub mod candidates;
pub mod dense;
pub mod draws;
pub mod episode;
pub mod gradient;
pub mod lattice;
pub mod niht;
pub mod peel;
pub mod pilot;
pub mod pursuit;
pub mod relative;
pub mod totals;
