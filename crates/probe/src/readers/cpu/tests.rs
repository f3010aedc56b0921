use super::*;
use crate::readers::tests::{Tree, sample};
use proptest::prelude::*;

const STAT: &str = "cpu  100 20 30 4000 50 6 7 8 9 10\n\
    cpu0 50 10 15 2000 25 3 4 4 0 0\n\
    cpu2 50 10 15 2000 25 3 3 4 0 0\n\
    intr 12345 1 2 3\n\
    ctxt 777\n\
    btime 1700000000\n\
    processes 42\n\
    procs_running 3\n\
    procs_blocked 2\n\
    softirq 99 1 2\n";

fn tree() -> Tree {
    let tree = Tree::with("proc/stat", STAT);
    tree.write("proc/loadavg", "0.09 0.05 0.01 3/107 7666\n");
    tree.write("sys/devices/system/cpu/present", "0-2\n");
    tree
}

#[test]
fn times_are_seconds_and_an_offline_core_is_not_a_number() {
    let tree = tree();
    let mut reader = build(&tree.host()).remove(0);
    let sample = sample(&mut *reader);
    assert_eq!(sample.get(r#"cpu_seconds_total{state="user"}"#), 1.0);
    assert_eq!(sample.get(r#"cpu_seconds_total{state="steal"}"#), 0.08);
    assert_eq!(
        sample.get(r#"cpu_core_seconds_total{core="2",state="idle"}"#),
        20.0
    );
    assert!(
        sample
            .get(r#"cpu_core_seconds_total{core="1",state="idle"}"#)
            .is_nan()
    );
    assert_eq!(sample.get("context_switches_total"), 777.0);
    assert_eq!(sample.get("interrupts_total"), 12345.0);
    assert_eq!(sample.get("processes_created_total"), 42.0);
    assert_eq!(sample.get("processes_blocked"), 2.0);
    assert_eq!(sample.get("run_queue_length"), 2.0);
}

#[test]
fn idle_time_that_decreases_is_held() {
    let tree = tree();
    let mut reader = build(&tree.host()).remove(0);
    sample(&mut *reader);
    tree.write("proc/stat", &STAT.replace("4000 50", "3990 49"));
    let after = sample(&mut *reader);
    assert_eq!(after.get(r#"cpu_seconds_total{state="idle"}"#), 40.0);
    assert_eq!(after.get(r#"cpu_seconds_total{state="iowait"}"#), 0.5);
}

#[test]
fn a_core_that_appears_is_named() {
    let tree = tree();
    let mut reader = build(&tree.host()).remove(0);
    tree.write(
        "proc/stat",
        &STAT.replace("intr", "cpu5 1 1 1 1 1 1 1 1 0 0\nintr"),
    );
    sample(&mut *reader);
    assert!(
        reader.probes()[0].reason.contains("core 5 appeared"),
        "{}",
        reader.probes()[0].reason
    );
}

#[test]
fn a_cut_off_file_keeps_what_came_before_and_says_where() {
    let tree = tree();
    let mut reader = build(&tree.host()).remove(0);
    tree.write("proc/stat", &STAT[..STAT.find("cpu2").unwrap() + 9]);
    let sample = sample(&mut *reader);
    assert_eq!(
        sample.get(r#"cpu_core_seconds_total{core="0",state="user"}"#),
        0.5
    );
    assert!(
        sample
            .get(r#"cpu_core_seconds_total{core="2",state="user"}"#)
            .is_nan()
    );
    assert!(sample.get("context_switches_total").is_nan());
    let probe = reader.probes().remove(0);
    assert_eq!(probe.status, crate::Status::Untrusted);
    assert!(
        probe.reason.contains("proc/stat, line 3"),
        "{}",
        probe.reason
    );
}

#[test]
fn without_proc_the_probe_is_missing() {
    let probe = build(&Tree::empty().host())[0].probes().remove(0);
    assert_eq!(probe.status, crate::Status::Missing);
    assert!(
        probe.reason.contains("cannot open") && probe.reason.contains("proc/stat"),
        "{}",
        probe.reason
    );
}

proptest! {
    #[test]
    fn random_bytes_do_not_panic(bytes: Vec<u8>, number: u32) {
        let line = Line { text: &bytes, number };
        if let Some((_, fields)) = core_line(line) {
            let _ = times(fields, 0.01, &mut [0.0; 8], &mut [0.0; 2]);
        }
        let _ = counter(line, &mut [0.0; FIRST_CORE]);
        let _ = runnable(&bytes);
    }
}
