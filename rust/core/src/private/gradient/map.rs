//! The row map: a row and its reward to one factor, which scales the row before it is rounded.

use crate::matrix::scalar::{LIMIT, Real};
use crate::matrix::sigmoid::sigmoid;
use crate::public::theta::Theta;
use crate::runtime::error::{Error, Result};

/// The loss whose gradient is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Half the squared residual; its derivative is `x'theta - y`.
    Squared,
    /// Logistic loss for rewards 0 and 1; its derivative is `sigmoid(x'theta) - y`.
    Logistic,
}

/// Everything public that the map of a row depends on.
#[derive(Debug, Clone)]
pub struct RowMap<'a> {
    theta: &'a Theta,
    clip: f64,
    reward_clip: f64,
    loss: Loss,
}

impl<'a> RowMap<'a> {
    /// Clip each coordinate of a row's gradient at `clip`, and squared-loss rewards at `reward_clip`.
    ///
    /// # Errors
    /// If a clip is not above zero, or `clip` is not finite (an infinite `reward_clip` clips nothing).
    pub fn new(theta: &'a Theta, clip: f64, reward_clip: f64, loss: Loss) -> Result<Self> {
        if !(clip.is_finite() && clip > 0.0) {
            return Err(Error::invalid(format!("clip must be a finite number above 0, got {clip}")));
        }
        if reward_clip.is_nan() || reward_clip <= 0.0 {
            return Err(Error::invalid(format!("reward_clip must be above 0, got {reward_clip}")));
        }
        Ok(RowMap { theta, clip, reward_clip, loss })
    }

    /// The estimate rows are compared with.
    pub fn theta(&self) -> &'a Theta {
        self.theta
    }

    /// The factor `k` of a row with prediction `dot`: its coordinate `j` becomes
    /// `rint(clamp(x_j * k, -2^15, 2^15))`. It may be infinite or NaN; [`Real::quantise`] says what follows.
    ///
    /// # Errors
    /// If the reward is not finite, or not 0 or 1 under the logistic loss.
    #[inline(always)]
    pub fn factor<T: Real>(&self, dot: f64, reward: f64) -> Result<T> {
        let residual = match self.loss {
            Loss::Squared => {
                if !reward.is_finite() {
                    return Err(Error::invalid("y must be finite"));
                }
                dot - reward.clamp(-self.reward_clip, self.reward_clip)
            }
            Loss::Logistic => {
                if reward != 0.0 && reward != 1.0 {
                    return Err(Error::invalid("y must be 0 or 1 for the logistic loss"));
                }
                sigmoid(dot) - reward
            }
        };
        Ok(T::from_f64(residual * LIMIT as f64 / self.clip))
    }
}
