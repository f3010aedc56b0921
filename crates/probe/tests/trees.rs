//! The readers on recorded and written trees of other kinds of machine, and on broken ones.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use probe::{Host, Probe, ReaderSet, Status};
use proptest::prelude::*;

const TREES: [&str; 6] = [
    "guest-6.18",
    "kernel-5.10-without-psi",
    "amd-2-sockets-128-cores",
    "aarch64-64k-pages",
    "container-cgroup-v2",
    "cgroup-v1",
];

fn tree(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/trees")
        .join(name)
}

fn host(root: impl Into<PathBuf>, process: Option<u32>, cgroup: Option<&str>) -> Host {
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

struct Sample {
    columns: Vec<String>,
    row: Vec<f64>,
    probes: Vec<Probe>,
}

impl Sample {
    fn of(host: &Host) -> Self {
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
    fn get(&self, column: &str) -> f64 {
        match self.columns.iter().position(|name| name == column) {
            Some(position) => self.row[position],
            None => panic!("no column {column}"),
        }
    }

    fn has(&self, part: &str) -> bool {
        self.columns.iter().any(|column| column.contains(part))
    }

    #[track_caller]
    fn probe(&self, name: &str) -> &Probe {
        match self.probes.iter().find(|probe| probe.name == name) {
            Some(probe) => probe,
            None => panic!("no probe {name}"),
        }
    }

    #[track_caller]
    fn assert_missing(&self, name: &str, reason: &str) {
        let probe = self.probe(name);
        assert_eq!(probe.status, Status::Missing, "{name}: {}", probe.reason);
        assert!(probe.reason.contains(reason), "{name}: {}", probe.reason);
    }
}

#[test]
fn a_recorded_guest_with_both_kinds_of_control_groups() {
    let sample = Sample::of(&host(tree("guest-6.18"), Some(4242), Some("/")));
    assert!(sample.get(r#"cpu_seconds_total{state="user"}"#) > 0.0);
    assert!(sample.has(r#"core="1""#) && !sample.has(r#"core="2""#));
    assert!(sample.get(r#"disk_read_bytes_total{device="vda"}"#) > 0.0);
    assert!(!sample.has("loop0") && !sample.has("zram0") && !sample.has("ifb0"));
    assert!(sample.get(r#"network_receive_bytes_total{interface="eth0"}"#) > 0.0);
    assert!(sample.get(r#"pressure_stall_seconds_total{resource="cpu",share="some"}"#) > 0.0);
    assert!(!sample.has(r#"resource="cpu",share="full""#));
    // The shell of the tree worked, and waits for the child that sleeps.
    assert_eq!(sample.get(r#"process_count{process="system"}"#), 2.0);
    assert!(sample.get(r#"process_cpu_seconds_total{process="system",state="user"}"#) > 0.0);
    // CPU time is in the unified hierarchy, memory and disks in those of v1.
    assert!(sample.get(r#"cgroup_cpu_seconds_total{cgroup="system",state="user"}"#) > 0.0);
    assert_eq!(
        sample.get(r#"cgroup_throttled_periods_total{cgroup="system"}"#),
        0.0
    );
    assert!(sample.get(r#"cgroup_memory_bytes{cgroup="system",kind="anonymous"}"#) > 0.0);
    assert!(
        sample
            .get(r#"cgroup_memory_limit_bytes{cgroup="system"}"#)
            .is_nan()
    );
    assert!(
        sample
            .probe("cgroup:system")
            .reason
            .contains("no memory limit")
    );
    sample.assert_missing(
        "perf:host",
        "this guest's CPU offers no hardware counters to it",
    );
    sample.assert_missing("frequency", "no cpufreq driver");
}

#[test]
fn an_old_kernel_without_pressure_and_a_process_of_somebody_else() {
    let sample = Sample::of(&host(tree("kernel-5.10-without-psi"), Some(700), Some("/")));
    sample.assert_missing("pressure", "psi=1");
    assert!(!sample.has("pressure_stall"));
    sample.assert_missing("process_io:system", "proc/700/io");
    assert_eq!(
        sample.get(r#"process_cpu_seconds_total{process="system",state="user"}"#),
        20.0
    );
    assert_eq!(sample.get(r#"process_threads{process="system"}"#), 4.0);
    assert_eq!(
        sample.get(r#"process_run_delay_seconds_total{process="system"}"#),
        0.5 + 1.0 + 1.5 + 2.0
    );
    assert_eq!(
        sample.get(r#"process_context_switches_total{kind="voluntary",process="system"}"#),
        700.0
    );
    assert_eq!(
        sample.get(r#"cpu_frequency_hertz{core="3"}"#),
        3_403_000_000.0
    );
    let disks: Vec<&String> = sample
        .columns
        .iter()
        .filter(|name| name.starts_with("disk_reads"))
        .collect();
    assert_eq!(disks, [r#"disk_reads_total{device="sda"}"#]);
    sample.assert_missing("cgroup:system", "no control group");
    // This CPU has counters; a recorded tree cannot open them.
    sample.assert_missing("perf:host", "a recorded tree");
}

#[test]
fn many_cores_of_which_one_is_offline() {
    let host = host(
        tree("amd-2-sockets-128-cores"),
        Some(2000),
        Some("/system.slice/cassandra.service"),
    );
    let sample = Sample::of(&host);
    assert_eq!(
        sample.get(r#"cpu_core_seconds_total{core="0",state="user"}"#),
        1200.0
    );
    assert_eq!(
        sample.get(r#"cpu_core_seconds_total{core="127",state="user"}"#),
        1200.0 + 127.0 * 0.37
    );
    assert!(
        sample
            .get(r#"cpu_core_seconds_total{core="5",state="user"}"#)
            .is_nan()
    );
    assert_eq!(sample.get("run_queue_length"), 3.0);
    assert_eq!(sample.get("context_switches_total"), 987_654_321.0);
    // Disks below md and device-mapper, and no idle network block devices.
    let disks = sample
        .columns
        .iter()
        .filter(|name| name.starts_with("disk_reads"))
        .count();
    assert_eq!(disks, 4);
    assert_eq!(
        sample.get(r#"disk_write_bytes_total{device="nvme3n1"}"#),
        4000.0 * 5_000_000.0 * 512.0
    );
    assert_eq!(
        sample.get(r#"disk_queue_seconds_total{device="nvme0n1"}"#),
        9000.0
    );
    assert_eq!(
        sample.get(r#"memory_bytes{kind="huge_pages_total"}"#),
        1024.0 * 2048.0 * 1024.0
    );
    assert_eq!(sample.get(r#"refaults_total{kind="anonymous"}"#), 1234.0);
    assert_eq!(
        sample.get(r#"pressure_stall_seconds_total{resource="irq",share="full"}"#),
        4242e-6
    );
    assert_eq!(
        sample.get(r#"network_receive_drops_total{interface="enp65s0f0np0"}"#),
        4.0
    );
    assert!(!sample.has("veth"));
    assert_eq!(sample.get("tcp_retransmits_total"), 321.0);
    assert_eq!(sample.get("tcp_listen_overflows_total"), 17.0);
    // The process tree: java, a shell, its child with brackets in its name, and tail.
    assert_eq!(sample.get(r#"process_count{process="system"}"#), 4.0);
    let user = sample.get(r#"process_cpu_seconds_total{process="system",state="user"}"#);
    assert_eq!(user, f64::from(500_000 + 120 + 10 + 7 + 1) / 100.0);
    assert_eq!(
        sample.get(r#"process_read_bytes_total{process="system"}"#),
        4.0 * 409_600.0
    );
    // md's traffic is its disks', and not counted twice.
    assert_eq!(
        sample.get(r#"cgroup_read_bytes_total{cgroup="system"}"#),
        4_000_000.0
    );
    assert_eq!(
        sample.get(r#"cgroup_refaults_total{cgroup="system"}"#),
        15.0
    );
    assert_eq!(
        sample.get(r#"cpu_frequency_hertz{core="127"}"#),
        2_577_000_000.0
    );
}

#[test]
fn pages_of_64_kib() {
    let host = Host {
        page_bytes: 65536,
        ..host(tree("aarch64-64k-pages"), None, None)
    };
    let sample = Sample::of(&host);
    assert_eq!(sample.get("swap_in_bytes_total"), 11.0 * 65536.0);
    assert_eq!(sample.get("swap_out_bytes_total"), 22.0 * 65536.0);
    assert_eq!(sample.get("page_faults_major_total"), 3333.0);
    assert_eq!(
        sample.get(r#"memory_bytes{kind="huge_pages_free"}"#),
        3.0 * 512.0 * 1024.0 * 1024.0
    );
    assert_eq!(sample.get(r#"disk_reads_total{device="nvme0n1"}"#), 1000.0);
    assert!(!sample.has("nvme0n1p"));
}

#[test]
fn a_container_with_limits() {
    let sample = Sample::of(&host(tree("container-cgroup-v2"), Some(1), Some("/")));
    assert_eq!(
        sample.get(r#"cgroup_throttled_seconds_total{cgroup="system"}"#),
        7.5
    );
    assert_eq!(
        sample.get(r#"cgroup_throttled_periods_total{cgroup="system"}"#),
        250.0
    );
    assert_eq!(
        sample.get(r#"cgroup_memory_limit_bytes{cgroup="system"}"#),
        f64::from(1 << 30)
    );
    assert_eq!(
        sample.get(r#"cgroup_memory_bytes{cgroup="system",kind="mapped"}"#),
        f64::from(1 << 26)
    );
    assert_eq!(sample.probe("cgroup:system").status, Status::Ok);
    assert!(sample.has(r#"device="sda""#) && !sample.has("sda1") && !sample.has("loop0"));
}

#[test]
fn control_groups_of_the_first_version() {
    let sample = Sample::of(&host(
        tree("cgroup-v1"),
        Some(900),
        Some("/docker/0123abcd"),
    ));
    assert_eq!(
        sample.get(r#"cgroup_cpu_seconds_total{cgroup="system",state="user"}"#),
        40.0
    );
    assert_eq!(
        sample.get(r#"cgroup_cpu_seconds_total{cgroup="system",state="system"}"#),
        10.0
    );
    assert_eq!(
        sample.get(r#"cgroup_throttled_seconds_total{cgroup="system"}"#),
        2.5
    );
    assert_eq!(
        sample.get(r#"cgroup_memory_bytes{cgroup="system",kind="current"}"#),
        268_435_456.0
    );
    assert_eq!(
        sample.get(r#"cgroup_memory_bytes{cgroup="system",kind="cached"}"#),
        67_108_864.0
    );
    assert_eq!(
        sample.get(r#"cgroup_read_bytes_total{cgroup="system"}"#),
        4096.0
    );
    assert_eq!(
        sample.get(r#"cgroup_write_bytes_total{cgroup="system"}"#),
        8192.0
    );
    assert_eq!(
        sample.get(r#"cgroup_refaults_total{cgroup="system"}"#),
        44.0
    );
}

#[test]
fn columns_are_unique_and_every_probe_says_what_it_needs() {
    for name in TREES {
        let sample = Sample::of(&host(tree(name), None, None));
        let mut columns = sample.columns.clone();
        columns.sort();
        columns.dedup();
        assert_eq!(columns.len(), sample.columns.len(), "{name}");
        for probe in &sample.probes {
            assert!(!probe.needs.is_empty(), "{}", probe.name);
            assert!(
                probe.status == Status::Ok || !probe.reason.is_empty(),
                "{}",
                probe.name
            );
            let in_row = probe
                .columns
                .iter()
                .all(|column| sample.columns.contains(column));
            assert!(
                in_row || probe.status == Status::Missing,
                "{name}: {}",
                probe.name
            );
        }
    }
}

#[test]
fn counters_that_go_backwards_are_told_and_passed_on() {
    let copy = Copy::of("kernel-5.10-without-psi");
    let mut set = ReaderSet::new(&host(&copy.0, None, None));
    copy.rewrite("proc/net/dev", |text| {
        String::from_utf8_lossy(text)
            .replace("1000000", "900000")
            .into_bytes()
    });
    let row = set.read().to_vec();
    let column = set
        .columns()
        .iter()
        .position(|name| name == r#"network_receive_bytes_total{interface="lo"}"#);
    assert_eq!(row[column.unwrap()], 900_000.0);
    set.refresh_probes();
    let probe = set
        .probes()
        .iter()
        .find(|probe| probe.name == "network")
        .unwrap();
    assert_eq!(probe.status, Status::Untrusted);
    assert!(probe.reason.contains("went backwards"), "{}", probe.reason);
}

/// A copy of a tree that may be changed, gone after the test.
struct Copy(PathBuf);

impl Copy {
    fn of(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let to =
            std::env::temp_dir().join(format!("rackscope-trees-{}-{number}", std::process::id()));
        copy(&tree(name), &to);
        Self(to)
    }

    fn rewrite(&self, path: &str, change: impl Fn(&[u8]) -> Vec<u8>) {
        let path = self.0.join(path);
        let text = fs::read(&path).unwrap();
        fs::write(&path, change(&text)).unwrap();
    }

    /// Every file below `proc` and `sys/fs`, relative to the tree.
    fn files(&self) -> Vec<String> {
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

fn cut_off(text: &[u8]) -> Vec<u8> {
    let end = text.len() * 6 / 10;
    text[..end].trim_ascii_end().to_vec()
}

fn garbage(text: &[u8]) -> Vec<u8> {
    text.iter()
        .map(|byte| byte.wrapping_mul(37).wrapping_add(11))
        .chain(*b"\n")
        .collect()
}

fn huge_numbers(text: &[u8]) -> Vec<u8> {
    let mut huge = Vec::new();
    let mut in_word = false;
    for byte in text {
        if byte.is_ascii_digit() && !in_word {
            huge.extend_from_slice(b"99999999999999999999999");
        }
        huge.push(*byte);
        in_word = byte.is_ascii_alphanumeric() || *byte == b'_';
    }
    huge
}

fn empty(_: &[u8]) -> Vec<u8> {
    Vec::new()
}

/// Files that say how the host is made up: broken ones hide readers instead of making them fail.
const INVENTORY: [&str; 8] = [
    "mounts",
    "present",
    "online",
    "cpuinfo",
    "devices",
    "size",
    "type",
    "perf_event_paranoid",
];

/// Turns what a file holds into something broken.
type Break = fn(&[u8]) -> Vec<u8>;

#[test]
fn broken_files_are_told_with_path_and_line_and_give_no_numbers_that_are_none() {
    let kinds: [(&str, Break); 4] = [
        ("cut off", cut_off),
        ("garbage", garbage),
        ("huge numbers", huge_numbers),
        ("empty", empty),
    ];
    for name in TREES {
        for (kind, break_it) in kinds {
            // Broken before the start: it may hide devices, but nothing fails.
            let copy = Copy::of(name);
            for path in copy.files() {
                copy.rewrite(&path, break_it);
            }
            check(&Sample::of(&host(&copy.0, Some(1), Some("/"))), kind);

            // Broken while sampling: every reader says so.
            let copy = Copy::of(name);
            let mut set = ReaderSet::new(&host(&copy.0, None, None));
            for path in copy.files() {
                if !INVENTORY.contains(&path.rsplit('/').next().unwrap()) {
                    copy.rewrite(&path, break_it);
                }
            }
            let row = set.read().to_vec();
            set.refresh_probes();
            let sample = Sample {
                columns: set.columns().to_vec(),
                row,
                probes: set.probes().to_vec(),
            };
            check(&sample, kind);
            for probe in sample
                .probes
                .iter()
                .filter(|probe| probe.status != Status::Missing)
            {
                assert_eq!(
                    probe.status,
                    Status::Untrusted,
                    "{name}, {kind}: {} {}",
                    probe.name,
                    probe.reason
                );
                assert!(
                    probe.reason.contains(", line "),
                    "{name}, {kind}: {} {}",
                    probe.name,
                    probe.reason
                );
            }
        }
    }
}

fn check(sample: &Sample, kind: &str) {
    for (column, value) in sample.columns.iter().zip(&sample.row) {
        assert!(
            value.is_nan() || (value.is_finite() && *value >= 0.0),
            "{kind}: {column} = {value}"
        );
        assert!(
            value.is_nan() || *value < 1e22,
            "{kind}: {column} = {value}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_change_to_any_file_is_survived(
        tree in 0..TREES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<Vec<u8>>()), 1..6),
    ) {
        let copy = Copy::of(TREES[tree]);
        let mut set = ReaderSet::new(&host(&copy.0, Some(1), Some("/")));
        let files = copy.files();
        for (file, place, bytes) in &changes {
            copy.rewrite(&files[file.index(files.len())], |text| {
                let mut changed = text.to_vec();
                let start = place.index(text.len() + 1);
                changed.splice(start..(start + bytes.len()).min(text.len()), bytes.iter().copied());
                changed
            });
        }
        // Read by those that were set up before, and set up anew.
        set.read();
        set.refresh_probes();
        let sample = Sample::of(&host(&copy.0, Some(1), Some("/")));
        prop_assert_eq!(sample.columns.len(), sample.row.len());
    }
}
