//! Nanoseconds of the monotonic clock, and what they are called on the wall.
use rustix::time::{ClockId, clock_gettime};

/// Turns monotonic nanoseconds into nanoseconds since the epoch, by the difference at its creation: reported times
/// never jump when the clock is set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    epoch_minus_monotonic: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            epoch_minus_monotonic: read(ClockId::Realtime).wrapping_sub(now()),
        }
    }

    pub(crate) fn epoch_nanoseconds(&self, monotonic: u64) -> u64 {
        self.epoch_minus_monotonic.wrapping_add(monotonic)
    }
}

/// The monotonic clock, in nanoseconds.
#[inline]
pub(crate) fn now() -> u64 {
    read(ClockId::Monotonic)
}

/// Processor time of the calling thread, in nanoseconds.
pub(crate) fn thread_cpu() -> u64 {
    read(ClockId::ThreadCPUTime)
}

#[inline]
fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Nanoseconds of a positive number of seconds.
pub(crate) fn from_seconds(seconds: f64) -> u64 {
    // Saturates, which is as good as for ever.
    (seconds * 1e9) as u64
}

pub(crate) fn to_seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 * 1e-9
}
