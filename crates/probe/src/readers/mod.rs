//! One file a reader; a new one is found through [`READERS`].

use crate::host::Host;
use crate::probes::Probe;

mod cgroup;
mod cpu;
mod disk;
mod frequency;
mod memory;
mod network;
mod perf;
pub mod power;
mod pressure;
mod process;

/// Reads one kind of source into its stretch of a row.
pub trait Reader: Send {
    /// What this reader says of itself. The columns of the probes that are not missing, one after the other, are the
    /// columns of the row; neither they nor which probes are missing change after construction.
    fn probes(&self) -> Vec<Probe>;

    /// Fills the row, which holds NaN; what cannot be read stays NaN.
    fn read(&mut self, row: &mut [f64]);
}

/// How a reader is found.
pub struct Registration {
    /// The reader's name, which its probes carry too.
    pub name: &'static str,
    /// Sets up the reader, or several where there are several things to follow. What is missing is said by
    /// [`Reader::probes`].
    pub build: fn(&Host) -> Vec<Box<dyn Reader>>,
}

/// All readers, in the order in which a tick reads them: what must be close to the tick first, what may take long last.
pub const READERS: &[Registration] = &[
    cpu::REGISTRATION,
    memory::REGISTRATION,
    disk::REGISTRATION,
    network::REGISTRATION,
    pressure::REGISTRATION,
    process::REGISTRATION,
    cgroup::REGISTRATION,
    perf::REGISTRATION,
    frequency::REGISTRATION,
    power::REGISTRATION,
];

/// A reader of which everything is missing.
pub(crate) struct MissingReader(pub(crate) Probe);

impl Reader for MissingReader {
    fn probes(&self) -> Vec<Probe> {
        vec![self.0.clone()]
    }

    fn read(&mut self, _row: &mut [f64]) {}
}

#[cfg(test)]
pub(crate) mod testing;
