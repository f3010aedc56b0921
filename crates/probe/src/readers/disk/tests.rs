use super::*;
use crate::Status;
use crate::readers::tests::{Tree, sample};
use proptest::prelude::*;

const DISKSTATS: &str = "   7       0 loop0 1 1 1 1 1 1 1 1 1 1 1\n\
    \x20259       0 nvme0n1 100 1 2000 300 400 1 5000 600 7 800 900 11 12 13 14 15 16\n\
    \x20259       1 nvme0n1p1 1 1 1 1 1 1 1 1 1 1 1 0 0 0 0 0 0\n\
    \x20  8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n";

fn tree() -> Tree {
    let tree = Tree::with("proc/diskstats", DISKSTATS);
    for name in ["loop0", "nvme0n1", "sda"] {
        tree.write(&format!("sys/block/{name}/size"), "1000\n");
    }
    tree
}

#[test]
fn whole_disks_of_old_and_new_kernels() {
    let tree = tree();
    let mut reader = build(&tree.host()).remove(0);
    let sample = sample(&mut *reader);
    assert_eq!(sample.0.len(), 2 * COLUMNS.len());
    assert_eq!(
        sample.get(r#"disk_read_bytes_total{device="nvme0n1"}"#),
        2000.0 * 512.0
    );
    assert_eq!(
        sample.get(r#"disk_write_seconds_total{device="nvme0n1"}"#),
        0.6
    );
    assert_eq!(
        sample.get(r#"disk_queue_seconds_total{device="nvme0n1"}"#),
        0.9
    );
    assert_eq!(sample.get(r#"disk_in_flight{device="sda"}"#), 9.0);
}

#[test]
fn partitions_are_known_by_name_where_sys_is_hidden() {
    let tree = Tree::with("proc/diskstats", DISKSTATS);
    let columns = build(&tree.host())[0].probes().remove(0).columns;
    assert_eq!(columns.len(), 2 * COLUMNS.len());
    for (name, partition) in [
        ("sda", false),
        ("sda1", true),
        ("nvme0n1", false),
        ("nvme0n1p2", true),
        ("mmcblk0", false),
        ("mmcblk0p1", true),
        ("xvda1", true),
        ("vdb", false),
        ("nbd0", false),
        ("nbd0p1", true),
    ] {
        assert_eq!(looks_like_partition(name), partition, "{name}");
    }
}

#[test]
fn a_disk_that_vanishes_is_not_a_number_and_one_that_appears_is_named() {
    let tree = tree();
    let mut reader = build(&tree.host()).remove(0);
    tree.write(
        "proc/diskstats",
        "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n   8      16 sdb 1 2 3 4 5 6 7 8 9 10 11\n",
    );
    let sample = sample(&mut *reader);
    assert!(sample.get(r#"disk_reads_total{device="nvme0n1"}"#).is_nan());
    assert_eq!(sample.get(r#"disk_reads_total{device="sda"}"#), 1.0);
    let probe = reader.probes().remove(0);
    assert_eq!(
        (probe.status, probe.reason.as_str()),
        (Status::Ok, "appeared after the start and not sampled: sdb")
    );
}

#[test]
fn times_go_on_when_32_bits_are_full() {
    let mut time = Milliseconds::default();
    assert_eq!(time.seconds(u64::from(u32::MAX)), 4294967.295);
    assert_eq!(time.seconds(999), 4294968.295);
    assert_eq!(time.seconds(990), 4294968.286);
}

#[test]
fn only_a_long_step_back_of_32_bits_is_a_start_over() {
    const HALF: u64 = 1 << 31;
    let steps = |first: u64, second: u64| {
        let mut time = Milliseconds::default();
        time.seconds(first);
        (time.seconds(second) * 1e3).round() as u64
    };
    assert_eq!(steps(HALF + 7, 6), (1 << 32) + 6);
    // By half of the range it went backwards, and is told as it is.
    assert_eq!(steps(HALF + 7, 7), 7);
    assert_eq!(steps(7, 7), 7);
    // A count that was beyond 32 bits is one of 64.
    assert_eq!(steps((1 << 32) - 1, 5), (1 << 32) + 5);
    assert_eq!(steps(1 << 32, 5), 5);
    assert_eq!(steps(1 << 40, 5), 5);
}

#[test]
fn a_host_without_disks_is_missing_them() {
    let tree = Tree::with(
        "proc/diskstats",
        "   7       0 loop0 1 1 1 1 1 1 1 1 1 1 1\n",
    );
    let probe = build(&tree.host())[0].probes().remove(0);
    assert_eq!(probe.status, Status::Missing);
    assert!(probe.reason.ends_with("lists no disk"), "{}", probe.reason);
}

proptest! {
    #[test]
    fn random_bytes_do_not_panic(bytes: Vec<u8>, numbers: [u64; 8]) {
        let _ = values(Fields::new(&bytes, 1), &mut Default::default(), &mut [0.0; COLUMNS.len()]);
        let mut time = Milliseconds::default();
        for number in numbers {
            time.seconds(number);
        }
    }
}
