//! One file a reader; a new one is found through [`READERS`].

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
mod reader;

pub(crate) use reader::MissingReader;
pub use reader::{Reader, Registration};

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

#[cfg(test)]
pub(crate) mod testing;
