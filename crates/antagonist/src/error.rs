//! What can go wrong with an antagonist.

use std::io;
use std::path::{Path, PathBuf};

/// Why something could not be taken away. The text is a full clause that names the core, file or value concerned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value that no antagonist can have, or a file that is no channel of this version.
    #[error("{0}")]
    Argument(String),
    /// Another process has taken a part of the channel.
    #[error("a part of the regulated channel {0} is taken away already")]
    Held(PathBuf),
    /// A core, memory, a thread or a file could not be had.
    #[error(transparent)]
    Host(#[from] ceiling::Error),
}

impl Error {
    /// The file of a channel could not be made, opened or mapped.
    pub(crate) fn channel_file(path: &Path, done: &str) -> impl FnOnce(io::Error) -> Self {
        let what = format!(
            "the regulated channel {} could not be {done}",
            path.display()
        );
        move |error| Self::Host(ceiling::Error::Host(what, error))
    }
}
