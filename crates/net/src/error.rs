use crate::Endpoint;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// What went wrong while setting something up, and where.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A connection could not be made.
    #[error("cannot connect to {0}: {1}")]
    Connect(Endpoint, #[source] io::Error),
    /// The connection request got no reply in this time.
    #[error("cannot connect to {0}: no answer within {seconds} s", seconds = .1.as_secs_f64())]
    ConnectTimeout(Endpoint, Duration),
    /// A listening socket could not be made.
    #[error("cannot listen on {0}: {1}")]
    Listen(Endpoint, #[source] io::Error),
    /// A UDP socket could not be made.
    #[error("cannot listen for datagrams on {0}: {1}")]
    ListenForDatagrams(SocketAddr, #[source] io::Error),
    /// Connections cannot have the congestion control that was asked for.
    #[error("congestion control {0}: {1}")]
    Congestion(String, #[source] io::Error),
    /// A host name did not become an address.
    #[error("cannot resolve host {0:?}: {1}")]
    Resolve(String, String),
    /// A thread could not be put on a core, with the cores that may be used where they are known.
    #[error("cannot pin a thread to core {0}: {1}")]
    Pin(usize, String),
}
