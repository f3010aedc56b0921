//! What can go wrong in the keeper; each is one clear line.

use std::fmt::Display;
use std::io;

/// Exit status when the keeper itself could not do its work, as in `env(1)` and `timeout(1)`.
pub(crate) const KEEPER_FAILED: u8 = 125;

/// Why the keeper, or the program it was to run, could not start.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Error {
    pub(crate) message: String,
    /// 127: the program was not found; 126: found but not executable; 125: anything else, as in `env(1)`.
    pub(crate) exit_status: u8,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit_status: KEEPER_FAILED,
        }
    }

    /// The command line is wrong.
    pub(crate) fn usage(what: impl Display) -> Self {
        Self::new(format!("{what}. Try rackscope-keeper --help"))
    }

    /// A step failed, such as "fork".
    pub(crate) fn cannot<E: Into<io::Error>>(doing: impl Display) -> impl FnOnce(E) -> Self {
        move |source| Self::new(format!("cannot {doing}: {}", source.into()))
    }

    /// A core that this process may not use.
    pub(crate) fn core(core: usize) -> Self {
        Self::new(format!(
            "core {core} cannot be used here: it does not exist, is offline, or is outside this process's cpuset"
        ))
    }

    /// The parent had already ended, or is not the keeper's parent.
    pub(crate) fn parent_gone(parent: rustix::process::Pid) -> Self {
        Self::new(format!(
            "process {} is not the parent of this keeper, or has ended: nothing was started",
            parent.as_raw_nonzero()
        ))
    }
}

impl From<lexopt::Error> for Error {
    fn from(error: lexopt::Error) -> Self {
        Self::usage(error)
    }
}
