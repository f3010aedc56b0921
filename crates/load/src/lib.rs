//! What clients ask: a load generator for memcached and Redis.
//!
//! [`LoadClient`] holds connections, spread over worker threads with a poller each, and runs phases of load over
//! them: in a closed loop (the next operation starts when an earlier one has completed) or in an open one (operations
//! start at times fixed beforehand, and latency counts from those, so that a slow server cannot hide its slowness by
//! slowing the generator down). Values are checked against what was written. [`NullResponder`] answers everything at
//! once, to find out what the generator itself can do.

mod arrivals;
mod client;
mod clock;
pub mod config;
mod connection;
mod data_set;
mod datagrams;
mod distribution;
mod error;
mod exchange;
mod key_space;
mod keys;
mod ledger;
mod monitor;
mod null;
mod operation;
mod phase;
// Not part of what users of this crate may rely on: its parsers are tried from outside.
#[doc(hidden)]
pub mod protocol;
mod random;
mod result;
mod run;
mod sizes;
mod statistics;
mod tls;
mod values;
mod worker;
mod worker_phase;

pub use client::LoadClient;
#[doc(hidden)]
#[cfg(any(test, feature = "harness"))]
pub use datagrams::{Silent, Tally};
pub use error::Error;
pub use monitor::Interval;
pub use null::NullResponder;
#[doc(hidden)]
pub use null::{Answerer, Unread};
pub use operation::Operation;
pub use result::{LatencyHistogram, OperationCounts, PhaseResult};
