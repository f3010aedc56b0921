//! The kernel's clocks as durations (`clock_gettime(2)`).

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time that cannot be set: since the machine started, suspension left out.
#[must_use]
pub fn monotonic() -> Duration {
    read(ClockId::Monotonic)
}

/// CPU time of the calling thread: what others took of the core in between does not count.
#[must_use]
pub fn thread_cpu() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// For counters that threads share.
#[must_use]
pub fn nanoseconds(duration: Duration) -> u64 {
    // Saturates after centuries.
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn read(clock: ClockId) -> Duration {
    // Neither clock goes below zero, which is all that could not be converted.
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}
