//! The energy of processors as perf events have it: the events of the device `power`
//! (arch/x86/events/rapl.c, Documentation/ABI/testing/sysfs-bus-event_source-devices-events).

use std::fs;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::energy::Counter;
use super::powercap::{MOST_WATTS, UNTIL_IT_MOVES, distinct};
use super::sheet::{Channel, Sheet};
use super::{ABSENT, About, Found, Meter};
use crate::host::Host;
use crate::parse;
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
    let about = About::new("rapl_perf", NEEDS);
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
    let cpus = fs::read_to_string(host.path(&format!("{FOLDER}/cpumask")))
        .ok()
        .and_then(|text| parse::cpu_list(&text))
        .unwrap_or_default();
    let places = places(host, &cpus);
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
                    let taken = |domain: &str| channels.iter().any(|known| known.domain == domain);
                    let counter = Counter {
                        joules: event.joules,
                        most_watts: MOST_WATTS,
                        moves_always: true,
                    };
                    channels.push(Channel::energy(distinct(&domain, taken), counter));
                    files.push(file);
                }
                Err(errno) => refused = Some(errno),
            }
        }
    }
    if files.is_empty() {
        let reason = match refused {
            Some(errno) => Access::of(host).explain(errno, true),
            None => format!("/{FOLDER} names no event of energy, or no CPU that counts it"),
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
    let text = fs::read_to_string(host.path(&format!("{FOLDER}/type"))).ok()?;
    text.trim().parse().ok()
}

fn events(host: &Host) -> Vec<Event> {
    let text = |name: &str| fs::read_to_string(host.path(&format!("{FOLDER}/events/{name}"))).ok();
    EVENTS
        .iter()
        .filter_map(|(name, part)| {
            let config = config(text(name)?.trim())?;
            let unit = text(&format!("{name}.unit"))?;
            let scale: f64 = text(&format!("{name}.scale"))?.trim().parse().ok()?;
            (unit.trim() == "Joules" && scale.is_finite() && scale > 0.0).then_some(Event {
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
    let topology = |cpu: u32, file: &str| {
        let path = host.path(&format!("sys/devices/system/cpu/cpu{cpu}/topology/{file}"));
        let text = fs::read_to_string(path).ok()?;
        text.trim().parse::<u32>().ok()
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
mod tests {
    use super::*;
    use crate::readers::testing::Tree;
    use crate::{Status, readers::testing::sample};
    use std::cell::RefCell;
    use std::collections::HashMap;
    use std::io::{PipeWriter, Write, pipe};

    const SCALE: &str = "2.3283064365386962890625e-10\n";

    /// Two packages of which CPU 0 and CPU 28 answer, with energy of package and memory.
    fn server() -> Tree {
        let tree = Tree::with(&format!("{FOLDER}/type"), "18\n");
        tree.write(&format!("{FOLDER}/cpumask"), "0,28\n");
        for (event, code) in [("energy-pkg", "0x02"), ("energy-ram", "0x03")] {
            let path = format!("{FOLDER}/events/{event}");
            tree.write(&path, &format!("event={code}\n"));
            tree.write(&format!("{path}.scale"), SCALE);
            tree.write(&format!("{path}.unit"), "Joules\n");
        }
        for (cpu, package) in [(0, 0), (28, 1)] {
            let path = format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
            tree.write(&path, &format!("{package}\n"));
        }
        tree
    }

    thread_local! {
        static OPENED: RefCell<HashMap<(u32, u64, u32), PipeWriter>> = RefCell::default();
    }

    /// A pipe in the place of each event.
    fn pipes(kind: u32, config: u64, cpu: u32) -> Result<OwnedFd, Errno> {
        let (reader, writer) = pipe().unwrap();
        OPENED.with_borrow_mut(|opened| opened.insert((kind, config, cpu), writer));
        Ok(reader.into())
    }

    fn count(config: u64, cpu: u32, joules: f64) {
        let count = (joules * f64::from(2_u32.pow(16)).powi(2)) as u64;
        OPENED.with_borrow_mut(|opened| {
            let event = opened.get_mut(&(18, config, cpu)).unwrap();
            event.write_all(&count.to_ne_bytes()).unwrap();
        });
    }

    #[test]
    fn each_package_is_counted_by_the_cpu_that_answers_for_it() {
        let host = server();
        let about = About::new("rapl_perf", NEEDS);
        let mut reader = find_with(&host.host(), about, pipes)
            .map_err(|(_, reason)| reason)
            .unwrap()
            .at_each_tick();
        let parts = [(2, 0), (2, 28), (3, 0), (3, 28)];
        for (config, cpu) in parts {
            count(config, cpu, 1000.0);
        }
        assert!(
            sample(&mut *reader)
                .0
                .iter()
                .all(|(_, joules)| joules.is_nan())
        );
        for ((config, cpu), joules) in parts.into_iter().zip([50.0, 60.0, 7.0, 8.0]) {
            count(config, cpu, 1000.0 + joules);
        }
        let row = sample(&mut *reader);
        for (domain, joules) in [
            ("package-0", 50.0),
            ("package-1", 60.0),
            ("dram-0", 7.0),
            ("dram-1", 8.0),
        ] {
            let column = format!(r#"energy_joules_total{{domain="{domain}",meter="rapl_perf"}}"#);
            assert!((row.get(&column) - joules).abs() < 1e-6, "{column}");
        }
        assert_eq!(reader.probes()[0].status, Status::Ok);
    }

    fn refused(kind: u32, _: u64, _: u32) -> Result<OwnedFd, Errno> {
        assert_eq!(kind, 18);
        Err(Errno::ACCESS)
    }

    #[test]
    fn a_lack_of_rights_says_which() {
        let host = server();
        host.write("proc/sys/kernel/perf_event_paranoid", "2\n");
        let about = About::new("rapl_perf", NEEDS);
        let (about, reason) = find_with(&host.host(), about, refused).err().unwrap();
        assert!(reason.starts_with("not permitted"), "{reason}");
        assert!(about.needs.contains("perf_event_paranoid <= 0"));
    }

    #[test]
    fn several_dies_of_a_package_are_told_apart() {
        let host = server();
        for (cpu, die) in [(0, 0), (28, 1)] {
            let path = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            host.write(&format!("{path}/physical_package_id"), "0\n");
            host.write(&format!("{path}/die_id"), &format!("{die}\n"));
        }
        let places = places(&host.host(), &[0, 28]);
        let names: Vec<&str> = places.iter().map(|(_, place)| place.as_str()).collect();
        assert_eq!(names, ["0-die-0", "0-die-1"]);
    }

    /// The kernel's own clock stands in for energy: opened and read the same way.
    #[test]
    fn an_event_of_a_cpu_counts() {
        const SOFTWARE: u32 = 1;
        const CPU_CLOCK: u64 = 0;
        let file = match open_uncore(SOFTWARE, CPU_CLOCK, 0) {
            Ok(file) => file,
            Err(Errno::ACCESS | Errno::PERM | Errno::NOSYS) => {
                eprintln!("skipped: perf events are not permitted here");
                return;
            }
            Err(errno) => panic!("{errno}"),
        };
        let read = || {
            let mut bytes = [0; 8];
            assert_eq!(rustix::io::read(&file, &mut bytes), Ok(8));
            u64::from_ne_bytes(bytes)
        };
        let first = read();
        assert!(read() > first);
    }
}
