//! The cache engine: memcached's protocols over epoll or io_uring, items in [`mica`] partitions.
//!
//! * [`arguments`]: the command line, as memcached's where it means the same.
//! * [`server`]: control: listens, hands connections to workers, waits for the signal to end.
//! * `worker` and `connection`: data: a thread with its own epoll instance, its connections, and two buffers that
//!   all of them share, so that an idle connection holds no memory for bytes.
//! * `datagrams`: the same for what comes by UDP, one request a datagram or many, from the kernel or past it (AF_XDP,
//!   which `attach` sets up).
//! * `ring_worker` and `ring_connection`: the same over io_uring; `transport` chooses.
//! * [`tls`]: what stands between the two where what is said is encrypted; `any_connection`: either kind.
//! * `conversation`: bytes in, commands carried out in bursts, answers out; whatever carries them.
//! * [`memory_file`]: what outlives the process, where that is asked for.
//! * `roster`: who is connected. `watch`: who is told what happens.
//! * `hot_keys`: which keys are used most, where that is asked for.
//! * `accounts`, [`process`], `metrics`: what a service manager, an operator and Prometheus expect.
//! * `execute`, `store`, `meta`, `binary`: a command and the storage in, an answer out; no sockets. So are
//!   `administer`, `dump`, `report`, `settings`, `classes` and `prefixes`, for those who look after a server.
//! * `storage`: who may touch a partition. With one worker it owns all of them; with more, either each owns its share
//!   of the keys and a connection moves to the worker that its next command is for (EREW; CREW where all may read), or
//!   all share them and whoever writes takes a lock (CRCW).

/// What clients are told: the memcached whose protocol is spoken, because clients choose their dialect by it, and
/// this program's version.
macro_rules! protocol_version {
    () => {
        concat!("1.6.18-rackscope-", env!("CARGO_PKG_VERSION"))
    };
}

mod accounts;
pub mod address;
mod administer;
mod any_connection;
pub mod arguments;
mod attach;
mod binary;
mod classes;
mod clock;
mod connection;
mod conversation;
mod counters;
mod datagrams;
mod dump;
pub mod error;
mod execute;
// Not part of what users of this crate may rely on.
#[doc(hidden)]
pub mod harness;
mod hot_keys;
mod layout;
mod listen;
pub mod memory_file;
mod meta;
mod metrics;
pub mod options;
mod prefixes;
pub mod process;
mod report;
mod ring_connection;
mod ring_worker;
mod roster;
pub mod server;
mod settings;
mod storage;
mod store;
pub mod tls;
mod transport;
mod watch;
mod worker;
