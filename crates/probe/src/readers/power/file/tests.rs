use super::super::spec::{Measured, Quantity};
use super::*;
use crate::Status;
use crate::readers::tests::{Tree, sample};
use proptest::prelude::*;
use std::path::Path;

fn spec(path: &Path, quantity: Quantity, scale: f64) -> FileSpec {
    FileSpec {
        path: path.to_owned(),
        measured: Measured {
            domain: "server".to_owned(),
            quantity,
            scale,
        },
        interval_seconds: 60.0,
    }
}

fn meter(path: &Path, quantity: Quantity, scale: f64) -> Box<dyn Reader> {
    let meter = spec(path, quantity, scale);
    let found = Found {
        about: About::new("file", NEEDS),
        channels: vec![meter.measured.channel()],
        meter: Box::new(meter),
    };
    found.at_each_tick()
}

#[test]
fn the_first_line_is_the_number() {
    let tree = Tree::empty();
    let path = tree.write("watts", "0.2505e3\nmore\n");
    let mut reader = meter(&path, Quantity::Watts, 0.5);
    let column = r#"power_watts{domain="server",meter="file"}"#;
    assert_eq!(sample(&mut *reader).get(column), 125.25);
    // Written anew, without an end of line.
    std::fs::remove_file(&path).unwrap();
    tree.write("watts", "300");
    assert_eq!(sample(&mut *reader).get(column), 150.0);
}

#[test]
fn joules_count_from_the_start_and_a_counter_set_back_is_told() {
    let tree = Tree::empty();
    let path = tree.write("kilojoules", "12\n");
    let mut reader = meter(&path, Quantity::Joules, 1000.0);
    let column = r#"energy_joules_total{domain="server",meter="file"}"#;
    assert_eq!(sample(&mut *reader).get(column), 0.0);
    tree.write("kilojoules", "15\n");
    assert_eq!(sample(&mut *reader).get(column), 3000.0);
    tree.write("kilojoules", "1\n");
    assert!(sample(&mut *reader).get(column).is_nan());
    tree.write("kilojoules", "2\n");
    assert_eq!(sample(&mut *reader).get(column), 4000.0);
    assert_eq!(reader.probes()[0].status, Status::Untrusted);
}

#[test]
fn what_is_no_number_is_missing_with_path_and_line() {
    let tree = Tree::empty();
    let path = tree.write("watts", "");
    let long = "1".repeat(LONGEST_NUMBER + 1);
    for text in ["", "\n", "12 W\n", "nan\n", "inf\n", "1e999\n", &long] {
        tree.write("watts", text);
        let mut reader = meter(&path, Quantity::Watts, 1.0);
        assert!(sample(&mut *reader).0[0].1.is_nan());
        let reason = &reader.probes()[0].reason;
        let place = format!("{}, line 1: ", path.display());
        assert!(reason.starts_with(&place), "{text}: {reason}");
    }
    for path in ["absent", ""] {
        let mut reader = meter(&tree.root().join(path), Quantity::Watts, 1.0);
        assert!(sample(&mut *reader).0[0].1.is_nan());
        assert_eq!(reader.probes()[0].status, Status::Untrusted);
    }
}

#[test]
fn a_file_is_read_beside_the_ticks() {
    let tree = Tree::empty();
    let path = tree.write("watts", "250\n");
    let mut reader = build(&spec(&path, Quantity::Watts, 1.0));
    assert_eq!(sample(&mut *reader).0[0].1, 250.0);
    assert_eq!(reader.probes()[0].name, "power:file:server");
    let absent = tree.root().join("absent");
    let reader = build(&FileSpec {
        interval_seconds: 0.05,
        ..spec(&absent, Quantity::Watts, 1.0)
    });
    let probe = reader.probes().remove(0);
    assert_eq!(probe.status, Status::Missing);
    assert!(
        probe.reason.contains("absent: No such file"),
        "{}",
        probe.reason
    );
}

proptest! {
    #[test]
    fn any_line_is_a_number_or_none(line: Vec<u8>) {
        prop_assert!(number(&line).is_none_or(f64::is_finite));
        prop_assert!(shorten(&line).chars().all(|character| !character.is_control()));
    }
}
