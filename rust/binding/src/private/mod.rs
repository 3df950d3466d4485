//! Bindings of what private rows meet before noise is added.

pub(crate) mod ball;
pub(crate) mod gradient;
pub(crate) mod niht;
pub(crate) mod pilot;
pub(crate) mod pursuit;
pub(crate) mod relative;
pub(crate) mod sums;
pub(crate) mod totals;
