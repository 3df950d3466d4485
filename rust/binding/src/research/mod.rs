//! Bindings of simulations, audits, baselines and measurements.

pub(crate) mod audit;
pub(crate) mod bandwidth;
pub(crate) mod lasso;
pub(crate) mod paper;
pub(crate) mod simulate;
