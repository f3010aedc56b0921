use rustix::time::{ClockId, clock_gettime};

/// Expiration times up to this are relative to now (30 days, as `protocol.txt` says); larger ones are Unix time.
const RELATIVE_SECONDS_MAX: i32 = 60 * 60 * 24 * 30;

/// The time at the start: so late that an item can be past its time, and a moment before the start too.
const START: u32 = 2;

/// An item's deadline in the past.
const PAST: u32 = 1;

/// Seconds since shortly before the start, its own or that of the server whose items it took over. Steady: setting the
/// host's clock does not move it.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// Of the steady clock.
    zero: i64,
    /// Of Unix time.
    zero_unix: i64,
    /// The second of the start.
    started: u32,
}

impl Clock {
    /// A clock that starts now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            zero: steady_seconds() - i64::from(START),
            zero_unix: unix_seconds() - i64::from(START),
            started: START,
        }
    }

    /// A clock for which the start was second `unix_seconds` of Unix time, for a harness that says what time it is.
    #[cfg(feature = "harness")]
    pub(crate) fn started_at(unix_seconds: i64) -> (Self, u32) {
        let clock = Self {
            zero: 0,
            zero_unix: unix_seconds - i64::from(START),
            started: START,
        };
        (clock, START)
    }

    /// A clock that goes on from one that stood at second `then` or later, and whose second 0 was `zero_unix`, by the
    /// host's clock; what that says of a time before `then` is not believed. `None` where so many seconds cannot be
    /// counted.
    #[must_use]
    pub fn resume(zero_unix: i64, then: u32) -> Option<Self> {
        let unix = unix_seconds();
        let elapsed = unix.checked_sub(zero_unix)?;
        let now = u32::try_from(elapsed.max(then.into())).ok()?;
        // Half of all seconds are left to count.
        (START..u32::MAX / 2).contains(&now).then(|| Self {
            zero: steady_seconds() - i64::from(now),
            zero_unix: unix - i64::from(now),
            started: now,
        })
    }

    /// The current second.
    #[inline]
    pub fn now(&self) -> u32 {
        (steady_seconds() - self.zero) as u32
    }

    /// How long it has run at second `now`, in seconds.
    #[must_use]
    pub fn uptime_seconds(&self, now: u32) -> u32 {
        now - self.started
    }

    /// Second `now` as Unix time.
    #[must_use]
    pub fn unix_seconds(&self, now: u32) -> i64 {
        self.zero_unix + i64::from(now)
    }

    /// The second at which an item with the client's `exptime` expires; 0 means never, and what is over already is a
    /// second in the past.
    #[inline]
    #[must_use]
    pub fn deadline(&self, exptime: i32, now: u32) -> u32 {
        match exptime {
            0 => 0,
            ..0 => PAST,
            1..=RELATIVE_SECONDS_MAX => now.saturating_add(exptime.unsigned_abs()),
            _ => u32::try_from(i64::from(exptime) - self.zero_unix)
                .map_or(PAST, |seconds| seconds.max(PAST)),
        }
    }
}

/// Seconds of a clock that nobody sets.
#[inline]
fn steady_seconds() -> i64 {
    #[cfg(feature = "harness")]
    if let Some(seconds) = SIMULATED_SECONDS.get() {
        return seconds;
    }
    clock_gettime(ClockId::MonotonicCoarse).tv_sec
}

fn unix_seconds() -> i64 {
    #[cfg(feature = "harness")]
    if let Some(seconds) = SIMULATED_SECONDS.get() {
        return seconds;
    }
    clock_gettime(ClockId::Realtime).tv_sec
}

#[cfg(feature = "harness")]
thread_local! {
    /// What all clocks of this thread say, where a simulation says what time it is.
    pub(crate) static SIMULATED_SECONDS: std::cell::Cell<Option<i64>> = const { std::cell::Cell::new(None) };
}

#[cfg(test)]
mod tests;
