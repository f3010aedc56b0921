use crate::recipe::Work;
use std::io;
use std::path::PathBuf;

/// What could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be made.
    #[error("{path} could not be {done}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What was attempted.
        done: &'static str,
        /// What the kernel answered.
        source: io::Error,
    },
    /// A file is smaller than what one request reads or writes of it.
    #[error("{work} moves more than the {file_bytes} bytes of a file; raise --file-bytes")]
    FileTooSmall {
        /// The work.
        work: Work,
        /// Size of the file.
        file_bytes: u64,
    },
    /// The memory to read could not be had.
    #[error(transparent)]
    Memory(#[from] ceiling::Error),
    /// The channel could not be made.
    #[error(transparent)]
    Channel(#[from] antagonist::Error),
}
