//! Power meters, one file each: watts and joules of packages, memory, accelerators, servers and outlets.
//!
//! Two columns: `power_watts{domain,meter}` of what gives watts, and `energy_joules_total{domain,meter}` of what counts
//! energy: joules since the first reading, corrected where a counter begins again. The counters of processors are read at
//! each tick; whatever may take longer than that has a thread of its own (`background.rs`), whose latest value a tick takes.

mod background;
mod command;
mod energy;
mod file;
mod hwmon;
mod ipmi;
mod ipmi_device;
mod nvml;
mod powercap;
mod rapl_perf;
mod sheet;
pub mod snmp;
mod spec;

use std::collections::HashSet;

use self::background::{Background, Pace, join};
use self::sheet::{Channel, Sheet};
pub use self::spec::{Measured, MeterSpec, Quantity, StripReading};
use crate::clock;
use crate::host::Host;
use crate::probes::Probe;
use crate::readers::{MissingReader, Reader, Registration};

pub(crate) const REGISTRATION: Registration = Registration {
    name: "power",
    build,
};

/// How the reason begins of a meter that this host does not have, rather than one that cannot be read.
const ABSENT: &str = "none here: ";

/// Reads a meter into its sheet.
trait Meter: Send {
    /// One reading. What is not said of a channel is missing.
    fn read(&mut self, sheet: &mut Sheet);

    /// What went wrong so far, where the meter keeps that itself.
    fn complaint(&self) -> String {
        String::new()
    }
}

/// What a meter says of itself.
#[derive(Clone)]
struct About {
    /// As in the label of its columns.
    meter: &'static str,
    /// Tells it from others of its kind.
    which: String,
    needs: &'static str,
    /// What is worth knowing.
    note: String,
}

impl About {
    fn new(meter: &'static str, needs: &'static str) -> Self {
        Self {
            meter,
            which: String::new(),
            needs,
            note: String::new(),
        }
    }

    fn probe(&self, columns: Vec<String>) -> Probe {
        let name = if self.which.is_empty() {
            format!("power:{}", self.meter)
        } else {
            format!("power:{}:{}", self.meter, self.which)
        };
        let mut probe = Probe::new(name, self.needs, columns);
        probe.note(&self.note);
        probe
    }

    fn missing(&self, reason: impl AsRef<str>) -> Box<dyn Reader> {
        let columns = self.expected().map(|channel| channel.column(self.meter));
        let probe = self.probe(columns.into_iter().collect());
        Box::new(MissingReader(probe.missing(reason)))
    }

    /// What every meter of the kind gives that works, whatever else.
    fn expected(&self) -> Option<Channel> {
        match self.meter {
            "rapl_powercap" | "rapl_perf" => Some(Channel::energy("package-0", powercap::COUNTER)),
            "nvml" => Some(Channel::energy("gpu-0", nvml::COUNTER)),
            "ipmi_dcmi" | "hwmon" => Some(Channel::watts("server")),
            _ => None,
        }
    }
}

/// A meter that was found, before it is read.
struct Found {
    about: About,
    channels: Vec<Channel>,
    meter: Box<dyn Meter>,
}

impl Found {
    /// To be read at each tick.
    fn at_each_tick(self) -> Box<dyn Reader> {
        let sheet = Sheet::new(self.about.meter, &self.channels);
        Box::new(Direct {
            about: self.about,
            meter: self.meter,
            sheet,
        })
    }

    /// To be read by a thread of its own.
    fn beside(self, pace: Pace) -> Box<dyn Reader> {
        let sheet = Sheet::new(self.about.meter, &self.channels);
        let columns = sheet.columns().to_vec();
        match Background::start(self.meter, sheet, pace) {
            Ok(background) if background.has_answered() => Box::new(Beside {
                about: self.about,
                columns,
                pace,
                background,
            }),
            Ok(background) => {
                let (complaint, _) = background.account();
                Box::new(MissingReader(self.about.probe(columns).missing(complaint)))
            }
            Err(error) => self.about.missing(error.to_string()),
        }
    }
}

fn build(host: &Host) -> Vec<Box<dyn Reader>> {
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
            MeterSpec::Snmp { .. } => "snmp",
            MeterSpec::File { .. } => "file",
            MeterSpec::Command { .. } => "command",
        };
        return About::new(meter, "a meter that can be").missing(reason);
    }
    match spec {
        MeterSpec::Snmp {
            address,
            port,
            community,
            readings,
            timeout_seconds,
            ..
        } => snmp::build(
            address,
            *port,
            community,
            readings,
            *timeout_seconds,
            spec.interval(),
        ),
        MeterSpec::File { path, measured, .. } => file::build(path, measured, spec.interval()),
        MeterSpec::Command {
            arguments,
            measured,
            timeout_seconds,
            ..
        } => command::build(arguments, measured, *timeout_seconds, spec.interval()),
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
                return Box::new(MissingReader(probes.swap_remove(0).missing(reason)))
                    as Box<dyn Reader>;
            }
            taken.extend(columns);
            reader
        })
        .collect()
}

/// A meter that a tick reads itself.
struct Direct {
    about: About,
    meter: Box<dyn Meter>,
    sheet: Sheet,
}

impl Reader for Direct {
    fn probes(&self) -> Vec<Probe> {
        let complaint = join(self.meter.complaint(), self.sheet.complaint());
        let probe = self.about.probe(self.sheet.columns().to_vec());
        vec![probe.untrusted_if(complaint)]
    }

    fn read(&mut self, row: &mut [f64]) {
        self.sheet.begin(clock::monotonic());
        self.meter.read(&mut self.sheet);
        self.sheet.write(row);
    }
}

/// A meter that is read beside the ticks.
struct Beside {
    about: About,
    columns: Vec<String>,
    pace: Pace,
    background: Background,
}

impl Reader for Beside {
    fn probes(&self) -> Vec<Probe> {
        let (complaint, seconds) = self.background.account();
        let mut probe = self.about.probe(self.columns.clone());
        probe.note(format!(
            "read every {} beside the ticks, which takes {}",
            in_words(self.pace.interval.as_secs_f64()),
            in_words(seconds)
        ));
        vec![probe.untrusted_if(complaint)]
    }

    fn read(&mut self, row: &mut [f64]) {
        self.background.write(row, clock::monotonic());
    }
}

fn in_words(seconds: f64) -> String {
    if seconds < 0.001 {
        format!("{:.0} us", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else {
        format!("{seconds} s")
    }
}

#[cfg(test)]
mod tests;
