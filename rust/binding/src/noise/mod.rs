//! Bindings of the noise.

pub(crate) mod door;
pub(crate) mod release;
