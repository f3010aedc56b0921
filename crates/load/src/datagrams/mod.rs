//! Load by datagrams, in a closed loop: so many datagrams are on their way all the time, each with one request in
//! memcached's frame, or with many. What is not answered in time is lost, which counts as an error.

mod flow;
#[cfg(feature = "harness")]
mod harness;
mod queue;
mod run;
mod window;

pub(crate) use flow::{Flow, Link};
#[cfg(feature = "harness")]
pub use harness::{Silent, Tally};
pub(crate) use queue::{Attached, Queue, request_bytes_max};
pub(crate) use run::Run;
pub(crate) use window::SLOTS_MAX;
