use std::io;
use std::path::Path;

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A socket, a thread or a file could not be had, or a file is too small; in words.
    #[error("{0}")]
    Host(String),
    /// The memory to read could not be had.
    #[error(transparent)]
    Memory(#[from] ceiling::Error),
    /// The channel could not be made.
    #[error(transparent)]
    Channel(#[from] antagonist::Error),
}

impl Error {
    /// Something could not be done to a file.
    pub(crate) fn file(path: &Path, done: &str) -> impl FnOnce(io::Error) -> Self {
        let what = format!("{} could not be {done}", path.display());
        move |source| Self::Host(format!("{what}: {source}"))
    }
}
