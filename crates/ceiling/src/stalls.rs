//! How much of the time cores stood still: a thread of real-time priority on each, which wakes twice a millisecond and
//! notes how late it was.
//!
//! On a shared host the hypervisor takes a core away for a millisecond or two to let others run. That is little of the
//! core's time, and it decides what the slowest percent of requests see. What the host says of stolen time is counted
//! in whole ticks, which are longer than that. The idea is `hwlatdetect`'s and jHiccup's (Tene 2011).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec};

use crate::attendants::Attendants;
use crate::clock::{monotonic, nanoseconds};
use crate::{Error, Result};

const PERIOD: Duration = Duration::from_micros(500);
/// Waking takes this long at most where nothing stands still: an interrupt's work, a system call's end.
const LATE: Duration = Duration::from_micros(250);

/// What one core did since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// How long it was watched.
    pub watched: Duration,
    /// How much of that it stood still, as far as waking late says so: a stall of d is seen as d less up to half a
    /// millisecond.
    pub stalled: Duration,
}

#[derive(Debug, Default)]
struct Counter {
    watched_nanoseconds: AtomicU64,
    stalled_nanoseconds: AtomicU64,
}

impl Counter {
    /// A thread slept from `before`, until `woke` instead of `due`.
    fn add(&self, before: Duration, due: Duration, woke: Duration) {
        let stalled = nanoseconds(stalled(due, woke, LATE));
        self.stalled_nanoseconds.fetch_add(stalled, Relaxed);
        let watched = nanoseconds(woke.saturating_sub(before));
        self.watched_nanoseconds.fetch_add(watched, Relaxed);
    }

    fn reading(&self) -> Reading {
        Reading {
            watched: Duration::from_nanos(self.watched_nanoseconds.load(Relaxed)),
            stalled: Duration::from_nanos(self.stalled_nanoseconds.load(Relaxed)),
        }
    }
}

/// Threads that watch cores until dropped.
#[derive(Debug)]
pub struct StallMeter(Attendants<Counter>);

impl StallMeter {
    /// Starts one thread a core; returns when all of them are on theirs. Takes the right to real-time priority
    /// (`CAP_SYS_NICE` or `RLIMIT_RTPRIO`): a thread that waits its turn would take busy cores for standing still.
    pub fn start(cores: &[usize]) -> Result<Self> {
        Attendants::start("stalls", cores, go_before_all, take).map(Self)
    }

    /// What each core did since the start, in the order in which the cores were given.
    pub fn read(&self) -> Vec<Reading> {
        self.0.states().iter().map(Counter::reading).collect()
    }

    /// Ends the threads. Idempotent.
    pub fn stop(&mut self) {
        self.0.stop();
    }
}

/// Gives the calling thread the highest priority that there is (`sched(7)`): it runs for microseconds at a time.
fn go_before_all() -> Result<()> {
    // SAFETY: both calls take and return plain numbers; the parameter lives for the call.
    let refused = unsafe {
        let parameter = libc::sched_param {
            sched_priority: libc::sched_get_priority_max(libc::SCHED_FIFO),
        };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) != 0
    };
    if refused {
        let failed = Error::host("a thread could not be given real-time priority");
        return Err(failed(std::io::Error::last_os_error()));
    }
    Ok(())
}

fn take((): (), counter: &Counter, stop: &AtomicBool) {
    let mut before = monotonic();
    while !stop.load(Relaxed) {
        let due = before + PERIOD;
        let wanted = Timespec {
            tv_sec: due.as_secs().cast_signed(),
            tv_nsec: due.subsec_nanos().into(),
        };
        // Woken early by a signal, it is not late.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &wanted);
        let after = monotonic();
        counter.add(before, due, after);
        before = after;
    }
}

/// How long the core stood still that woke a thread at `woke` instead of `due`: nothing below `threshold`, which is
/// what waking takes anyway, and all of it from there on.
fn stalled(due: Duration, woke: Duration, threshold: Duration) -> Duration {
    let late = woke.saturating_sub(due);
    if late >= threshold {
        late
    } else {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests;
