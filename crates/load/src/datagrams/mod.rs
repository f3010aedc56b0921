//! Load by datagrams, in a closed loop: so many datagrams are on their way all the time, each with one request in
//! memcached's frame, or with many. What is not answered in time is lost, which counts as an error.

mod flow;
mod queue;
mod run;
#[cfg(feature = "harness")]
mod tests;
mod window;

pub(crate) use flow::{Flow, Link};
pub(crate) use queue::{Attached, Queue, request_bytes_max};
pub(crate) use run::Run;
#[cfg(feature = "harness")]
pub use tests::{Silent, Tally};
pub(crate) use window::SLOTS_MAX;
