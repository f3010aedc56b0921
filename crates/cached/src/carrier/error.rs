use std::io;

/// Why bytes cannot be carried as asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("--xdp: {0}. Without --xdp, datagrams are served through the kernel")]
    Xdp(#[from] xdp::Error),
    #[error(
        "--xdp {0}: no datagram for a loopback address comes over it. Give -l an address of {0}, or 0.0.0.0"
    )]
    OnlyLoopback(String),
    #[error(
        "--xdp {interface}: its packets are {mtu} bytes long, and datagrams of replies are up to {least}: `ip link set {interface} mtu {least}`, or leave out --xdp"
    )]
    ShortPackets {
        interface: String,
        mtu: u32,
        least: u32,
    },
    #[error("{0}. Choose --transport auto or epoll")]
    Transport(#[from] net::Unavailable),
    /// io_uring cannot do what else was asked for.
    #[error("io_uring {0} here. Choose --transport epoll, or leave the other out")]
    TransportLacks(&'static str),
    #[error("cannot {0}: {1}")]
    System(&'static str, #[source] io::Error),
}

impl Error {
    /// What is wrong, without what to do.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Transport(error) => error.to_string(),
            Self::TransportLacks(what) => format!("io_uring {what} here"),
            other => other.to_string(),
        }
    }
}
