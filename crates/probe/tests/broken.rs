//! The readers on trees that are broken, from the start or while they are read.

use crate::common::{Copy, Sample, TREES, host};
use probe::{ReaderSet, Status};
use proptest::prelude::*;

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
