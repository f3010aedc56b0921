//! What labelled control groups use, v1 or v2: CPU time and throttling, memory and its limit, disk traffic, refaults
//! (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/).

mod files;
mod hierarchy;

use std::fs;
use std::path::PathBuf;

use self::files::Layers;
use self::hierarchy::{Folders, Mounts, first_file};
use crate::host::Host;
use crate::parse;
use crate::probes::{Probe, labelled};
use crate::readers::Reader;
use crate::source::{Source, complaints};

const NEEDS: &str = "a control group, v1 or v2, whose hierarchy is mounted, with the cpu, memory and io controllers on";

/// Columns of a group, in their order in a row.
const COLUMNS: [(&str, Option<(&str, &str)>); 12] = [
    ("cgroup_cpu_seconds_total", Some(("state", "user"))),
    ("cgroup_cpu_seconds_total", Some(("state", "system"))),
    ("cgroup_throttled_seconds_total", None),
    ("cgroup_throttled_periods_total", None),
    ("cgroup_memory_bytes", Some(("kind", "current"))),
    ("cgroup_memory_bytes", Some(("kind", "anonymous"))),
    ("cgroup_memory_bytes", Some(("kind", "cached"))),
    ("cgroup_memory_bytes", Some(("kind", "mapped"))),
    ("cgroup_memory_limit_bytes", None),
    ("cgroup_read_bytes_total", None),
    ("cgroup_write_bytes_total", None),
    ("cgroup_refaults_total", None),
];
const LIMIT: usize = 8;
const READ: usize = 9;
const WRITTEN: usize = 10;

/// A file of a group, and what is taken from it.
struct File {
    source: Source,
    take: Take,
}

