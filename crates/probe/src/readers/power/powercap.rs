//! The energy of processors as the kernel's power capping framework has it: `/sys/class/powercap/intel-rapl:*`, which AMD's
//! processors have too (Documentation/power/powercap/powercap.rst).

use std::fs;

use super::energy::Counter;
use super::found::Found;
use super::meter::{ABSENT, About};
use super::number_files::NumberFile;
use super::sheet::{Channel, distinct};
use crate::host::Host;
use crate::parse;
use crate::probes::join;
use crate::source::Source;

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
    let (mut channels, mut files): (Vec<Channel>, Vec<NumberFile>) = Default::default();
    let mut unread = String::new();
    for name in &names {
        match open(host, name, &names) {
            Ok((domain, file)) => {
                channels.push(Channel::energy(distinct(&domain, &channels), COUNTER));
                files.push(file);
            }
            Err(reason) if unread.is_empty() => unread = reason,
            Err(_) => {}
        }
    }
    if files.is_empty() {
        return Err((about, unread));
    }
    about.note = join(UNTIL_IT_MOVES.to_owned(), &unread);
    Ok(Found {
        about,
        channels,
        meter: Box::new(files),
    })
}

/// `intel-rapl:0`, `intel-rapl:0:1` and so on, in order.
fn zone_names(host: &Host) -> Vec<String> {
    let mut names = host.names(FOLDER);
    names.retain(|name| name.starts_with("intel-rapl") && name.contains(':'));
    names.sort_by_cached_key(|name| {
        let numbers = name.split(':').skip(1);
        let numbers: Vec<u32> = numbers.filter_map(|number| number.parse().ok()).collect();
        (name.split(':').next().map(str::to_owned), numbers)
    });
    names
}

/// What a zone measures, and its counter.
fn open(host: &Host, zone: &str, zones: &[String]) -> Result<(String, NumberFile), String> {
    let name = |zone: &str| {
        let path = host.path(&format!("{FOLDER}/{zone}/name"));
        fs::read_to_string(&path)
            .map(|text| text.trim().to_owned())
            .map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let parent = zone
        .rsplit_once(':')
        .map(|(parent, _)| parent)
        .filter(|parent| zones.iter().any(|name| name == parent));
    let own = name(zone)?;
    let parent = parent.map(name).transpose()?;
    let range: Option<u64> = host.number(&format!("{FOLDER}/{zone}/max_energy_range_uj"));
    let path = host.path(&format!("{FOLDER}/{zone}/energy_uj"));
    let mut source = Source::open_small(path).map_err(|error| advise(error.to_string()))?;
    // A file may open and yet not be readable, as where a container's runtime hides it.
    if !source.read(|text| parse::only_number(text, "energy").map(|_| ())) {
        return Err(advise(source.complaint()));
    }
    let file = NumberFile {
        source,
        scale: 1.0,
        range: range.map(|range| range as f64),
    };
    Ok((domain(&own, parent.as_deref()), file))
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
