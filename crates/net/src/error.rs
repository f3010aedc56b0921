use crate::Endpoint;
use std::io;
use std::time::Duration;

/// What went wrong while setting something up, and where.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A connection could not be made.
    #[error("cannot connect to {endpoint}: {source}")]
    Connect {
        /// Where to.
        endpoint: Endpoint,
        /// What the kernel said.
        source: io::Error,
    },
    /// The connection request got no reply in time.
    #[error("cannot connect to {endpoint}: no answer within {} s", .timeout.as_secs_f64())]
    ConnectTimeout {
        /// Where to.
        endpoint: Endpoint,
        /// How long we waited.
        timeout: Duration,
    },
    /// A listening socket could not be made.
    #[error("cannot listen on {endpoint}: {source}")]
    Listen {
        /// Where.
        endpoint: Endpoint,
        /// What the kernel said.
        source: io::Error,
    },
    /// Connections cannot have the congestion control that was asked for.
    #[error("congestion control {name}: {source}")]
    Congestion {
        /// Its name.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A UDP socket could not be made.
    #[error("cannot listen for datagrams on {address}: {source}")]
    ListenForDatagrams {
        /// Where.
        address: std::net::SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// A host name did not become an address.
    #[error("cannot resolve host {host:?}: {reason}")]
    Resolve {
        /// The name as given.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// A thread could not be put on a core.
    #[error("cannot pin a thread to core {core}: {reason}")]
    Pin {
        /// The core asked for.
        core: usize,
        /// Why not, with the cores that may be used where they are known.
        reason: String,
    },
}
