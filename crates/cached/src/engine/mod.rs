//! Commands on items: a command and the storage in, a reply out. Nothing here knows of sockets, threads or files.
//!
//! * [`context`]: what a command is carried out with. [`execute`], [`meta`], [`binary`]: the commands of each protocol,
//!   under the conditions in [`conditions`].
//! * [`storage`]: how a worker reaches the partitions.
//! * [`state`]: what all workers share; [`statistics`]: what `stats` writes of it, from [`counters`].

pub(crate) mod binary;
pub(crate) mod client_memory;
pub(crate) mod clock;
mod conditions;
pub(crate) mod context;
pub(crate) mod counters;
pub(crate) mod execute;
mod meta;
pub(crate) mod state;
pub(crate) mod statistics;
pub mod storage;

pub use clock::Clock;
pub(crate) use conditions::Outcome;
pub(crate) use context::{After, Context, Gather};
pub(crate) use counters::{Count, Counters};
pub(crate) use state::{Certificates, ServerState};
pub(crate) use statistics::StorageTotals;
pub(crate) use storage::{Partitions, Read, Storage};
