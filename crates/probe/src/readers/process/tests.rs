use super::*;
use crate::Status;
use crate::readers::tests::{Tree, sample};

/// A process with one thread.
fn process(tree: &Tree, pid: u32, parent: u32, ticks: u64, children: &str) {
    let stat =
        format!("{pid} (p) S {parent} 0 0 0 -1 0 0 0 1 0 {ticks} 1 0 0 20 0 1 0 5 1000 10 0\n");
    tree.write(&format!("proc/{pid}/stat"), &stat);
    tree.write(
        &format!("proc/{pid}/io"),
        "read_bytes: 4096\nwrite_bytes: 512\n",
    );
    let thread = format!("proc/{pid}/task/{pid}");
    tree.write(&format!("{thread}/stat"), &stat);
    tree.write(&format!("{thread}/children"), children);
    tree.write(&format!("{thread}/schedstat"), "100 2000000000 3\n");
    tree.write(
        &format!("{thread}/status"),
        "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n",
    );
}

fn tree() -> Tree {
    let tree = Tree::empty();
    process(&tree, 10, 1, 100, "11 ");
    process(&tree, 11, 10, 50, "12 ");
    process(&tree, 12, 11, 7, "");
    process(&tree, 13, 1, 1000, "");
    tree
}

fn host(tree: &Tree, pid: u32) -> Host {
    Host {
        processes: vec![("system".to_owned(), pid)],
        ..tree.host()
    }
}

fn assert_whole(tree: &Tree) {
    let mut reader = build(&host(tree, 10)).remove(0);
    let row = sample(&mut *reader);
    assert_eq!(
        row.get(r#"process_cpu_seconds_total{process="system",state="user"}"#),
        1.57
    );
    assert_eq!(
        row.get(r#"process_cpu_seconds_total{process="system",state="system"}"#),
        0.03
    );
    assert_eq!(
        row.get(r#"process_resident_bytes{process="system"}"#),
        30.0 * 4096.0
    );
    assert_eq!(row.get(r#"process_count{process="system"}"#), 3.0);
    assert_eq!(row.get(r#"process_threads{process="system"}"#), 3.0);
    assert_eq!(
        row.get(r#"process_page_faults_major_total{process="system"}"#),
        3.0
    );
    assert_eq!(
        row.get(r#"process_run_delay_seconds_total{process="system"}"#),
        6.0
    );
    assert_eq!(
        row.get(r#"process_context_switches_total{kind="voluntary",process="system"}"#),
        15.0
    );
    assert_eq!(
        row.get(r#"process_context_switches_total{kind="involuntary",process="system"}"#),
        18.0
    );
    assert_eq!(
        row.get(r#"process_read_bytes_total{process="system"}"#),
        3.0 * 4096.0
    );
    assert_eq!(
        row.get(r#"process_write_bytes_total{process="system"}"#),
        3.0 * 512.0
    );
}

#[test]
fn descendants_are_found_by_their_parents_lists() {
    assert_whole(&tree());
}

#[test]
fn descendants_are_found_by_search_where_there_are_no_lists() {
    let tree = tree();
    for pid in [10, 11, 12, 13] {
        std::fs::remove_file(tree.root().join(format!("proc/{pid}/task/{pid}/children"))).unwrap();
    }
    assert_whole(&tree);
}

#[test]
fn what_a_process_used_stays_when_its_file_is_garbage() {
    let tree = tree();
    let mut reader = build(&host(&tree, 10)).remove(0);
    sample(&mut *reader);
    tree.write("proc/12/stat", "garbage\n");
    let row = sample(&mut *reader);
    assert_eq!(
        row.get(r#"process_cpu_seconds_total{process="system",state="user"}"#),
        1.57
    );
}

#[test]
fn a_process_that_is_not_there_is_missing() {
    let probes = build(&host(&tree(), 99))[0].probes();
    assert_eq!(probes[0].status, Status::Missing);
    assert_eq!(
        probes[0].reason,
        "there is no process 99, or /proc hides it (hidepid)"
    );
}

#[test]
fn bytes_that_may_not_be_read_are_missing_and_not_zero() {
    let tree = tree();
    std::fs::remove_file(tree.root().join("proc/10/io")).unwrap();
    let mut reader = build(&host(&tree, 10)).remove(0);
    let probes = reader.probes();
    assert_eq!(probes[1].status, Status::Missing);
    assert!(
        probes[1].reason.contains("proc/10/io"),
        "{}",
        probes[1].reason
    );
    assert_eq!(sample(&mut *reader).0.len(), COLUMNS.len());
}

#[test]
fn a_kernel_that_counts_no_run_delay_is_told() {
    let tree = tree();
    for pid in [10, 11, 12] {
        std::fs::remove_file(tree.root().join(format!("proc/{pid}/task/{pid}/schedstat"))).unwrap();
    }
    let mut reader = build(&host(&tree, 10)).remove(0);
    let row = sample(&mut *reader);
    assert!(
        row.get(r#"process_run_delay_seconds_total{process="system"}"#)
            .is_nan()
    );
    assert_eq!(
        row.get(r#"process_context_switches_total{kind="voluntary",process="system"}"#),
        15.0
    );
    assert!(reader.probes()[0].reason.contains("CONFIG_SCHED_INFO"));
}

/// Live: a child burns CPU time, ends and is waited for; the total goes on from where it was.
#[test]
fn a_living_child_is_found_and_its_time_stays_after_it_ended() {
    let own = std::process::id();
    let mut reader = build(&Host {
        processes: vec![("own".to_owned(), own)],
        ..Host::live()
    })
    .remove(0);
    let user = r#"process_cpu_seconds_total{process="own",state="user"}"#;
    let before = sample(&mut *reader).get(user);
    let mut child = std::process::Command::new("sh")
        .args([
            "-c",
            "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; read line",
        ])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Its output tells that the work is done.
    let mut word = [0; 5];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut word).unwrap();
    let mut during = f64::NAN;
    // The next search is due within half a second; reading goes on until it found the child.
    for _ in 0..1000 {
        let row = sample(&mut *reader);
        during = row.get(user);
        if row.get(r#"process_count{process="own"}"#) >= 2.0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(during > before, "{during} > {before}");
    drop(child.stdin.take());
    child.wait().unwrap();
    for _ in 0..3 {
        let after = sample(&mut *reader).get(user);
        assert!(after >= during, "{after} >= {during}");
    }
}
