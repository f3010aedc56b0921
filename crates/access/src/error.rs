/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A partition could not be made.
    #[error("{items} items for {cores} cores: {source}; ask for fewer items")]
    Partition {
        /// Items that were asked for.
        items: u64,
        /// Cores that were asked for.
        cores: usize,
        /// What is in the way.
        source: mica::Error,
    },
    /// More cores than there are.
    #[error("{wanted} cores were asked for, and this process may use {usable}")]
    Cores {
        /// Cores that were asked for.
        wanted: usize,
        /// Cores that there are.
        usable: usize,
    },
    /// A thread could not be kept on its core.
    #[error(transparent)]
    Pin(#[from] net::Error),
    /// What was asked for cannot be measured.
    #[error("{0}")]
    Request(String),
    /// Nobody listens, or nobody asks any more.
    #[error("standard input or output: {0}")]
    Io(#[from] std::io::Error),
}
