//! From a counter of energy to joules since the start, and what cannot be true of one.

/// A counter that has not moved for no longer than this may catch up at once, in seconds.
const SLACK_SECONDS: f64 = 0.5;

/// What is known of a counter of energy beforehand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Counter {
    /// Joules of one count.
    pub joules: f64,
    /// More than this is not believed, in watts.
    pub most_watts: f64,
    /// Whether a counter that never moved is one that nothing is connected to: it says nothing then.
    pub moves_always: bool,
}

/// Joules since the first reading; only ever grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Energy {
    counter: Counter,
    /// The last count.
    previous: Option<f64>,
    /// When the count last changed, or was first read, in nanoseconds.
    changed: u64,
    moved: bool,
    joules: f64,
}

/// What a reading said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Step {
    /// Joules since the start.
    Joules(f64),
    /// A counter that should move has not moved yet.
    Still,
    /// The count cannot be right: it is left out, and counting goes on from it.
    Implausible,
}

impl Energy {
    pub(super) fn new(counter: Counter) -> Self {
        Self {
            counter,
            previous: None,
            changed: 0,
            moved: false,
            joules: 0.0,
        }
    }

    /// Takes a count that was read at `now`, in nanoseconds. A counter with a `range` begins again at 0 after it; one
    /// without, or one that was set back (as by a suspended host), tells nothing of what lies between.
    pub(super) fn step(&mut self, count: f64, range: Option<f64>, now: u64) -> Step {
        let known = count.is_finite() && count >= 0.0;
        if !known || range.is_some_and(|range| count > range) {
            return Step::Implausible;
        }
        let Some(previous) = self.previous.replace(count) else {
            self.changed = now;
            return self.told();
        };
        let mut counts = count - previous;
        if counts < 0.0 {
            counts += range.unwrap_or(f64::NAN);
        }
        if counts == 0.0 {
            return self.told();
        }
        let joules = counts * self.counter.joules;
        let seconds = now.saturating_sub(self.changed) as f64 * 1e-9;
        self.changed = now;
        // One count may have been nearly full when the counter was first read.
        let most = self.counter.most_watts * (seconds + SLACK_SECONDS) + self.counter.joules;
        if !(joules >= 0.0 && joules <= most) {
            return Step::Implausible;
        }
        self.moved = true;
        self.joules += joules;
        Step::Joules(self.joules)
    }

    /// Whether it has not moved although it should have.
    pub(super) fn is_still(&self) -> bool {
        self.counter.moves_always && self.previous.is_some() && !self.moved
    }

    fn told(&self) -> Step {
        if self.is_still() {
            Step::Still
        } else {
            Step::Joules(self.joules)
        }
    }
}

#[cfg(test)]
mod tests {
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
}
