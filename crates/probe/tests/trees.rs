//! The readers on recorded and written trees of other kinds of machine.

use crate::common::{Sample, TREES, host, tree};
use probe::{Host, Status};

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
    let reason = &sample.probe("cgroup:system").reason;
    assert!(reason.contains("no memory limit"), "{reason}");
    // The v1 file says "Total 0" and names no device: not counted is not zero.
    assert!(
        sample
            .get(r#"cgroup_read_bytes_total{cgroup="system"}"#)
            .is_nan()
    );
    assert!(reason.contains("counts no disk traffic"), "{reason}");
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
