//! Trees of `/proc` and `/sys` for the integration tests.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use probe::{Host, Probe, ReaderSet, Status};

pub const TREES: [&str; 9] = [
    "guest-6.18",
    "kernel-5.10-without-psi",
    "amd-2-sockets-128-cores",
    "aarch64-64k-pages",
    "container-cgroup-v2",
    "cgroup-v1",
    "intel-with-psys",
    "amd-with-rapl",
    "server-2-packages",
];

pub fn tree(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/trees")
        .join(name)
}

pub fn host(root: impl Into<PathBuf>, process: Option<u32>, cgroup: Option<&str>) -> Host {
    Host {
        processes: process
            .map(|pid| ("system".to_owned(), pid))
            .into_iter()
            .collect(),
        cgroups: cgroup
            .map(|group| ("system".to_owned(), group.to_owned()))
            .into_iter()
            .collect(),
        page_bytes: 4096,
        clock_ticks_per_second: 100,
        ..Host::at(root)
    }
}

pub struct Sample {
    pub columns: Vec<String>,
    pub row: Vec<f64>,
    pub probes: Vec<Probe>,
}

impl Sample {
    pub fn of(host: &Host) -> Self {
        let mut set = ReaderSet::new(host);
        let row = set.read().to_vec();
        set.refresh_probes();
        Self {
            columns: set.columns().to_vec(),
            row,
            probes: set.probes().to_vec(),
        }
    }

    #[track_caller]
    pub fn get(&self, column: &str) -> f64 {
        match self.columns.iter().position(|name| name == column) {
            Some(position) => self.row[position],
            None => panic!("no column {column}"),
        }
    }

    pub fn has(&self, part: &str) -> bool {
        self.columns.iter().any(|column| column.contains(part))
    }

    #[track_caller]
    pub fn probe(&self, name: &str) -> &Probe {
        match self.probes.iter().find(|probe| probe.name == name) {
            Some(probe) => probe,
            None => panic!("no probe {name}"),
        }
    }

    #[track_caller]
    pub fn assert_missing(&self, name: &str, reason: &str) {
        let probe = self.probe(name);
        assert_eq!(probe.status, Status::Missing, "{name}: {}", probe.reason);
        assert!(probe.reason.contains(reason), "{name}: {}", probe.reason);
    }
}

/// A copy of a tree that may be changed, gone after the test.
pub struct Copy(pub PathBuf);

impl Copy {
    pub fn of(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let to =
            std::env::temp_dir().join(format!("rackscope-trees-{}-{number}", std::process::id()));
        copy(&tree(name), &to);
        Self(to)
    }

    pub fn rewrite(&self, path: &str, change: impl Fn(&[u8]) -> Vec<u8>) {
        let path = self.0.join(path);
        let text = fs::read(&path).unwrap();
        fs::write(&path, change(&text)).unwrap();
    }

    /// Every file below `proc` and `sys/fs`, relative to the tree.
    pub fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        list(&self.0, &self.0, &mut files);
        files.sort();
        files
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn list(root: &Path, folder: &Path, files: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            list(root, &entry.path(), files);
        } else {
            files.push(
                entry
                    .path()
                    .strip_prefix(root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned(),
            );
        }
    }
}
