//! Why the server does not run.

use super::{memory_file, process};
use crate::carrier::{self, tls};
use crate::session::accounts;
use std::io;

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be listened on.
    #[error(
        "{source}. Stop what listens there, or choose another with -p (0 picks a free port), -U, -l or -s"
    )]
    Listen { source: net::Error },
    /// An address or a core is not there.
    #[error("{source}. {advice}")]
    Setup {
        source: net::Error,
        advice: &'static str,
    },
    /// What `-l` says is no address.
    #[error("-l {text}: {reason}")]
    Address { text: String, reason: &'static str },
    /// There are no ports for workers behind the common one.
    #[error(
        "port {port} leaves no {workers} ports behind it for the workers. Choose a smaller -p, or --access crcw"
    )]
    TooFewPorts { port: u16, workers: usize },
    /// There is no address to serve datagrams at.
    #[error(
        "there is no address to serve datagrams at. Give -l an address of this host, such as 127.0.0.1"
    )]
    NoDatagramAddress,
    /// Bytes cannot be carried as asked.
    #[error(transparent)]
    Carrier(#[from] carrier::Error),
    /// TLS cannot be spoken.
    #[error("{source}")]
    Tls { source: tls::Error },
    /// Items cannot be kept.
    #[error(transparent)]
    MemoryFile(#[from] memory_file::Error),
    /// The file of accounts is of no use.
    #[error("{source}. Check -Y")]
    Accounts { source: accounts::Error },
    /// The process cannot be what it should be.
    #[error("{source}")]
    Process { source: process::Error },
    /// Metrics cannot be served.
    #[error(
        "metrics cannot be served at {address}: {source}. Choose another address with --metrics"
    )]
    Metrics {
        address: std::net::SocketAddr,
        source: io::Error,
    },
    /// The largest item does not fit.
    #[error(
        "-I {item_bytes_max}: the largest item can be three quarters of a partition, or half with -M: {limit} bytes with these -m and -t. Choose a smaller -I or a larger -m"
    )]
    ItemTooLarge { item_bytes_max: usize, limit: usize },
    /// There is no memory for the items.
    #[error("cannot get memory for items: {source}. Choose a smaller -m")]
    Memory { source: mica::Error },
    /// The system gave no descriptor, thread or signal handler.
    #[error("cannot {what}: {source}")]
    System {
        what: &'static str,
        source: io::Error,
    },
    /// A worker thread ended by itself.
    #[error(
        "a worker thread stopped, so the server ends: {reason}. This is a defect; please report it"
    )]
    Worker { reason: String },
}
