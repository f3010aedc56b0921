//! Kernels that move or execute a known amount: what this host gives when no software is in the way.
//!
//! Every measurement works the same way ([`team`]): one thread a core, pinned, prepares its own memory, all start
//! each round together, and each round's amount is known exactly beforehand. The time of a round runs from the first
//! start to the last end, so a thread that was held up makes the round slower rather than go unseen.
//!
//! | measurement | amount per round | after |
//! |---|---|---|
//! | [`instructions`] | instructions of an assembly loop | |
//! | [`bandwidth`] | bytes read, written or copied | McCalpin's STREAM |
//! | [`latency`] | dependent loads over a random cycle | lmbench `lat_mem_rd`, multichase |
//! | [`loopback`] | bytes through one TCP connection | netperf `TCP_STREAM` |
//!
//! Two more run beside whatever is measured, one thread a core: [`speedometer`] takes how fast cores are, [`stalls`]
//! how much of the time they stood still. [`awake`] keeps cores from sleeping meanwhile.
#![deny(missing_docs)]

pub mod attendants;
pub mod awake;
pub mod bandwidth;
pub mod clock;
pub mod instructions;
pub mod latency;
pub mod loopback;
pub mod memory;
pub mod speedometer;
pub mod stalls;
pub mod team;

mod error;

pub use error::Error;

/// The result of a measurement in this crate.
pub type Result<T> = std::result::Result<T, Error>;
