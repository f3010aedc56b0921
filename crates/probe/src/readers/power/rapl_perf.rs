//! The energy of processors as perf events have it: the events of the device `power`
//! (arch/x86/events/rapl.c, Documentation/ABI/testing/sysfs-bus-event_source-devices-events).

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::energy::Counter;
use super::found::Found;
use super::meter::{ABSENT, About, Meter};
use super::powercap::{self, MOST_WATTS, UNTIL_IT_MOVES};
use super::sheet::{Channel, Sheet, distinct};
use crate::host::Host;
use crate::readers::perf::access::Access;
use crate::readers::perf::open::open_uncore;

const NEEDS: &str = "CAP_PERFMON, or kernel.perf_event_paranoid <= 0";
const FOLDER: &str = "sys/bus/event_source/devices/power";

/// Event, and what powercap calls the same: `gpu` is the second power plane, which it names after what it is not.
const EVENTS: [(&str, &str); 5] = [
    ("energy-pkg", "package"),
    ("energy-cores", "core"),
    ("energy-gpu", "uncore"),
    ("energy-ram", "dram"),
    ("energy-psys", "psys"),
];

/// How an event is opened: device, event, CPU.
type Open = fn(u32, u64, u32) -> Result<OwnedFd, Errno>;

struct RaplPerf {
    files: Vec<OwnedFd>,
}

struct Event {
    part: &'static str,
    config: u64,
    joules: f64,
}

/// The events that can be opened, or why there are none.
pub(super) fn find(host: &Host) -> Result<Found, (About, String)> {
    let about =
        About::new("rapl_perf", NEEDS).expecting(&Channel::energy("package-0", powercap::COUNTER));
    if !host.perf {
        return Err((about, "switched off".to_owned()));
    }
    if host.is_live() {
        find_with(host, about, open_uncore)
    } else {
        let reason = match device(host) {
            Some(_) => "a recorded tree has no counters to open".to_owned(),
            None => absent(),
        };
        Err((about, reason))
    }
}

fn absent() -> String {
    format!("{ABSENT}no /{FOLDER} (a guest, or another kind of processor)")
}

fn find_with(host: &Host, mut about: About, open: Open) -> Result<Found, (About, String)> {
    let Some(kind) = device(host) else {
        return Err((about, absent()));
    };
    let events = events(host);
    let places = places(host, &host.cpus(&format!("{FOLDER}/cpumask")));
    let (mut channels, mut files): (Vec<Channel>, Vec<OwnedFd>) = Default::default();
    let mut refused = None;
    for event in &events {
        for (cpu, place) in &places {
            match open(kind, event.config, *cpu) {
                Ok(file) => {
                    let domain = match event.part {
                        "psys" => "psys".to_owned(),
                        part => format!("{part}-{place}"),
                    };
                    let counter = Counter {
                        joules: event.joules,
                        most_watts: MOST_WATTS,
                        moves_always: true,
                    };
                    channels.push(Channel::energy(distinct(&domain, &channels), counter));
                    files.push(file);
                }
                Err(errno) => refused = Some(errno),
            }
        }
    }
    if files.is_empty() {
        let reason = match refused {
            Some(errno) => Access::of(host).explain(errno, true),
            None => format!("/{FOLDER} lists no energy event, or no CPU that counts it"),
        };
        return Err((about, reason));
    }
    about.note = UNTIL_IT_MOVES.to_owned();
    Ok(Found {
        about,
        channels,
        meter: Box::new(RaplPerf { files }),
    })
}

fn device(host: &Host) -> Option<u32> {
    host.number(&format!("{FOLDER}/type"))
}

fn events(host: &Host) -> Vec<Event> {
    let text = |name: &str| host.text(&format!("{FOLDER}/events/{name}"));
    EVENTS
        .iter()
        .filter_map(|(name, part)| {
            let config = config(&text(name)?)?;
            let unit = text(&format!("{name}.unit"))?;
            let scale: f64 = text(&format!("{name}.scale"))?.parse().ok()?;
            (unit == "Joules" && scale.is_finite() && scale > 0.0).then_some(Event {
                part,
                config,
                joules: scale,
            })
        })
        .collect()
}

/// The number of `event=0x02`.
fn config(text: &str) -> Option<u64> {
    let number = text.strip_prefix("event=")?;
    match number.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => number.parse().ok(),
    }
}

/// Each CPU that answers for a package, with the package's number; with the die's too where a package has several.
fn places(host: &Host, cpus: &[u32]) -> Vec<(u32, String)> {
    let topology = |cpu: u32, file: &str| -> Option<u32> {
        host.number(&format!("sys/devices/system/cpu/cpu{cpu}/topology/{file}"))
    };
    let packages: Vec<Option<u32>> = cpus
        .iter()
        .map(|cpu| topology(*cpu, "physical_package_id"))
        .collect();
    cpus.iter()
        .zip(&packages)
        .enumerate()
        .map(|(position, (cpu, package))| {
            let package = package.unwrap_or(position as u32);
            let alone = packages
                .iter()
                .filter(|other| **other == Some(package))
                .count()
                <= 1;
            match topology(*cpu, "die_id").filter(|_| !alone) {
                Some(die) => (*cpu, format!("{package}-die-{die}")),
                None => (*cpu, package.to_string()),
            }
        })
        .collect()
}

impl Meter for RaplPerf {
    fn read(&mut self, sheet: &mut Sheet) {
        for (channel, file) in self.files.iter().enumerate() {
            let mut bytes = [0; 8];
            match rustix::io::read(file, &mut bytes) {
                // The kernel keeps 64 bits: it does not begin again within the life of a machine.
                Ok(8) => sheet.say(channel, u64::from_ne_bytes(bytes) as f64, None),
                Ok(_) => sheet
                    .fail(|| "an event of energy gave no number: its CPU went offline".to_owned()),
                Err(errno) => sheet.fail(|| {
                    format!(
                        "an event of energy cannot be read: {}",
                        std::io::Error::from(errno)
                    )
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests;
