//! The energy of processors as the kernel's power capping framework has it: `/sys/class/powercap/intel-rapl:*`, which AMD's
//! processors have too (Documentation/power/powercap/powercap.rst).

use std::fs;

use super::background::join;
use super::energy::Counter;
use super::found::Found;
use super::meter::{ABSENT, About, Meter};
use super::sheet::{Channel, Sheet};
use crate::host::Host;
use crate::parse;
use crate::source::{Source, complaints};

const NEEDS: &str = "the right to read /sys/class/powercap/intel-rapl:*/energy_uj (only root has it since Linux 5.10)";
const FOLDER: &str = "sys/class/powercap";

/// No package takes as much; a counter that was set back would seem to.
pub(super) const MOST_WATTS: f64 = 5000.0;

/// Microjoules.
pub(super) const COUNTER: Counter = Counter {
    joules: 1e-6,
    most_watts: MOST_WATTS,
    moves_always: true,
};

/// A counter that nothing is connected to stands still, as the platform's does on many boards.
pub(super) const UNTIL_IT_MOVES: &str = "a counter is missing until it first moves";

struct Zone {
    channel: Channel,
    /// Where the counter begins again, in microjoules.
    range: Option<f64>,
    source: Source,
}

struct Powercap {
    zones: Vec<(Option<f64>, Source)>,
}

/// The zones that can be read, or why there are none.
pub(super) fn find(host: &Host) -> Result<Found, (About, String)> {
    let mut about =
        About::new("rapl_powercap", NEEDS).expecting(&Channel::energy("package-0", COUNTER));
    let mut names = zone_names(host);
    if names.is_empty() {
        let reason = format!(
            "{ABSENT}no intel-rapl below /{FOLDER} (a guest, another kind of processor, or the module intel_rapl_msr is not loaded)"
        );
        return Err((about, reason));
    }
    // The same package once more, by another way to its registers.
    if names.iter().any(|name| name.starts_with("intel-rapl:")) {
        names.retain(|name| !name.starts_with("intel-rapl-mmio:"));
    }
    let mut zones: Vec<Zone> = Vec::new();
    let mut unread = String::new();
    for name in &names {
        match open(host, name, &names, &zones) {
            Ok(zone) => zones.push(zone),
            Err(reason) if unread.is_empty() => unread = reason,
            Err(_) => {}
        }
    }
    if zones.is_empty() {
        return Err((about, unread));
    }
    about.note = join(UNTIL_IT_MOVES.to_owned(), unread);
    let (channels, zones) = zones
        .into_iter()
        .map(|zone| (zone.channel, (zone.range, zone.source)))
        .unzip();
    Ok(Found {
        about,
        channels,
        meter: Box::new(Powercap { zones }),
    })
}

/// `intel-rapl:0`, `intel-rapl:0:1` and so on, in order.
fn zone_names(host: &Host) -> Vec<String> {
    let entries = fs::read_dir(host.path(FOLDER)).into_iter().flatten();
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with("intel-rapl") && name.contains(':'))
        .collect();
    names.sort_by_cached_key(|name| {
        let numbers = name.split(':').skip(1);
        let numbers: Vec<u32> = numbers.filter_map(|number| number.parse().ok()).collect();
        (name.split(':').next().map(str::to_owned), numbers)
    });
    names
}

fn open(host: &Host, zone: &str, zones: &[String], before: &[Zone]) -> Result<Zone, String> {
    let path = |file: &str| host.path(&format!("{FOLDER}/{zone}/{file}"));
    let text = |zone: &str, file: &str| {
        let path = host.path(&format!("{FOLDER}/{zone}/{file}"));
        fs::read_to_string(&path)
            .map(|text| text.trim().to_owned())
            .map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let name = text(zone, "name")?;
    let parent = zone
        .rsplit_once(':')
        .map(|(parent, _)| parent)
        .filter(|parent| zones.iter().any(|name| name == parent));
    let parent = parent.map(|parent| text(parent, "name")).transpose()?;
    let range = fs::read(path("max_energy_range_uj"))
        .ok()
        .and_then(|text| parse::only_number(&text, "the range").ok())
        .map(|range| range as f64);
    let mut source =
        Source::open_small(path("energy_uj")).map_err(|error| advise(error.to_string()))?;
    // A file may open and yet not be readable, as where a container's runtime hides it.
    if !source.read(|text| parse::only_number(text, "energy").map(|_| ())) {
        return Err(advise(source.complaint()));
    }
    let domain = domain(&name, parent.as_deref());
    let taken = |domain: &str| before.iter().any(|zone| zone.channel.domain == domain);
    let domain = distinct(&domain, taken);
    Ok(Zone {
        channel: Channel::energy(domain, COUNTER),
        range,
        source,
    })
}

fn advise(reason: String) -> String {
    if reason.contains("ermission denied") {
        format!(
            "{reason}; run as root, or make it readable for all (chmod o+r), or allow perf events of the whole host"
        )
    } else {
        reason
    }
}

/// `package-0` and `psys` as they are; parts of a package with its number: `core-0`, `dram-1`.
fn domain(name: &str, parent: Option<&str>) -> String {
    match parent.and_then(|parent| parent.strip_prefix("package-")) {
        Some(number) => format!("{name}-{number}"),
        None => name.to_owned(),
    }
}

/// `domain`, or with the first number behind it that is free.
pub(super) fn distinct(domain: &str, taken: impl Fn(&str) -> bool) -> String {
    let numbered = (1..).map(|number| format!("{domain}-{number}"));
    std::iter::once(domain.to_owned())
        .chain(numbered)
        .find(|name| !taken(name))
        .unwrap_or_default()
}

impl Meter for Powercap {
    fn read(&mut self, sheet: &mut Sheet) {
        for (channel, (range, source)) in self.zones.iter_mut().enumerate() {
            source.read(|text| {
                let energy = parse::only_number(text, "energy")?;
                sheet.say(channel, energy as f64, *range);
                Ok(())
            });
        }
    }

    fn complaint(&self) -> String {
        complaints(self.zones.iter().map(|(_, source)| source))
    }
}
