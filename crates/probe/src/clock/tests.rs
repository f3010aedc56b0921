use super::*;
use proptest::prelude::*;

#[test]
fn a_tick_on_time_or_a_little_late_misses_nothing() {
    let mut ticks = Ticks::new(1000, 100);
    ticks.begin(1000);
    ticks.begin(1199);
    assert_eq!(
        (ticks.missed, ticks.worst_lateness, ticks.deadline()),
        (0, 99, 1200)
    );
}

#[test]
fn a_whole_interval_late_is_missed() {
    let mut ticks = Ticks::new(1000, 100);
    ticks.begin(1100);
    assert_eq!((ticks.missed, ticks.deadline()), (1, 1200));
    ticks.begin(1555);
    assert_eq!(
        (ticks.missed, ticks.worst_lateness, ticks.deadline()),
        (4, 355, 1600)
    );
}

#[test]
fn at_the_end_only_whole_intervals_are_missed() {
    let mut ticks = Ticks::new(1000, 100);
    ticks.begin(1000);
    for (now, missed) in [(1050, 0), (1199, 0), (1200, 1), (1310, 2)] {
        let mut ticks = ticks;
        ticks.end(now);
        assert_eq!(ticks.missed, missed, "at {now}");
    }
}

#[test]
fn what_takes_long_is_done_less_often() {
    let mut throttle = Throttle::new(1000, 100);
    assert!(throttle.is_due(0));
    throttle.done(0, 5);
    assert!(!throttle.is_due(999) && throttle.is_due(1000));
    throttle.done(1000, 1050);
    assert!(!throttle.is_due(5999) && throttle.is_due(6000));
}

proptest! {
    #[test]
    fn ticks_begun_and_missed_are_all_that_were_due(delays in prop::collection::vec(0u64..1000, 1..50)) {
        let mut ticks = Ticks::new(0, 100);
        let mut now = 0;
        for delay in &delays {
            now = ticks.deadline().max(now) + delay;
            ticks.begin(now);
            prop_assert!(ticks.deadline() > now);
        }
        // Deadlines 0, 100, ... up to now.
        prop_assert_eq!(delays.len() as u64 + ticks.missed, now / 100 + 1);
    }
}
