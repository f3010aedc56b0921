//! What is wrong with a command line.

/// A command line that asks for nothing that can be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not an option, or one without its value.
    #[error("{0}; rackscope-cached -h lists the options")]
    Syntax(#[from] lexopt::Error),
    /// An option of memcached's that asks for what there is not.
    #[error("{option}: {reason}")]
    Refused {
        /// The option.
        option: &'static str,
        /// Why, and what else to do.
        reason: &'static str,
    },
    /// An option with a value it cannot have.
    #[error("{option} {value}: {reason}")]
    Value {
        /// The option.
        option: &'static str,
        /// Its value as given.
        value: String,
        /// What it should be.
        reason: &'static str,
    },
}

pub(super) fn refused(option: &'static str, reason: &'static str) -> Error {
    Error::Refused { option, reason }
}

pub(super) fn bad(option: &'static str, value: String, reason: &'static str) -> Error {
    Error::Value {
        option,
        value,
        reason,
    }
}
