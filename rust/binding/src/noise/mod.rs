//! Bindings of the noise.

pub(crate) mod kinds;
pub(crate) mod observe;
pub(crate) mod release;
pub(crate) mod seeded;
