use super::*;
use crate::team::usable_cores;

#[test]
fn waking_late_is_a_stall_from_the_threshold_on() {
    let threshold = Duration::from_micros(250);
    for (due, woke, expected) in [
        (1000, 900, 0),
        (1000, 1000, 0),
        (1000, 1249, 0),
        (1000, 1250, 250),
        (1000, 3000, 2000),
    ] {
        assert_eq!(
            stalled(
                Duration::from_micros(due),
                Duration::from_micros(woke),
                threshold
            ),
            Duration::from_micros(expected),
            "due at {due} µs, awake at {woke} µs"
        );
    }
}

#[test]
fn stalls_add_up_beside_what_was_watched() {
    let counter = Counter::default();
    // In time, late by 2 ms, a little late, late by 1 ms.
    for (before, woke) in [(0, 510), (510, 3010), (3010, 3560), (3560, 5060)] {
        let before = Duration::from_micros(before);
        counter.add(before, before + PERIOD, Duration::from_micros(woke));
    }
    let expected = Reading {
        watched: Duration::from_micros(5060),
        stalled: Duration::from_micros(3000),
    };
    assert_eq!(counter.reading(), expected);
}

#[test]
fn every_core_is_watched_and_stalls_are_within_what_was_watched() {
    let cores = usable_cores().expect("a core");
    let mut meter = match StallMeter::start(&cores) {
        Ok(meter) => meter,
        // Said where it is used; nothing can be watched without the right.
        Err(error) if error.to_string().contains("real-time priority") => return,
        Err(other) => panic!("{other}"),
    };
    while meter.read().iter().any(|one| one.watched < 3 * PERIOD) {
        std::thread::yield_now();
    }
    meter.stop();
    let last = meter.read();
    assert_eq!(last.len(), cores.len());
    for one in &last {
        assert!(one.stalled < one.watched);
    }
    assert_eq!(meter.read(), last);
}

#[test]
fn a_core_that_is_not_there_is_an_error_and_leaves_no_thread() {
    let error = StallMeter::start(&[100_000]).expect_err("no such core");
    assert!(error.to_string().contains("core 100000 cannot be used"));
}
