//! One file a reader; a new one is found through [`READERS`].

mod cgroup;
mod cpu;
mod disk;
mod frequency;
mod late;
mod memory;
mod network;
mod perf;
pub mod power;
mod pressure;
mod process;
mod reader;

use crate::host::Host;

pub use reader::Reader;

/// Sets up a reader of a host, or several where there are several things to follow. What is missing is said by
/// [`Reader::probes`].
type Build = fn(&Host) -> Vec<Box<dyn Reader>>;

/// All readers, in the order in which a tick reads them: what must be close to the tick first, what may take long last.
pub(crate) const READERS: &[Build] = &[
    cpu::build,
    memory::build,
    disk::build,
    network::build,
    pressure::build,
    process::build,
    cgroup::build,
    perf::build,
    frequency::build,
    power::build,
];

#[cfg(test)]
pub(crate) mod tests;
