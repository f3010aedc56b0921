//! What is to be read: the host, or a recorded tree of one.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::parse::cpu_list;
use crate::readers::power::MeterSpec;

/// The host under measurement and what is to be followed on it.
#[derive(Debug, Clone)]
pub struct Host {
    /// The folder that holds `proc` and `sys`: `/` for the running host.
    pub root: PathBuf,
    /// Label and root process of each process tree to follow.
    pub processes: Vec<(String, u32)>,
    /// Label and path of each cgroup to follow: a path below the hierarchy (`/system.slice/a.service`) or a folder
    /// (`/sys/fs/cgroup/system.slice/a.service`).
    pub cgroups: Vec<(String, String)>,
    /// How often a row is read; what costs much is spread over rows by it.
    pub interval: Duration,
    /// Whether to open perf events.
    pub perf: bool,
    /// Whether to look for power meters of this host itself.
    pub local_meters: bool,
    /// The library that knows NVIDIA's accelerators, by name or path.
    pub nvml_library: PathBuf,
    /// Power meters that the user names.
    pub meters: Vec<MeterSpec>,
    /// Bytes in a page of memory, the unit of several counters.
    pub page_bytes: u64,
    /// Kernel clock ticks a second (`USER_HZ`), the unit of CPU times in `/proc`.
    pub clock_ticks_per_second: u64,
}

impl Host {
    /// The running host, with perf events, following no process and no cgroup.
    pub fn live() -> Self {
        Self::at("/")
    }

    /// The host whose `proc` and `sys` lie below `root`; units are those of the running kernel.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            processes: Vec::new(),
            cgroups: Vec::new(),
            interval: Duration::from_millis(100),
            perf: true,
            local_meters: true,
            nvml_library: PathBuf::from("libnvidia-ml.so.1"),
            meters: Vec::new(),
            page_bytes: rustix::param::page_size() as u64,
            clock_ticks_per_second: rustix::param::clock_ticks_per_second(),
        }
    }

    /// Whether this is the running host, and not a recorded tree.
    pub fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    /// What a small file says, without blanks around it.
    pub(crate) fn text(&self, below: &str) -> Option<String> {
        let text = fs::read_to_string(self.path(below)).ok()?;
        Some(text.trim().to_owned())
    }

    /// The number that a small file holds.
    pub(crate) fn number<T: FromStr>(&self, below: &str) -> Option<T> {
        self.text(below)?.parse().ok()
    }

    /// The CPUs that a file lists.
    pub(crate) fn cpus(&self, below: &str) -> Vec<u32> {
        let listed = self.text(below).and_then(|text| cpu_list(&text));
        listed.unwrap_or_default()
    }

    /// The names of what is in a folder.
    pub(crate) fn names(&self, below: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(below)).into_iter().flatten();
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    }

    /// The path of `below` (such as `proc/stat`, or an absolute path as the host sees it) under the root.
    pub fn path(&self, below: &str) -> PathBuf {
        self.root.join(below.trim_start_matches('/'))
    }
}
