//! Power meters, one file each: watts and joules of packages, memory, accelerators, servers and outlets.
//!
//! Two columns: `power_watts{domain,meter}` of what gives watts, and `energy_joules_total{domain,meter}` of what counts
//! energy: joules since the first reading, corrected where a counter begins again. The counters of processors are read at
//! each tick; whatever may take longer than that has a thread of its own (`background.rs`), whose latest value a tick takes.

mod background;
mod command;
mod energy;
mod file;
mod found;
mod hwmon;
mod ipmi;
mod ipmi_device;
mod meter;
mod number_files;
mod nvml;
mod powercap;
mod rapl_perf;
mod sheet;
pub mod snmp;
mod spec;

use std::collections::HashSet;

use self::meter::About;
pub use self::spec::{Measured, MeterSpec, Quantity, StripReading};
use crate::host::Host;
use crate::readers::Reader;

pub(super) fn build(host: &Host) -> Vec<Box<dyn Reader>> {
    let mut readers = Vec::new();
    if host.local_meters {
        let processors = rapl(host);
        let has_rapl = processors
            .iter()
            .any(|reader| reader.probes()[0].status != crate::Status::Missing);
        readers.extend(processors);
        readers.extend([
            nvml::build(host),
            ipmi::build(host),
            hwmon::build(host, has_rapl),
        ]);
    }
    readers.extend(host.meters.iter().map(named));
    without_duplicates(readers)
}

/// The counters of processors, by whichever of two ways this process may use; never by both, which would count twice.
fn rapl(host: &Host) -> Vec<Box<dyn Reader>> {
    let (powercap, reason) = match powercap::find(host) {
        Ok(found) => return vec![found.at_each_tick()],
        Err(missing) => missing,
    };
    match rapl_perf::find(host) {
        Ok(found) => vec![found.at_each_tick()],
        Err((perf, why)) => vec![powercap.missing(reason), perf.missing(why)],
    }
}

fn named(spec: &MeterSpec) -> Box<dyn Reader> {
    if let Err(reason) = spec.check() {
        let meter = match spec {
            MeterSpec::Snmp(_) => "snmp",
            MeterSpec::File(_) => "file",
            MeterSpec::Command(_) => "command",
        };
        return About::new(meter, "a valid description of the meter").missing(reason);
    }
    match spec {
        MeterSpec::Snmp(strip) => snmp::build(strip),
        MeterSpec::File(file) => file::build(file),
        MeterSpec::Command(command) => command::build(command),
    }
}

/// A column is one meter's alone: the second that would give it is left out, with the reason.
fn without_duplicates(readers: Vec<Box<dyn Reader>>) -> Vec<Box<dyn Reader>> {
    let mut taken = HashSet::new();
    readers
        .into_iter()
        .map(|reader| {
            let mut probes = reader.probes();
            let columns: Vec<String> = probes
                .iter()
                .filter(|probe| probe.status != crate::Status::Missing)
                .flat_map(|probe| probe.columns.clone())
                .collect();
            if let Some(twice) = columns.iter().find(|column| taken.contains(*column)) {
                let reason = format!(
                    "another meter gives {twice} already: name the domain of one (domain=...)"
                );
                return probes.swap_remove(0).missing_reader(reason);
            }
            taken.extend(columns);
            reader
        })
        .collect()
}

#[cfg(test)]
mod tests;
