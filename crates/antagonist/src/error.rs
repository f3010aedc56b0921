//! What can go wrong with an antagonist.

use std::io;
use std::path::PathBuf;

/// Why something could not be taken away. The text is a full clause that names the core, file or value concerned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that no antagonist can have.
    #[error("{0}")]
    Argument(String),
    /// The file of a channel could not be made, opened or mapped.
    #[error("the regulated channel {path} could not be {done}: {source}")]
    ChannelFile {
        /// The file.
        path: PathBuf,
        /// What was attempted: `made`, `opened`, `mapped`.
        done: &'static str,
        /// What the kernel answered.
        source: io::Error,
    },
    /// A file that is not a channel of this version.
    #[error("{path} is not a regulated channel of this version")]
    NotAChannel {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else holds a part of the channel.
    #[error("a part of the regulated channel {path} is taken away already")]
    Held {
        /// The channel's file.
        path: PathBuf,
    },
    /// A core, memory or a thread could not be had.
    #[error(transparent)]
    Host(#[from] ceiling::Error),
    /// A thread could not be started.
    #[error("an antagonist's thread could not be started: {0}")]
    Thread(#[source] io::Error),
}
