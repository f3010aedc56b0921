//! Why the server does not run.

use crate::{accounts, memory_file, process, tls};
use std::io;

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be listened on.
    #[error(
        "{source}. Stop what listens there, or choose another with -p (0 picks a free port), -U, -l or -s"
    )]
    Listen {
        /// Which and why.
        source: net::Error,
    },
    /// An address or a core is not there.
    #[error("{source}. {advice}")]
    Setup {
        /// What and why.
        source: net::Error,
        /// What to do.
        advice: &'static str,
    },
    /// What `-l` says is no address.
    #[error("-l {text}: {reason}")]
    Address {
        /// What it says.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There are no ports for workers behind the common one.
    #[error(
        "port {port} leaves no {workers} ports behind it for the workers. Choose a smaller -p, or --access crcw"
    )]
    TooFewPorts {
        /// The common one.
        port: u16,
        /// How many are needed.
        workers: usize,
    },
    /// There is no address to serve datagrams at.
    #[error(
        "there is no address to serve datagrams at. Give -l an address of this host, such as 127.0.0.1"
    )]
    NoDatagramAddress,
    /// Datagrams cannot be served past the kernel.
    #[error("--xdp: {source}. Without --xdp, datagrams are served through the kernel")]
    Xdp {
        /// What and why.
        source: xdp::Error,
    },
    /// Nothing is listened to that could come over the interface.
    #[error(
        "--xdp {interface}: no datagram for a loopback address comes over it. Give -l an address of {interface}, or 0.0.0.0"
    )]
    OnlyLoopback {
        /// Its name.
        interface: String,
    },
    /// The interface carries too little.
    #[error(
        "--xdp {interface}: its packets are {mtu} bytes long, and datagrams of answers are up to {least}: `ip link set {interface} mtu {least}`, or leave out --xdp"
    )]
    ShortPackets {
        /// Its name.
        interface: String,
        /// Its MTU in bytes.
        mtu: u32,
        /// What would do, in bytes.
        least: u32,
    },
    /// TLS cannot be spoken.
    #[error("{source}")]
    Tls {
        /// What is wrong with which file.
        source: tls::Error,
    },
    /// Items cannot be kept.
    #[error(transparent)]
    MemoryFile(#[from] memory_file::Error),
    /// The file of accounts is of no use.
    #[error("{source}. Check -Y")]
    Accounts {
        /// Which and why.
        source: accounts::Error,
    },
    /// The process cannot be what it should be.
    #[error("{source}")]
    Process {
        /// What and why.
        source: process::Error,
    },
    /// Metrics cannot be told.
    #[error("metrics cannot be told at {address}: {source}. Choose another address with --metrics")]
    Metrics {
        /// Where.
        address: std::net::SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// What was asked for to carry bytes cannot be had.
    #[error("{source}. Choose --transport auto or epoll")]
    Transport {
        /// Why not.
        source: net::Unavailable,
    },
    /// What was asked for to carry bytes cannot do what else was.
    #[error("over io_uring {what}. Choose --transport epoll, or leave the other out")]
    TransportLacks {
        /// What it cannot do.
        what: &'static str,
    },
    /// The largest item does not fit.
    #[error(
        "-I {item_bytes_max}: the largest item can be three quarters of a partition, or half with -M: {limit} bytes with these -m and -t. Choose a smaller -I or a larger -m"
    )]
    ItemTooLarge {
        /// What was asked for, in bytes.
        item_bytes_max: usize,
        /// What would do, in bytes.
        limit: usize,
    },
    /// There is no memory for the items.
    #[error("cannot make room for items: {source}. Choose a smaller -m")]
    Memory {
        /// What and why.
        source: mica::Error,
    },
    /// The system gave no descriptor, thread or signal handler.
    #[error("cannot {what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A worker thread ended by itself.
    #[error(
        "a worker thread stopped, so the server ends: {reason}. This is a defect; please report it"
    )]
    Worker {
        /// What it left as its last words.
        reason: String,
    },
}