enum Take {
    /// Key, column and what to divide by.
    Keyed(Vec<(&'static [u8], usize, f64)>),
    Number(usize, f64),
    Limit,
    IoStat,
    IoServiceBytes,
}

struct Cgroup {
    label: String,
    files: Vec<File>,
    layers: Layers,
    /// What the group's files do not give.
    missing: String,
    unlimited: bool,
    uncounted: bool,
}

pub(super) fn build(host: &Host) -> Vec<Box<dyn Reader>> {
    if host.cgroups.is_empty() {
        return Vec::new();
    }
    let mounts = Mounts::of(host);
    host.cgroups
        .iter()
        .map(|(label, group)| follow(host, &mounts, label, group))
        .collect()
}

fn probe(label: &str) -> Probe {
    let columns = labelled(&COLUMNS, ("cgroup", label));
    Probe::new(format!("cgroup:{label}"), NEEDS, columns)
}

fn follow(host: &Host, mounts: &Mounts, label: &str, group: &str) -> Box<dyn Reader> {
    let folders = mounts.folders(host, group);
    if folders.is_empty() {
        let reason = if *mounts == Mounts::default() {
            "no control group hierarchy is mounted".to_owned()
        } else {
            format!("there is no control group {group}")
        };
        return probe(label).missing_reader(reason);
    }
    let (mut files, mut missing) = (Vec::new(), Vec::new());
    for part in parts(&folders, host.clock_ticks_per_second as f64) {
        match part.file {
            None => missing.push(part.what.to_owned()),
            Some((path, take)) => match Source::open(path) {
                Ok(source) => files.push(File { source, take }),
                Err(error) => missing.push(format!("{} ({error})", part.what)),
            },
        }
    }
    if files.is_empty() {
        let reason = format!(
            "the control group {group} has no controllers: {} not given",
            missing.join(", ")
        );
        return probe(label).missing_reader(reason);
    }
    let layers = files::layers(&fs::read_to_string(host.path("proc/devices")).unwrap_or_default());
    Box::new(Cgroup {
        label: label.to_owned(),
        files,
        layers,
        missing: missing.join(", "),
        unlimited: false,
        uncounted: false,
    })
}

/// Something to know of a group, and the file that tells it.
struct Part {
    what: &'static str,
    file: Option<(PathBuf, Take)>,
}

/// The file of each part, of the unified hierarchy where it has one, else of the controller's own.
fn parts(folders: &Folders, clock_ticks: f64) -> Vec<Part> {
    let Folders {
        unified,
        cpu,
        cpuacct,
        memory,
        blkio,
    } = folders;
    let choose =
        |what, candidates: &[(&Option<PathBuf>, &str)], takes: &dyn Fn(usize) -> Take| Part {
            what,
            file: first_file(candidates).map(|(position, path)| (path, takes(position))),
        };
    let mut parts = vec![
        choose(
            "CPU time",
            &[(unified, "cpu.stat"), (cpuacct, "cpuacct.stat")],
            &|position| match position {
                0 => Take::Keyed(vec![
                    (b"user_usec", 0, 1e6),
                    (b"system_usec", 1, 1e6),
                    (b"throttled_usec", 2, 1e6),
                    (b"nr_throttled", 3, 1.0),
                ]),
                _ => Take::Keyed(vec![(b"user", 0, clock_ticks), (b"system", 1, clock_ticks)]),
            },
        ),
        choose(
            "memory",
            &[
                (unified, "memory.current"),
                (memory, "memory.usage_in_bytes"),
            ],
            &|_| Take::Number(4, 1.0),
        ),
        choose(
            "memory by kind",
            &[(unified, "memory.stat"), (memory, "memory.stat")],
            &|position| match position {
                0 => Take::Keyed(vec![
                    (b"anon", 5, 1.0),
                    (b"file", 6, 1.0),
                    (b"file_mapped", 7, 1.0),
                    (b"workingset_refault_anon", 11, 1.0),
                    (b"workingset_refault_file", 11, 1.0),
                    (b"workingset_refault", 11, 1.0),
                ]),
                _ => Take::Keyed(vec![
                    (b"total_rss", 5, 1.0),
                    (b"total_cache", 6, 1.0),
                    (b"total_mapped_file", 7, 1.0),
                    (b"total_workingset_refault_anon", 11, 1.0),
                    (b"total_workingset_refault_file", 11, 1.0),
                    (b"total_workingset_refault", 11, 1.0),
                ]),
            },
        ),
        choose(
            "the memory limit",
            &[(unified, "memory.max"), (memory, "memory.limit_in_bytes")],
            &|_| Take::Limit,
        ),
        choose(
            "disk traffic",
            &[
                (unified, "io.stat"),
                (blkio, "blkio.throttle.io_service_bytes_recursive"),
                (blkio, "blkio.throttle.io_service_bytes"),
            ],
            &|position| {
                if position == 0 {
                    Take::IoStat
                } else {
                    Take::IoServiceBytes
                }
            },
        ),
    ];
    // In the unified hierarchy it is in the same file as CPU time.
    if cpu.is_some() || unified.is_none() {
        parts.push(choose("throttling", &[(cpu, "cpu.stat")], &|_| {
            Take::Keyed(vec![(b"throttled_time", 2, 1e9), (b"nr_throttled", 3, 1.0)])
        }));
    }
    parts
}

impl Reader for Cgroup {
    fn probes(&self) -> Vec<Probe> {
        let complaint = complaints(self.files.iter().map(|file| &file.source));
        let mut probe = probe(&self.label).untrusted_if(complaint);
        if !self.missing.is_empty() {
            probe.note(format!("not given for this group: {}", self.missing));
        }
        if self.uncounted {
            probe.note("the kernel counts no disk traffic of this group (v1 does so where a throttle is set)");
        }
        if self.unlimited {
            probe.note("the group has no memory limit of its own");
        }
        vec![probe]
    }

    fn read(&mut self, row: &mut [f64]) {
        let Self { files, layers, .. } = self;
        for File { source, take } in files {
            source.read(|text| {
                match take {
                    Take::Keyed(keys) => files::keyed(text, keys, row)?,
                    Take::Number(position, factor) => {
                        row[*position] =
                            parse::only_number(text, "memory of the group")? as f64 / *factor;
                    }
                    Take::Limit => row[LIMIT] = files::limit(text)?,
                    Take::IoStat => {
                        row[READ..=WRITTEN].copy_from_slice(&files::io_stat(text, layers)?)
                    }
                    Take::IoServiceBytes => {
                        row[READ..=WRITTEN].copy_from_slice(&files::io_service_bytes(text, layers)?)
                    }
                }
                Ok(())
            });
        }
        let gives = |wanted: fn(&Take) -> bool| self.files.iter().any(|file| wanted(&file.take));
        self.unlimited = row[LIMIT].is_nan() && gives(|take| matches!(take, Take::Limit));
        self.uncounted = row[READ].is_nan() && gives(|take| matches!(take, Take::IoServiceBytes));
    }
}

#[cfg(test)]
mod tests;
