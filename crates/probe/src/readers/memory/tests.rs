use super::*;
use crate::readers::tests::{Tree, sample};
use proptest::prelude::*;

const MEMINFO: &str = "MemTotal:       24684084 kB\nMemFree:        23937708 kB\nMapped:            19196 kB\n\
    HugePages_Total:       3\nHugePages_Free:        1\nHugepagesize:       2048 kB\n";

#[test]
fn kinds_are_bytes_and_huge_pages_too() {
    let tree = Tree::with("proc/meminfo", MEMINFO);
    let sample = sample(&mut *build(&tree.host()).remove(0));
    assert_eq!(
        sample.get(r#"memory_bytes{kind="total"}"#),
        24684084.0 * 1024.0
    );
    assert_eq!(
        sample.get(r#"memory_bytes{kind="huge_pages_total"}"#),
        3.0 * 2097152.0
    );
    assert_eq!(
        sample.get(r#"memory_bytes{kind="huge_pages_free"}"#),
        2097152.0
    );
    assert!(sample.get(r#"memory_bytes{kind="available"}"#).is_nan());
}

#[test]
fn refaults_of_old_and_new_kernels() {
    let tree = Tree::with(
        "proc/vmstat",
        "pswpin 2\nworkingset_refault 7\noom_kill 1\n",
    );
    let mut reader = build(&tree.host()).remove(1);
    let old = sample(&mut *reader);
    assert_eq!(old.get("swap_in_bytes_total"), 8192.0);
    assert_eq!(old.get(r#"refaults_total{kind="file"}"#), 7.0);
    assert!(old.get(r#"refaults_total{kind="anonymous"}"#).is_nan());
    tree.write(
        "proc/vmstat",
        "workingset_refault_anon 8\nworkingset_refault_file 9\n",
    );
    let new = sample(&mut *reader);
    assert_eq!(new.get(r#"refaults_total{kind="anonymous"}"#), 8.0);
    assert_eq!(new.get(r#"refaults_total{kind="file"}"#), 9.0);
}

#[test]
fn a_file_is_known_by_any_one_of_its_events() {
    for text in [
        "workingset_refault 7\n",
        "pgmajfault 7\n",
        "a 1\noom_kill 7\n",
    ] {
        let mut row = [f64::NAN; EVENTS.len()];
        assert_eq!(events(text.as_bytes(), 4096.0, &mut row), Ok(()), "{text}");
        assert_eq!(row.iter().filter(|value| **value == 7.0).count(), 1);
    }
    let mut row = [f64::NAN; EVENTS.len()];
    let fault = events(b"nr_free_pages 7\n", 4096.0, &mut row).unwrap_err();
    assert_eq!(fault.item, "pgmajfault");
    assert!(row.iter().all(|value| value.is_nan()));
}

#[test]
fn garbage_is_named_with_its_line() {
    let tree = Tree::with("proc/meminfo", "MemTotal:       lots kB\n");
    let mut reader = build(&tree.host()).remove(0);
    assert!(
        sample(&mut *reader)
            .get(r#"memory_bytes{kind="total"}"#)
            .is_nan()
    );
    let reason = reader.probes().remove(0).reason;
    assert!(
        reason.contains("proc/meminfo, line 1: total is not a number"),
        "{reason}"
    );
}

proptest! {
    #[test]
    fn random_bytes_do_not_panic(bytes: Vec<u8>, text in "((MemTotal|Cached|pswpin|Hugepagesize)[: ]?[0-9x ]{0,24}\n?){0,4}") {
        for text in [&bytes[..], text.as_bytes()] {
            let _ = kinds(text, &mut [0.0; KINDS.len() + HUGE_PAGES.len()]);
            let _ = events(text, 4096.0, &mut [0.0; EVENTS.len()]);
        }
    }
}
