/// Why the load generator refuses to start, or to go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration of a client or a phase makes no sense.
    #[error("{0}")]
    Config(String),
    /// A connection, a listener or a core could not be had.
    #[error(transparent)]
    Net(#[from] net::Error),
    /// AF_XDP cannot be used.
    #[error(transparent)]
    Xdp(#[from] xdp::Error),
    /// The kernel refused something that every program needs, such as a thread or a descriptor.
    #[error("cannot {0}: {1}")]
    System(&'static str, #[source] std::io::Error),
    /// A method was called at the wrong time, such as a second phase while one runs.
    #[error("{0}")]
    State(&'static str),
}

impl Error {
    pub(crate) fn system(action: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::System(action, error)
    }
}
