//! Why the server does not run.

use super::{memory_file, process};
use crate::carrier::{self, tls};
use crate::session::accounts;
use std::io;
use std::net::SocketAddr;

/// Why the server does not run, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "{0}. Stop what listens there, or choose another with -p (0 picks a free port), -U, -l or -s"
    )]
    Listen(#[source] net::Error),
    /// An address, a core or a congestion control is not there.
    #[error("{0}. {1}")]
    Setup(#[source] net::Error, &'static str),
    #[error("-l {0}: {1}")]
    Address(String, &'static str),
    #[error(
        "port {port} leaves no {workers} ports behind it for the workers. Choose a smaller -p, or --access crcw"
    )]
    TooFewPorts { port: u16, workers: usize },
    #[error(
        "there is no address to serve datagrams at. Give -l an address of this host, such as 127.0.0.1"
    )]
    NoDatagramAddress,
    #[error(transparent)]
    Carrier(#[from] carrier::Error),
    #[error(transparent)]
    Tls(#[from] tls::Error),
    #[error(transparent)]
    MemoryFile(#[from] memory_file::Error),
    #[error("{0}. Check -Y")]
    Accounts(#[from] accounts::Error),
    #[error(transparent)]
    Process(#[from] process::Error),
    #[error("metrics cannot be served at {0}: {1}. Choose another address with --metrics")]
    Metrics(SocketAddr, #[source] io::Error),
    #[error(
        "-I {item_bytes_max}: the largest item can be three quarters of a partition, or half with -M: {limit} bytes with these -m and -t. Choose a smaller -I or a larger -m"
    )]
    ItemTooLarge { item_bytes_max: usize, limit: usize },
    #[error("cannot get memory for items: {0}. Choose a smaller -m")]
    Memory(#[source] mica::Error),
    #[error("cannot {0}: {1}")]
    System(&'static str, #[source] io::Error),
    #[error("a worker thread stopped, so the server ends: {0}. This is a defect; please report it")]
    Worker(String),
}
