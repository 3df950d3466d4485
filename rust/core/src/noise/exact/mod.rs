//! Samplers whose distributions are exact: integers in, uniform bits in, integers out.
//!
//! Every decision is a comparison of a uniform number, revealed word by word ([`uniform`]), with
//! `2^shift * exp(-p/q)`. A fast path compares the first word with a float whose error bound is written
//! beside it ([`float`]); only inside that band does integer arithmetic decide ([`scaled_exp`]), with as
//! many limbs and as many further random bits as it takes. The result never depends on the float: widening
//! the band until integers always decide gives the same samples from the same bits, and tests hold the
//! samplers to that.
//!
//! [`textbook`] has the samplers of Canonne, Kamath and Steinke as printed: slow, and independent of all of
//! the above.

pub mod bernoulli;
pub mod gaussian;
pub mod laplace;
pub mod rounded;
#[doc(hidden)]
pub mod textbook;

mod curve;
mod float;
mod integer;
mod layers;
mod scaled_exp;
mod uniform;
mod wide;

pub(crate) use bernoulli::Decider;
pub(crate) use float::negative_exp;
pub(crate) use integer::below;
pub(crate) use scaled_exp::{INVERSE_LN_2, ScaledExp};

use crate::runtime::error::{Error, Result};

/// Scales and standard deviations are below this, so that no intermediate integer overflows.
pub const SCALE_LIMIT: u64 = 1 << 40;

/// A scale in `1..2^40`, or the reason it is not one.
pub(crate) fn checked_scale(name: &str, scale: u64) -> Result<u64> {
    if (1..SCALE_LIMIT).contains(&scale) {
        Ok(scale)
    } else {
        Err(Error::invalid(format!("{name} must be an integer from 1 to {}, got {scale}", SCALE_LIMIT - 1)))
    }
}
