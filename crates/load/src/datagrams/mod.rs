//! Load by datagrams, each with one request in memcached's frame, or with many. In a closed loop so many datagrams are on
//! their way all the time; in an open one at most so many, and a datagram holds what is due together, however few that are.
//! What is not answered in time is lost, which counts as an error.

mod flow;
#[cfg(test)]
mod open_loop;
mod queue;
mod run;
#[cfg(any(test, feature = "harness"))]
mod tests;
mod window;

pub(crate) use flow::{Flow, Link};
pub(crate) use queue::{Attached, Queue, request_bytes_max};
pub(crate) use run::Run;
#[cfg(any(test, feature = "harness"))]
pub use tests::{Silent, Tally};
pub(crate) use window::SLOTS_MAX;
