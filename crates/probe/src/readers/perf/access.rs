//! Why perf events cannot be opened here, and what to do about it.

use std::fs;
use std::io;

use rustix::io::Errno;

use super::model::Cpu;
use crate::host::Host;

/// What `/proc` and `/sys` say of perf events.
#[derive(Debug, Clone, Default)]
pub(in crate::readers) struct Access {
    pub cpu: Cpu,
    /// Whether the kernel drives counters of the cores; None where `/sys` does not say.
    pub has_core_counters: Option<bool>,
    /// `kernel.perf_event_paranoid`.
    pub paranoid: Option<i32>,
    pub is_root: bool,
}

impl Access {
    pub(in crate::readers) fn of(host: &Host) -> Self {
        let cpuinfo = fs::read(host.path("proc/cpuinfo")).unwrap_or_default();
        let devices = fs::read_dir(host.path("sys/bus/event_source/devices")).ok();
        Self {
            cpu: Cpu::parse(&String::from_utf8_lossy(&cpuinfo)),
            has_core_counters: devices.map(|mut devices| {
                devices.any(|device| {
                    device
                        .is_ok_and(|device| is_core_counter(&device.file_name().to_string_lossy()))
                })
            }),
            paranoid: host.number("proc/sys/kernel/perf_event_paranoid"),
            is_root: rustix::process::geteuid().is_root(),
        }
    }

    /// Why there are no hardware counters at all, if that is known without asking for one.
    pub(super) fn no_counters(&self) -> Option<String> {
        match (self.has_core_counters, self.cpu.guest) {
            (Some(false), true) => Some(
                "this guest's CPU offers no hardware counters to it; they can be switched on where the guest is defined \
                 (for KVM: pmu=on)"
                    .to_owned(),
            ),
            (Some(false), false) => Some("the kernel drives no hardware counters of this CPU".to_owned()),
            _ => None,
        }
    }

    /// Why an event that every CPU with counters has could not be opened.
    pub(in crate::readers) fn explain(&self, errno: Errno, whole_host: bool) -> String {
        match errno {
            Errno::ACCESS | Errno::PERM => self.explain_permission(whole_host),
            Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV => {
                let sure = Self { has_core_counters: Some(false), ..self.clone() };
                sure.no_counters().unwrap_or_default()
            }
            Errno::MFILE => "too many files are open: raise the limit (ulimit -n)".to_owned(),
            Errno::NOSYS => "this kernel was built without perf events, or a container's seccomp profile hides them".to_owned(),
            Errno::SRCH => "the process has ended".to_owned(),
            Errno::BUSY => "the counters are taken by another program".to_owned(),
            other => format!("perf_event_open failed: {}", io::Error::from(other)),
        }
    }

    fn explain_permission(&self, whole_host: bool) -> String {
        let most = if whole_host { 0 } else { 2 };
        match self.paranoid {
            Some(level) if level > most && !self.is_root => format!(
                "not permitted: kernel.perf_event_paranoid is {level}; run as root, give CAP_PERFMON, or run \
                 sysctl kernel.perf_event_paranoid={most}"
            ),
            _ if self.is_root => {
                "not permitted although this is root: the container does not have CAP_PERFMON, or its seccomp profile forbids \
                 perf_event_open"
                    .to_owned()
            }
            _ => "not permitted: the container's seccomp profile or a security module forbids perf_event_open".to_owned(),
        }
    }
}

/// Whether a device of `/sys/bus/event_source` is the counters of the cores: `cpu` of x86 (`cpu_core` and `cpu_atom`
/// where they differ), `armv8_...` and `armv9_...` of Arm.
fn is_core_counter(name: &str) -> bool {
    matches!(name, "cpu" | "cpu_core" | "cpu_atom")
        || name.starts_with("armv8")
        || name.starts_with("armv9")
}

#[cfg(test)]
mod tests;
