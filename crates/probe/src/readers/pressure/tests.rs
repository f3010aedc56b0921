use super::*;
use crate::Status;
use crate::readers::tests::{Tree, sample};
use proptest::prelude::*;

const MEMORY: &str = "some avg10=0.33 avg60=0.45 avg300=1.07 total=15503301\n\
    full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";

#[test]
fn totals_are_seconds() {
    let tree = Tree::with("proc/pressure/memory", MEMORY);
    let mut reader = build(&tree.host()).remove(0);
    let sample = sample(&mut *reader);
    assert_eq!(
        sample.get(r#"pressure_stall_seconds_total{resource="memory",share="some"}"#),
        15.503301
    );
    assert_eq!(
        sample.get(r#"pressure_stall_seconds_total{resource="memory",share="full"}"#),
        7e-6
    );
    let probe = reader.probes().remove(0);
    assert_eq!(
        (probe.status, probe.reason.as_str()),
        (Status::Ok, "not given by this kernel: cpu, io, irq")
    );
}

#[test]
fn the_cpu_full_that_means_nothing_is_left_out() {
    let tree = Tree::with("proc/pressure/cpu", MEMORY);
    let columns = build(&tree.host())[0].probes().remove(0).columns;
    assert_eq!(
        columns,
        [r#"pressure_stall_seconds_total{resource="cpu",share="some"}"#]
    );
}

#[test]
fn a_kernel_without_it_is_told_what_to_do() {
    let probe = build(&Tree::empty().host())[0].probes().remove(0);
    assert_eq!(probe.status, Status::Missing);
    assert!(probe.reason.contains("psi=1"), "{}", probe.reason);
    assert_eq!(probe.columns.len(), 6);
}

#[test]
fn a_line_without_total_is_a_fault() {
    let fault = totals(b"some avg10=0.00\n", &["some"], &mut [0.0]).unwrap_err();
    assert_eq!(
        (fault.line, fault.item, fault.problem),
        (1, "total", Problem::Missing)
    );
}

proptest! {
    #[test]
    fn random_bytes_do_not_panic(bytes: Vec<u8>, text in "((some|full)( total=)?[0-9x=. ]{0,24}\n?){0,3}") {
        for text in [&bytes[..], text.as_bytes()] {
            let _ = totals(text, &["some", "full"], &mut [0.0; 2]);
        }
    }
}
