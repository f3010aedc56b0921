//! Sensors of power and energy on the board, in supplies and accelerators: `/sys/class/hwmon`
//! (Documentation/hwmon/sysfs-interface.rst).
//!
//! Some ask a management controller or a slow bus for each reading, so they are read beside the ticks.

use std::time::Duration;

use super::background::Pace;
use super::energy::Counter;
use super::found::Found;
use super::meter::{ABSENT, About};
use super::number_files::NumberFile;
use super::sheet::{Channel, Gives, MOST_WATTS, distinct};
use crate::host::Host;
use crate::readers::Reader;
use crate::source::Source;

const NEEDS: &str = "a driver of a power sensor (acpi_power_meter, amdgpu, pmbus and others), and the right to read its files";
const FOLDER: &str = "sys/class/hwmon";

/// The firmware's meter of the whole server (ACPI 4.0, section 10.4).
const WHOLE_SERVER: &str = "power_meter";
/// The counters of AMD's processors once more.
const SAME_AS_RAPL: &str = "amd_energy";

/// More channels than this are the cores of a large processor one by one, or a mistake.
const MOST_CHANNELS: usize = 64;

const PACE: Pace = Pace {
    interval: Duration::from_millis(500),
    share: 10,
    patience: Duration::from_secs(3),
};

/// All sensors of the host; those that repeat the processors' own counters are left out where `has_rapl`.
pub(super) fn build(host: &Host, has_rapl: bool) -> Box<dyn Reader> {
    let mut about = About::new("hwmon", NEEDS).expecting(&Channel::watts("server"));
    match find(host, has_rapl) {
        Ok((channels, sources, note)) => {
            about.note = note;
            let found = Found {
                about,
                channels,
                meter: Box::new(sources),
            };
            if host.is_live() {
                found.in_background(PACE)
            } else {
                found.at_each_tick()
            }
        }
        Err(reason) => about.missing(reason),
    }
}

type Sensors = (Vec<Channel>, Vec<NumberFile>, String);

fn find(host: &Host, has_rapl: bool) -> Result<Sensors, String> {
    let (mut channels, mut sources): (Vec<Channel>, Vec<NumberFile>) = Default::default();
    let mut unread = String::new();
    for chip in chips(host) {
        let folder = host.path(&format!("{FOLDER}/{chip}"));
        let name = host.text(&format!("{FOLDER}/{chip}/name"));
        let name = name.unwrap_or_else(|| chip.clone());
        if name == SAME_AS_RAPL && has_rapl {
            continue;
        }
        let sensors = sensors(host, &chip);
        for sensor in &sensors {
            let label = host.text(&format!("{FOLDER}/{chip}/{}_label", sensor.stem));
            let domain = match label {
                Some(label) if !label.is_empty() => format!("{name}-{label}"),
                _ if name == WHOLE_SERVER => "server".to_owned(),
                _ if sensors.len() == 1 => name.clone(),
                _ => format!("{name}-{}", sensor.stem),
            };
            let opened = Source::open_small(folder.join(&sensor.file));
            // One that is there may refuse, as a sensor does whose bus is broken.
            match opened.and_then(Source::readable) {
                Ok(source) if channels.len() < MOST_CHANNELS => {
                    channels.push(sensor.channel(distinct(&domain, &channels), &name));
                    sources.push(NumberFile {
                        source,
                        scale: if sensor.is_energy { 1.0 } else { 1e-6 },
                        range: None,
                    });
                }
                Ok(_) => {}
                Err(error) if unread.is_empty() => unread = error.to_string(),
                Err(_) => {}
            }
        }
    }
    match (channels.is_empty(), unread.is_empty()) {
        (false, _) => Ok((channels, sources, unread)),
        (true, false) => Err(unread),
        (true, true) => Err(format!(
            "{ABSENT}no sensor below /{FOLDER} measures power or energy"
        )),
    }
}

/// `hwmon0`, `hwmon1`, ..., in order.
fn chips(host: &Host) -> Vec<String> {
    let names = host.names(FOLDER).into_iter();
    let mut numbered: Vec<(u32, String)> = names
        .filter_map(|name| Some((name.strip_prefix("hwmon")?.parse().ok()?, name)))
        .collect();
    numbered.sort();
    numbered.into_iter().map(|(_, name)| name).collect()
}

struct Sensor {
    /// `power1`, `energy3`.
    stem: String,
    file: String,
    is_energy: bool,
    number: u32,
}

impl Sensor {
    fn channel(&self, domain: String, chip: &str) -> Channel {
        if self.is_energy {
            let counter = Counter {
                joules: 1e-6,
                most_watts: MOST_WATTS,
                moves_always: false,
            };
            Channel::energy(domain, counter)
        } else {
            Channel {
                domain,
                gives: Gives::Watts {
                    never_zero: chip == WHOLE_SERVER,
                },
            }
        }
    }
}

/// What a chip measures of power and energy. Where it gives a mean and a moment, the mean: it holds what lies between two
/// readings.
fn sensors(host: &Host, chip: &str) -> Vec<Sensor> {
    let files = host.names(&format!("{FOLDER}/{chip}"));
    let mut sensors: Vec<Sensor> = files
        .iter()
        .filter_map(|file| {
            let (stem, kind) = file.split_once('_')?;
            let (is_energy, number) =
                match (stem.strip_prefix("power"), stem.strip_prefix("energy")) {
                    (Some(number), _) => (false, number),
                    (_, Some(number)) => (true, number),
                    _ => return None,
                };
            let wanted = kind == "input" || (kind == "average" && !is_energy);
            let has_mean = kind == "input" && files.contains(&format!("{stem}_average"));
            (wanted && (is_energy || !has_mean)).then_some(Sensor {
                stem: stem.to_owned(),
                file: file.clone(),
                is_energy,
                number: number.parse().ok()?,
            })
        })
        .collect();
    sensors.sort_by_key(|sensor| (sensor.is_energy, sensor.number));
    sensors
}
