//! The energy of NVIDIA's accelerators: the driver's library NVML, opened at run time (NVML API reference,
//! `nvmlDeviceGetTotalEnergyConsumption` and `nvmlDeviceGetPowerUsage`).

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::path::Path;
use std::time::Duration;

use libloading::Library;

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
const MOST_DEVICES: c_uint = 64;

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

const SUCCESS: c_int = 0;

type Handle = *mut c_void;
type Plain = unsafe extern "C" fn() -> c_int;
type Count = unsafe extern "C" fn(*mut c_uint) -> c_int;
type ByIndex = unsafe extern "C" fn(c_uint, *mut Handle) -> c_int;
type Energy = unsafe extern "C" fn(Handle, *mut c_ulonglong) -> c_int;
type Power = unsafe extern "C" fn(Handle, *mut c_uint) -> c_int;
type Words = unsafe extern "C" fn(c_int) -> *const c_char;

/// The library, set up; it is shut down when this is dropped.
struct Nvml {
    shutdown: Plain,
    count: Count,
    by_index: ByIndex,
    /// Not in libraries before the Volta generation.
    energy: Option<Energy>,
    power: Power,
    words: Words,
    /// Whether it was set up, and is to be shut down.
    is_ready: bool,
    /// Last, so that it outlives what points into it.
    _library: Library,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("none here: {0}")]
    Absent(String),
    #[error("the library {path} lacks {what}")]
    Symbol { path: String, what: String },
    #[error("{call} of NVIDIA's driver failed: {words}")]
    Call { call: &'static str, words: String },
}

impl Nvml {
    fn open(path: &Path) -> Result<Self, Failure> {
        let name: &OsStr = path.as_os_str();
        // SAFETY: opening a library runs what it does at its start. This one is NVIDIA's, found where the system's
        // libraries are, or where the caller says; it does nothing but set itself up.
        let library = unsafe { Library::new(name) }
            .map_err(|error| Failure::Absent(format!("no NVIDIA driver ({error})")))?;
        macro_rules! symbol {
            ($name:literal as $kind:ty) => {
                // SAFETY: the type is the one that NVML's header gives to this name, which has not changed since the
                // name is there; the library stays open as long as the pointer is kept.
                unsafe { library.get::<$kind>(concat!($name, "\0").as_bytes()) }
                    .map(|symbol| *symbol)
                    .map_err(|error| Failure::Symbol {
                        path: path.display().to_string(),
                        what: error.to_string(),
                    })
            };
        }
        let init = symbol!("nvmlInit_v2" as Plain)?;
        let mut nvml = Self {
            shutdown: symbol!("nvmlShutdown" as Plain)?,
            count: symbol!("nvmlDeviceGetCount_v2" as Count)?,
            by_index: symbol!("nvmlDeviceGetHandleByIndex_v2" as ByIndex)?,
            energy: symbol!("nvmlDeviceGetTotalEnergyConsumption" as Energy).ok(),
            power: symbol!("nvmlDeviceGetPowerUsage" as Power)?,
            words: symbol!("nvmlErrorString" as Words)?,
            is_ready: false,
            _library: library,
        };
        // SAFETY: takes nothing, and may be called any number of times.
        let result = unsafe { init() };
        nvml.check("nvmlInit_v2", result)?;
        nvml.is_ready = true;
        Ok(nvml)
    }

    fn check(&self, call: &'static str, result: c_int) -> Result<(), Failure> {
        if result == SUCCESS {
            return Ok(());
        }
        // SAFETY: takes a number, and returns a text that lives as long as the library, or nothing.
        let words = unsafe { (self.words)(result) };
        let words = if words.is_null() {
            format!("error {result}")
        } else {
            // SAFETY: not null, and a text that ends with a zero byte, as the header says.
            let words = unsafe { CStr::from_ptr(words) };
            words.to_string_lossy().into_owned()
        };
        Err(Failure::Call { call, words })
    }

    fn devices(&self) -> Result<Vec<Device>, Failure> {
        let mut count = 0;
        // SAFETY: writes one number, behind a pointer that is good until the call returns.
        let result = unsafe { (self.count)(&raw mut count) };
        self.check("nvmlDeviceGetCount_v2", result)?;
        let mut devices = Vec::new();
        for index in 0..count.min(MOST_DEVICES) {
            let mut handle = std::ptr::null_mut();
            // SAFETY: writes one handle, behind a pointer that is good until the call returns.
            let result = unsafe { (self.by_index)(index, &raw mut handle) };
            if self.check("nvmlDeviceGetHandleByIndex_v2", result).is_err() {
                // One that fell off its bus does not hide the others.
                continue;
            }
            let counts = self.millijoules(handle).is_ok();
            devices.push(Device {
                index,
                handle,
                counts,
            });
        }
        Ok(devices)
    }

    fn millijoules(&self, device: Handle) -> Result<f64, Failure> {
        const CALL: &str = "nvmlDeviceGetTotalEnergyConsumption";
        let energy = self.energy.ok_or_else(|| Failure::Call {
            call: CALL,
            words: "not in this library".to_owned(),
        })?;
        let mut millijoules = 0;
        // SAFETY: the handle came from this library, which is set up; one number is written behind a good pointer.
        let result = unsafe { energy(device, &raw mut millijoules) };
        self.check(CALL, result)?;
        Ok(millijoules as f64)
    }

    fn milliwatts(&self, device: Handle) -> Result<f64, Failure> {
        let mut milliwatts = 0;
        // SAFETY: as above.
        let result = unsafe { (self.power)(device, &raw mut milliwatts) };
        self.check("nvmlDeviceGetPowerUsage", result)?;
        Ok(f64::from(milliwatts))
    }
}

impl Drop for Nvml {
    fn drop(&mut self) {
        if self.is_ready {
            // SAFETY: was set up once by `open`, and is shut down once; nothing of it is used afterwards.
            let _ = unsafe { (self.shutdown)() };
        }
    }
}

#[derive(Clone, Copy)]
struct Device {
    index: c_uint,
    handle: Handle,
    /// Whether it counts energy; the others only say their power.
    counts: bool,
}

struct Accelerators {
    devices: Vec<Device>,
    nvml: Nvml,
}

// SAFETY: NVML may be called from any thread (its reference, "Thread safety"), and its handles mean the same in all.
unsafe impl Send for Accelerators {}

pub(super) fn build(host: &Host) -> Box<dyn Reader> {
    if !host.is_live() {
        let reason = format!("{ABSENT}a recorded tree has no accelerator to ask");
        return About::new("nvml", NEEDS)
            .expecting(&Channel::energy("gpu-0", COUNTER))
            .missing(reason);
    }
    match find(&host.nvml_library) {
        Ok(found) => found.beside(PACE),
        Err(failure) => About::new("nvml", NEEDS)
            .expecting(&Channel::energy("gpu-0", COUNTER))
            .missing(failure.to_string()),
    }
}

fn find(library: &Path) -> Result<Found, Failure> {
    let nvml = Nvml::open(library)?;
    let devices = nvml.devices()?;
    if devices.is_empty() {
        return Err(Failure::Absent(
            "NVIDIA's driver knows no accelerator".to_owned(),
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
            let read = if device.counts {
                self.nvml.millijoules(device.handle)
            } else {
                let milliwatts = self.nvml.milliwatts(device.handle);
                milliwatts.map(|milliwatts| milliwatts * 1e-3)
            };
            match read {
                Ok(number) => sheet.say(channel, number, None),
                Err(failure) => sheet.fail(|| format!("gpu-{}: {failure}", device.index)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
