use super::*;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
/// As RAPL has it: microjoules, 262 kJ until it begins again.
const RANGE: Option<f64> = Some(262_143_328_850.0);
const RAPL: Counter = Counter {
    joules: 1e-6,
    most_watts: 5000.0,
    moves_always: true,
};

#[test]
fn joules_count_from_the_first_reading() {
    let mut energy = Energy::new(RAPL);
    assert_eq!(energy.step(5_000_000.0, RANGE, 0), Step::Still);
    assert_eq!(energy.step(5_000_000.0, RANGE, SECOND), Step::Still);
    assert_eq!(
        energy.step(65_000_000.0, RANGE, 2 * SECOND),
        Step::Joules(60.0)
    );
    assert_eq!(
        energy.step(65_000_000.0, RANGE, 3 * SECOND),
        Step::Joules(60.0)
    );
}

#[test]
fn a_counter_that_begins_again_goes_on() {
    let mut energy = Energy::new(RAPL);
    energy.step(262_143_000_000.0, RANGE, 0);
    let Step::Joules(joules) = energy.step(99_671_150.0, RANGE, SECOND) else {
        panic!("a wrap is no fault");
    };
    assert!((joules - 100.0).abs() < 1e-3, "{joules}");
}

#[test]
fn a_counter_that_was_set_back_is_told_and_counted_on() {
    // What a suspended host leaves would be 250 kJ in a second if it were a wrap.
    let mut energy = Energy::new(RAPL);
    energy.step(10_000_000_000.0, RANGE, 0);
    energy.step(10_100_000_000.0, RANGE, SECOND);
    assert_eq!(
        energy.step(1_000_000.0, RANGE, 2 * SECOND),
        Step::Implausible
    );
    assert_eq!(
        energy.step(51_000_000.0, RANGE, 3 * SECOND),
        Step::Joules(150.0)
    );
    let mut without_range = Energy::new(Counter {
        moves_always: false,
        ..RAPL
    });
    without_range.step(7e6, None, 0);
    assert_eq!(without_range.step(3e6, None, SECOND), Step::Implausible);
    assert_eq!(without_range.step(4e6, None, 2 * SECOND), Step::Joules(1.0));
}

#[test]
fn counts_of_a_tenth_of_a_kilowatt_hour_may_come_at_once() {
    // A power strip: the next count may be due at any moment.
    let mut energy = Energy::new(Counter {
        joules: 360_000.0,
        most_watts: 100_000.0,
        moves_always: false,
    });
    assert_eq!(energy.step(71.0, None, 0), Step::Joules(0.0));
    assert_eq!(energy.step(72.0, None, SECOND), Step::Joules(360_000.0));
    assert_eq!(energy.step(80.0, None, 2 * SECOND), Step::Implausible);
}

#[test]
fn the_largest_step_is_what_is_used_in_the_time_and_one_count() {
    let most = |counts: f64, seconds: u64| {
        let mut energy = Energy::new(Counter {
            joules: 2.0,
            most_watts: 100.0,
            moves_always: false,
        });
        energy.step(0.0, None, 5 * SECOND);
        energy.step(counts, None, (5 + seconds) * SECOND)
    };
    // 100 W for 3.5 s (half a second may be missing from the time) and a count of 2 J: 352 J.
    assert_eq!(most(176.0, 3), Step::Joules(352.0));
    assert_eq!(most(177.0, 3), Step::Implausible);
    assert_eq!(most(26.0, 0), Step::Joules(52.0));
    assert_eq!(most(27.0, 0), Step::Implausible);
}

proptest! {
    #[test]
    fn joules_never_fall(counts in prop::collection::vec((any::<f64>(), 0u64..10_000_000_000), 1..30), wraps: bool) {
        let (mut energy, mut now, mut last) = (Energy::new(RAPL), 0, 0.0);
        for (count, pause) in counts {
            now += pause;
            if let Step::Joules(joules) = energy.step(count, RANGE.filter(|_| wraps), now) {
                prop_assert!(joules.is_finite() && joules >= last);
                last = joules;
            }
        }
    }
}
