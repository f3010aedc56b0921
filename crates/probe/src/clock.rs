//! Ticks at absolute times, and the clocks behind them.

use rustix::thread::{ClockId as SleepClock, clock_nanosleep_absolute};
use rustix::time::{ClockId, Timespec, clock_gettime};

const NANOSECONDS: u64 = 1_000_000_000;

/// Nanoseconds of a clock.
pub(crate) fn now(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Neither clock goes below zero: the epoch and the start of the machine lie behind us.
    time.tv_sec as u64 * NANOSECONDS + time.tv_nsec as u64
}

pub(crate) fn monotonic() -> u64 {
    now(ClockId::Monotonic)
}

/// CPU time of the calling thread, in nanoseconds.
pub(crate) fn thread_cpu() -> u64 {
    now(ClockId::ThreadCPUTime)
}

/// Sleeps until a time of the monotonic clock, or less long if a signal came.
pub(crate) fn sleep_until(nanoseconds: u64) {
    let time = Timespec {
        tv_sec: (nanoseconds / NANOSECONDS) as i64,
        tv_nsec: (nanoseconds % NANOSECONDS) as _,
    };
    // Interrupted or not, the caller looks at the clock again.
    let _ = clock_nanosleep_absolute(SleepClock::Monotonic, &time);
}

/// Ticks at `start + k * interval`, and how many of them were missed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticks {
    deadline: u64,
    interval: u64,
    /// Ticks whose whole interval passed before they could start.
    pub missed: u64,
    /// The longest that a tick started after its time, in nanoseconds.
    pub worst_lateness: u64,
}

impl Ticks {
    /// The first tick is at `start`; both in nanoseconds.
    pub(crate) fn new(start: u64, interval: u64) -> Self {
        Self {
            deadline: start,
            interval,
            missed: 0,
            worst_lateness: 0,
        }
    }

    /// When the next tick is due.
    pub(crate) fn deadline(&self) -> u64 {
        self.deadline
    }

    /// A tick starts now. Those that are late by a whole interval or more are missed, and stay missed: the tick that
    /// starts is the last one that was due.
    pub(crate) fn begin(&mut self, now: u64) {
        let lateness = now.saturating_sub(self.deadline);
        self.worst_lateness = self.worst_lateness.max(lateness);
        let skipped = lateness / self.interval;
        self.missed += skipped;
        self.deadline += (skipped + 1) * self.interval;
    }

    /// No tick starts any more: those that were due a whole interval ago are missed.
    pub(crate) fn end(&mut self, now: u64) {
        self.missed += now.saturating_sub(self.deadline) / self.interval;
    }
}

/// Keeps something costly to a small share of the time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Throttle {
    next: u64,
    gap: u64,
    share: u64,
}

impl Throttle {
    /// At most once in `gap` nanoseconds, and for one part in `share` of the time. The first time is due at once.
    pub(crate) fn new(gap: u64, share: u64) -> Self {
        Self {
            next: 0,
            gap,
            share,
        }
    }

    pub(crate) fn is_due(&self, now: u64) -> bool {
        now >= self.next
    }

    /// It was done, from `start` to `end`.
    pub(crate) fn done(&mut self, start: u64, end: u64) {
        self.next = start
            + self
                .gap
                .max(end.saturating_sub(start).saturating_mul(self.share));
    }
}

#[cfg(test)]
mod tests;
