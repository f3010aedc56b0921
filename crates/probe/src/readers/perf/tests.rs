use super::*;
use crate::Status;
use crate::readers::tests::{Tree, sample};

/// A scope over software events, which stand in for cycles and the rest: the machinery is the same.
fn software_scope(targets: &[Target]) -> Option<Scope> {
    let events = [
        Event::TASK_CLOCK,
        Event::CONTEXT_SWITCHES,
        Event::PAGE_FAULTS,
    ];
    match open_with_what_is_permitted(targets, &events, false) {
        Ok(Counters { sets, groups, .. }) => Some(Scope {
            scope: SYSTEM,
            sources: [Some((0, 0)), Some((0, 1)), Some((0, 2)), None],
            known: [true, false],
            totals: vec![Total::default(); sets.len()],
            groups,
            note: String::new(),
            untrusted: false,
            caveat: "",
        }),
        Err(Errno::ACCESS | Errno::PERM | Errno::NOSYS) => {
            eprintln!("skipped: perf events are not permitted here");
            None
        }
        Err(errno) => panic!("{errno}"),
    }
}

#[test]
fn a_scope_adds_up_its_targets_and_tells_what_it_lacks() {
    let own = rustix::thread::gettid().as_raw_pid() as u32;
    let Some(mut scope) = software_scope(&[Target::Thread(own)]) else {
        return;
    };
    let first = sample(&mut scope);
    // So much that it is mapped anew, whatever was given back before.
    std::thread::spawn(|| std::hint::black_box(vec![1u8; 64 << 20]))
        .join()
        .unwrap();
    let second = sample(&mut scope);
    let clock = r#"perf_cycles_total{scope="system"}"#;
    assert!(second.get(clock) > first.get(clock));
    assert_eq!(second.get(r#"perf_running_ratio{scope="system"}"#), 1.0);
    assert!(
        second.get(r#"perf_llc_misses_total{scope="system"}"#)
            > first.get(r#"perf_llc_misses_total{scope="system"}"#)
    );
    assert!(
        second
            .get(r#"perf_dram_fills_total{scope="system"}"#)
            .is_nan()
    );
    let reason = &scope.probes()[1].reason;
    assert_eq!(
        reason,
        "no event of this CPU is known that counts fills from DRAM"
    );
}

#[test]
fn a_thread_that_is_gone_is_said() {
    // Above the kernel's largest process number, 2^22.
    let errno = open_all(&[Target::Thread(1 << 23)], &[Event::TASK_CLOCK], true)
        .err()
        .unwrap();
    assert!(
        matches!(
            errno,
            Errno::SRCH | Errno::ACCESS | Errno::PERM | Errno::NOSYS
        ),
        "{errno}"
    );
}

#[test]
fn switched_off_and_recorded_are_missing() {
    let tree = Tree::with("sys/bus/event_source/devices/cpu/type", "4\n");
    let reasons = |host: &Host| -> Vec<String> {
        build(host)
            .iter()
            .flat_map(|reader| reader.probes())
            .map(|probe| probe.reason)
            .collect()
    };
    let off = Host {
        perf: false,
        processes: vec![(SYSTEM.to_owned(), 1), ("other".to_owned(), 2)],
        ..tree.host()
    };
    assert_eq!(reasons(&off), ["switched off"; 4]);
    assert_eq!(
        reasons(&tree.host()),
        ["a recorded tree has no counters to open"; 2]
    );
}

#[test]
fn counters_that_never_ran_are_not_a_number() {
    let mut scope = Scope {
        scope: "host",
        sources: [Some((0, 0)), Some((0, 1)), None, None],
        known: [false, false],
        groups: Vec::new(),
        totals: vec![Total::default()],
        note: String::new(),
        untrusted: false,
        caveat: "",
    };
    assert_eq!(scope.probes()[1].status, Status::Missing);
    let row = sample(&mut scope);
    assert_eq!(row.0.len(), CORE_COLUMNS.len());
    assert!(row.0.iter().all(|(_, value)| value.is_nan()));
}
