use std::io;

/// Why bytes cannot be carried as asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Datagrams cannot be served over AF_XDP.
    #[error("--xdp: {source}. Without --xdp, datagrams are served through the kernel")]
    Xdp { source: xdp::Error },
    /// No socket listens to what could come over the interface.
    #[error(
        "--xdp {interface}: no datagram for a loopback address comes over it. Give -l an address of {interface}, or 0.0.0.0"
    )]
    OnlyLoopback { interface: String },
    /// The interface carries too little.
    #[error(
        "--xdp {interface}: its packets are {mtu} bytes long, and datagrams of replies are up to {least}: `ip link set {interface} mtu {least}`, or leave out --xdp"
    )]
    ShortPackets {
        interface: String,
        mtu: u32,
        least: u32,
    },
    /// The kernel does not let this process use io_uring.
    #[error("{source}. Choose --transport auto or epoll")]
    Transport { source: net::Unavailable },
    /// io_uring cannot do what else was asked for.
    #[error("io_uring {what} here. Choose --transport epoll, or leave the other out")]
    TransportLacks { what: &'static str },
    /// The system gave no descriptor.
    #[error("cannot {what}: {source}")]
    System {
        what: &'static str,
        source: io::Error,
    },
}

impl Error {
    /// What is wrong, without what to do.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Transport { source } => source.to_string(),
            Self::TransportLacks { what } => format!("io_uring {what} here"),
            other => other.to_string(),
        }
    }
}
