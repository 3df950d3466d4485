//! Simulations, audits, baselines and measurements. No release of a policy passes through here.

pub mod audit;
pub mod bandwidth;
pub mod lasso;
pub mod paper;
pub mod simulate;
