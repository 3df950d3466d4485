//! After the noise: functions of released estimates, and of one person's own contexts.
//!
//! And of public numbers alone: what releases cost ([`price`]).

pub mod kalman;
pub mod play;
pub mod price;
pub mod project;
pub mod score;
pub mod theta;
pub mod vote;
