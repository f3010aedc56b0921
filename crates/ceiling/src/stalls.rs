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

/// Threads that watch cores until dropped.
#[derive(Debug)]
pub struct StallMeter(Attendants<Counter>);

impl StallMeter {
    /// Starts one thread a core; returns when all of them are on theirs.
    ///
    /// # Errors
    /// [`Error::Core`] when one may not be used, [`Error::Thread`] when a thread cannot be started,
    /// [`Error::Priority`] without the right to real-time priority (`CAP_SYS_NICE` or `RLIMIT_RTPRIO`): a thread that
    /// waits its turn would take busy cores for standing still.
    pub fn start(cores: &[usize]) -> Result<Self> {
        Attendants::start("stalls", cores, go_before_all, take).map(Self)
    }

    /// What each core did since the start, in the order in which the cores were given.
    #[must_use]
    pub fn read(&self) -> Vec<Reading> {
        self.0
            .states()
            .iter()
            .map(|counter| Reading {
                watched: Duration::from_nanos(counter.watched_nanoseconds.load(Relaxed)),
                stalled: Duration::from_nanos(counter.stalled_nanoseconds.load(Relaxed)),
            })
            .collect()
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
        return Err(Error::Priority(std::io::Error::last_os_error()));
    }
    Ok(())
}

fn take(counter: &Counter, stop: &AtomicBool) {
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
        let late = after.saturating_sub(due);
        if late >= LATE {
            counter
                .stalled_nanoseconds
                .fetch_add(nanoseconds(late), Relaxed);
        }
        counter
            .watched_nanoseconds
            .fetch_add(nanoseconds(after.saturating_sub(before)), Relaxed);
        before = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::usable_cores;

    #[test]
    fn every_core_is_watched_and_stalls_are_within_what_was_watched() {
        let cores = usable_cores().expect("a core");
        let mut meter = match StallMeter::start(&cores) {
            Ok(meter) => meter,
            // Said where it is used; nothing can be watched without the right.
            Err(Error::Priority(_)) => return,
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
        assert!(matches!(
            StallMeter::start(&[100_000]),
            Err(Error::Core { core: 100_000, .. })
        ));
    }
}
