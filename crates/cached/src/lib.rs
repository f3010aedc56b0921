//! The cache engine: memcached's protocols over epoll or io_uring, items in [`mica`] partitions.
//!
//! Four floors, each of which knows only those below it:
//!
//! * [`control`]: how the server starts, runs and ends: command line, sockets, workers, signals, files.
//! * `carrier`: how bytes get from and to clients: epoll, io_uring, TLS, datagrams, AF_XDP. A worker is a thread with its
//!   own carrier and connections, and buffers that all of them share, so that an idle connection holds no memory for bytes.
//! * `session`: what one client sends and is replied: protocols, passwords, commands in bursts, watching.
//! * `engine`: a command and the storage in, a reply out; no sockets. With one worker it owns all partitions; with more,
//!   either each owns its share of the keys and commands go to the worker that owns theirs (EREW; CREW where all may
//!   read), or all share them and a writer takes a lock (CRCW).
//!
//! [`options`] is what was asked for, which all of them read. [`storage`] and [`Clock`] are open to programs that measure how
//! workers get at partitions, without a client.

/// The version that clients see: the memcached whose protocol is spoken, because clients choose their dialect by it, and
/// this program's version.
macro_rules! protocol_version {
    () => {
        concat!("1.6.18-rackscope-", env!("CARGO_PKG_VERSION"))
    };
}

mod carrier;
pub mod control;
mod engine;
// Not part of what users of this crate may rely on: for fuzzing.
#[cfg(feature = "harness")]
#[doc(hidden)]
#[path = "../tests/support/harness.rs"]
pub mod harness;
pub mod options;
mod session;
#[cfg(feature = "harness")]
#[doc(hidden)]
#[path = "../tests/support/simulated_server.rs"]
pub mod simulated_server;

pub use engine::{Clock, storage};
