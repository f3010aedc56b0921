/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A thread could not be kept on its core.
    #[error(transparent)]
    Pin(#[from] net::Error),
    /// What was asked for cannot be made or measured.
    #[error("{0}")]
    Request(String),
    /// Nobody listens, or nobody asks any more.
    #[error("standard input or output: {0}")]
    Io(#[from] std::io::Error),
}
