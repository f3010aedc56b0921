//! What can go wrong while measuring a ceiling.

use std::io;

/// Why a ceiling could not be measured. The text is a full clause that names the core, size or address concerned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An argument that no measurement can be made with.
    #[error("{0}")]
    Argument(String),
    /// The host did not give something: a core, memory, a thread, a priority, a connection.
    #[error("{0}: {1}")]
    Host(String, #[source] io::Error),
}

impl Error {
    /// `what` could not be had.
    pub fn host<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |error| Self::Host(what.into(), error.into())
    }

    pub(crate) fn core<E: Into<io::Error>>(core: usize) -> impl FnOnce(E) -> Self {
        Self::host(format!("core {core} cannot be used by this process"))
    }

    pub(crate) fn thread(core: usize) -> impl FnOnce(io::Error) -> Self {
        Self::host(format!(
            "a measuring thread for core {core} could not be started"
        ))
    }
}
