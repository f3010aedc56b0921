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
use super::sheet::{Channel, Sheet};
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

fn open(path: &Path) -> Result<Nvml, String> {
    let opened = Nvml::builder().lib_path(path.as_os_str()).init();
    opened.map_err(|error| match error {
        NvmlError::LibloadingError(error) => format!("{ABSENT}no NVIDIA driver ({error})"),
        error => format!(
            "NVIDIA's library {} cannot be used: {error}",
            path.display()
        ),
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
        return about().missing(reason);
    }
    match find(&host.nvml_library) {
        Ok(found) => found.in_background(PACE),
        Err(failure) => about().missing(failure),
    }
}

fn about() -> About {
    About::new("nvml", NEEDS).expecting(&Channel::energy("gpu-0", COUNTER))
}

fn find(library: &Path) -> Result<Found, String> {
    let nvml = open(library)?;
    let count = nvml.device_count();
    let count = count.map_err(|error| format!("NVIDIA's driver failed: {error}"))?;
    let devices: Vec<Device> = (0..count.min(MOST_DEVICES))
        // One that fell off its bus does not hide the others.
        .filter_map(|index| Some((index, nvml.device_by_index(index).ok()?)))
        .map(|(index, device)| Device {
            index,
            counts: device.total_energy_consumption().is_ok(),
        })
        .collect();
    if devices.is_empty() {
        return Err(format!("{ABSENT}NVIDIA's driver finds no accelerator"));
    }
    let channels = devices
        .iter()
        .map(|device| {
            let domain = format!("gpu-{}", device.index);
            if device.counts {
                Channel::energy(domain, COUNTER)
            } else {
                Channel::watts_above_zero(domain)
            }
        })
        .collect();
    Ok(Found {
        about: about(),
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
