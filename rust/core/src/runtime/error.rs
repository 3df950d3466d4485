//! The one error type of the crate.

/// Why a kernel refused to run.
///
/// Messages name an argument and its rule. They never contain a value of a row, a reward or a context.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An argument breaks its rule.
    #[error("{0}")]
    Invalid(String),
    /// The operating system gave no entropy; no noise was drawn and nothing was released.
    #[error("the operating system's entropy source failed: {0}")]
    Entropy(String),
    /// There is not enough memory for the result or the work; nothing was released.
    #[error("there is not enough memory for arrays of this size")]
    Memory,
}

impl Error {
    /// An argument that breaks its rule, in words.
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::Invalid(message.into())
    }
}

/// Result of a kernel.
pub type Result<T> = std::result::Result<T, Error>;
