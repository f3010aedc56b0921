//! What the host did: readers of `/proc`, `/sys`, cgroups, pressure stall information and perf events, and a thread
//! that samples them on absolute ticks.
//!
//! A *probe* is a source of samples. Each says what it needs, whether it can be trusted here and, when it cannot be
//! read, why. What could not be read is not a number: a row holds NaN there, never zero.
//!
//! Every reader takes a root folder ([`Host::root`]), so that tests feed it recorded trees of other kinds of machine.
//!
//! ```no_run
//! use probe::{Host, Sampler};
//! use std::time::Duration;
//!
//! let host = Host { interval: Duration::from_millis(20), ..Host::live() };
//! let mut sampler = Sampler::new(&host)?;
//! sampler.start()?;
//! std::thread::sleep(Duration::from_secs(1));
//! let summary = sampler.stop()?;
//! println!("{} rows of {} columns", sampler.drain().timestamps.len(), sampler.columns().len());
//! println!("{} ticks missed", summary.missed_ticks);
//! # Ok::<(), probe::ProbeError>(())
//! ```

mod clock;
mod error;
mod host;
mod parse;
mod probes;
pub mod readers;
mod ring;
mod sampler;
mod set;
mod source;

pub use error::ProbeError;
pub use host::Host;
pub use probes::{Probe, Status};
pub use readers::power::snmp::message as snmp;
pub use readers::power::{Measured, MeterSpec, Quantity, StripReading};
pub use ring::Rows;
pub use sampler::{Sampler, Summary};
pub use set::ReaderSet;

/// What the probes would say of `host`, without sampling it.
pub fn list_probes(host: &Host) -> Vec<Probe> {
    ReaderSet::new(host).probes().to_vec()
}
