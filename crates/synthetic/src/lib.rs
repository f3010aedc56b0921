//! `rackscope-synthetic`: a server whose limit is known because every request does a known kind of work.
//!
//! It speaks memcached's text protocol so that the load generator, the squeezes and the verdicts of rackscope can be
//! tried on it as on a real system, but it stores nothing: a `get` does the work of `--on-read` and answers with a
//! value of a fixed size, a `set` does that of `--on-update`. One thread a connection, blocking: what is measured
//! is the work, and a thread that waits for a disk or a lock keeps no other from working.
//!
//! [`recipe`] says which kinds of work there are, [`work`] does them.
#![deny(missing_docs)]

pub mod arguments;
pub mod recipe;
pub mod server;
pub mod work;

mod connection;
mod error;
mod shared;

pub use error::Error;
