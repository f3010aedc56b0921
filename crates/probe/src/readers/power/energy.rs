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
mod tests;
