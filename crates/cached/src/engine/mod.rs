//! Commands on items: a command and the storage in, a reply out. Nothing here knows of sockets, threads or files.
//!
//! * [`context`]: what a command is carried out with. [`execute`], [`meta`], [`binary`]: the commands of each protocol,
//!   under the conditions in [`conditions`]; [`dump`] and [`administer`]: those for operators.
//! * [`storage`]: how a worker reaches the partitions.
//! * [`state`]: what all workers share; [`statistics`]: what `stats` writes of it, from [`counters`], [`clients`],
//!   [`prefixes`] and [`hot_keys`].
//! * [`events`]: the lines that `watch` asks for.

mod administer;
pub(crate) mod binary;
pub(crate) mod clients;
pub(crate) mod clock;
mod conditions;
pub(crate) mod context;
pub(crate) mod counters;
mod dump;
pub(crate) mod events;
pub(crate) mod execute;
pub(crate) mod hot_keys;
mod meta;
mod prefixes;
pub(crate) mod state;
pub(crate) mod statistics;
pub(crate) mod storage;

pub(crate) use clients::{Client, Seat};
pub(crate) use clock::Clock;
pub(crate) use conditions::Outcome;
pub(crate) use context::{After, Context, Gather};
pub(crate) use counters::{Count, Counters};
pub(crate) use state::{Certificates, ServerState};
pub(crate) use statistics::StorageTotals;
pub(crate) use storage::{Partitions, Read, Storage};
