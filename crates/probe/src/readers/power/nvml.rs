//! The energy of NVIDIA's accelerators: the driver's library NVML, opened at run time (NVML API reference,
//! `nvmlDeviceGetTotalEnergyConsumption` and `nvmlDeviceGetPowerUsage`).

use std::path::Path;
use std::time::Duration;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

use super::background::Pace;
use super::energy::Counter;
use super::found::Found;
use super::meter::{ABSENT, About, Meter};
use super::sheet::{Channel, Gives, Sheet};
use crate::host::Host;
use crate::readers::Reader;

const NEEDS: &str = "an NVIDIA accelerator with its driver, whose library is libnvidia-ml.so.1";

/// No accelerator takes as much.
const MOST_WATTS: f64 = 10_000.0;
/// More than any server holds.
const MOST_DEVICES: u32 = 64;

const PACE: Pace = Pace {
    interval: Duration::from_millis(100),
    share: 20,
    patience: Duration::from_secs(5),
};

/// Millijoules.
pub(super) const COUNTER: Counter = Counter {
    joules: 1e-3,
    most_watts: MOST_WATTS,
    moves_always: false,
};

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("not present: {0}")]
    Absent(String),
    #[error("NVIDIA's library {path} cannot be used: {source}")]
    Library { path: String, source: NvmlError },
    #[error("NVIDIA's driver failed: {0}")]
    Call(#[from] NvmlError),
}

fn open(path: &Path) -> Result<Nvml, Failure> {
    Nvml::builder()
        .lib_path(path.as_os_str())
        .init()
        .map_err(|error| match error {
            NvmlError::LibloadingError(error) => {
                Failure::Absent(format!("no NVIDIA driver ({error})"))
            }
            source => Failure::Library {
                path: path.display().to_string(),
                source,
            },
        })
}

#[derive(Clone, Copy)]
struct Device {
    index: u32,
    /// Whether it counts energy; the others only say their power.
    counts: bool,
}

impl Device {
    /// Millijoules counted, or watts.
    fn read(self, nvml: &Nvml) -> Result<f64, NvmlError> {
        let device = nvml.device_by_index(self.index)?;
        if self.counts {
            device.total_energy_consumption().map(|count| count as f64)
        } else {
            device.power_usage().map(|power| f64::from(power) * 1e-3)
        }
    }
}

struct Accelerators {
    devices: Vec<Device>,
    nvml: Nvml,
}

pub(super) fn build(host: &Host) -> Box<dyn Reader> {
    if !host.is_live() {
        let reason = format!("{ABSENT}a recorded tree has no accelerator to ask");
        return About::new("nvml", NEEDS)
            .expecting(&Channel::energy("gpu-0", COUNTER))
            .missing(reason);
    }
    match find(&host.nvml_library) {
        Ok(found) => found.in_background(PACE),
        Err(failure) => About::new("nvml", NEEDS)
            .expecting(&Channel::energy("gpu-0", COUNTER))
            .missing(failure.to_string()),
    }
}

fn find(library: &Path) -> Result<Found, Failure> {
    let nvml = open(library)?;
    let devices: Vec<Device> = (0..nvml.device_count()?.min(MOST_DEVICES))
        // One that fell off its bus does not hide the others.
        .filter_map(|index| Some((index, nvml.device_by_index(index).ok()?)))
        .map(|(index, device)| Device {
            index,
            counts: device.total_energy_consumption().is_ok(),
        })
        .collect();
    if devices.is_empty() {
        return Err(Failure::Absent(
            "NVIDIA's driver finds no accelerator".to_owned(),
        ));
    }
    let channels = devices
        .iter()
        .map(|device| {
            let domain = format!("gpu-{}", device.index);
            if device.counts {
                Channel::energy(domain, COUNTER)
            } else {
                Channel {
                    domain,
                    gives: Gives::Watts { never_zero: true },
                }
            }
        })
        .collect();
    Ok(Found {
        about: About::new("nvml", NEEDS).expecting(&Channel::energy("gpu-0", COUNTER)),
        channels,
        meter: Box::new(Accelerators { devices, nvml }),
    })
}

impl Meter for Accelerators {
    fn read(&mut self, sheet: &mut Sheet) {
        for (channel, device) in self.devices.iter().enumerate() {
            match device.read(&self.nvml) {
                Ok(number) => sheet.say(channel, number, None),
                Err(failure) => sheet.fail(|| format!("gpu-{}: {failure}", device.index)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
