//! Bindings of what follows the noise.

pub(crate) mod kalman;
pub(crate) mod play;
pub(crate) mod price;
pub(crate) mod project;
pub(crate) mod score;
pub(crate) mod vote;
