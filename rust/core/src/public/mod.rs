//! After the noise: functions of released estimates, and of one person's own contexts.

pub mod play;
pub mod project;
pub mod score;
pub mod theta;
