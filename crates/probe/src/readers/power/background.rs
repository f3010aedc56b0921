//! Slow meters: a thread of its own reads each, and a tick takes the latest value.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::meter::Meter;
use super::sheet::{Said, Sheet};
use crate::clock;
use crate::error::ProbeError;
use crate::probes::join;

/// A value is too old after so many intervals.
const INTERVALS_UNTIL_STALE: u64 = 3;
/// How long the end of a meter waits for a reading under way.
const LONGEST_FAREWELL: Duration = Duration::from_millis(1500);
/// What a meter that did not answer may be asked again at the start.
const FIRST_ATTEMPTS: u64 = 2;
/// How soon that is.
const SOON: Duration = Duration::from_millis(100);

/// How often a meter is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub interval: Duration,
    /// It is read for one part in so many of the time at most: reading it takes time of this host's cores.
    pub share: u64,
    /// How long the first reading may be waited for.
    pub patience: Duration,
}

impl Pace {
    /// Of a meter whose reading is mostly waiting, at most for `timeout`: that takes nothing of this host.
    pub(super) fn of_waiting(interval: Duration, timeout: Duration) -> Self {
        Self {
            interval,
            share: 1,
            patience: 2 * timeout + Duration::from_secs(1),
        }
    }
}

/// A meter that is read on a thread of its own, until this is dropped.
pub(super) struct Background {
    shared: Arc<Shared>,
    stop: Arc<std::sync::atomic::AtomicBool>,
    /// None once it was joined.
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    slots: Vec<Slot>,
    /// How old a value may be, in nanoseconds.
    oldest: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

/// The latest value of a channel; written by the meter's thread alone.
struct Slot {
    bits: AtomicU64,
    /// When it was read, on the monotonic clock; 0 is never.
    time: AtomicU64,
}

#[derive(Default)]
struct State {
    stopping: bool,
    ended: bool,
    attempts: u64,
    answered: bool,
    complaint: String,
    /// What readings took, in nanoseconds.
    spent: u64,
}

impl Background {
    /// Starts the thread and waits for a first value, though not for longer than the pace allows.
    pub(super) fn start(
        mut meter: Box<dyn Meter>,
        mut sheet: Sheet,
        pace: Pace,
    ) -> Result<Self, ProbeError> {
        let slot = |_| Slot {
            bits: AtomicU64::new(f64::NAN.to_bits()),
            time: AtomicU64::new(0),
        };
        let shared = Arc::new(Shared {
            slots: (0..sheet.len()).map(slot).collect(),
            oldest: AtomicU64::new(INTERVALS_UNTIL_STALE * pace.interval.as_nanos() as u64),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let (stop, inner) = (sheet.stop(), Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name("rackscope-meter".to_owned())
            .spawn(move || {
                inner.run(&mut *meter, &mut sheet, pace);
                // A command of the meter's has ended before that is reported.
                drop(meter);
                inner.lock().ended = true;
                inner.changed.notify_all();
            })
            .map_err(ProbeError::Thread)?;
        let background = Self {
            shared,
            stop,
            thread: Some(thread),
        };
        background.shared.wait_until(pace.patience, |state| {
            state.ended || state.answered || state.attempts >= FIRST_ATTEMPTS
        });
        Ok(background)
    }

    /// Whether there was any value yet.
    pub(super) fn has_answered(&self) -> bool {
        self.shared.lock().answered
    }

    /// The latest values; NaN where there is none or only an old one. Never waits.
    pub(super) fn write(&self, row: &mut [f64], now: u64) {
        let oldest = self.shared.oldest.load(Ordering::Relaxed);
        for (value, slot) in row.iter_mut().zip(&self.shared.slots) {
            // The time first: the value is then of that time or a later one.
            let time = slot.time.load(Ordering::Acquire);
            let fresh = time > 0 && now.saturating_sub(time) <= oldest;
            *value = if fresh {
                f64::from_bits(slot.bits.load(Ordering::Acquire))
            } else {
                f64::NAN
            };
        }
    }

    /// What went wrong so far, and what a reading takes in seconds (NaN before the first).
    pub(super) fn account(&self) -> (String, f64) {
        let state = self.shared.lock();
        let seconds = state.spent as f64 * 1e-9 / state.attempts as f64;
        let mut complaint = state.complaint.clone();
        if state.attempts == 0 {
            complaint = "it has not answered yet".to_owned();
        }
        (complaint, seconds)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        let ended = self
            .shared
            .wait_until(LONGEST_FAREWELL, |state| state.ended);
        // One that hangs in the kernel (a file on a dead server) is left behind: it does no more than that reading.
        if let Some(thread) = self.thread.take().filter(|_| ended) {
            // A meter that panicked has said so on standard error; there is nobody left to tell of it.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements that change it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until(&self, most: Duration, done: impl Fn(&State) -> bool) -> bool {
        let deadline = Instant::now() + most;
        let mut state = self.lock();
        while !done(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }

    fn run(&self, meter: &mut dyn Meter, sheet: &mut Sheet, pace: Pace) {
        let interval = pace.interval.as_nanos() as u64;
        loop {
            let start = clock::monotonic();
            sheet.begin(start);
            meter.read(sheet);
            let end = clock::monotonic();
            let gap = interval.max((end - start).saturating_mul(pace.share));
            self.publish(sheet, end);
            self.oldest.store(
                INTERVALS_UNTIL_STALE * gap + (end - start),
                Ordering::Relaxed,
            );
            let is_first_failure = {
                let mut state = self.lock();
                state.attempts += 1;
                state.answered |= sheet.has_value();
                state.spent += end - start;
                state.complaint = join(meter.complaint(), &sheet.complaint());
                !state.answered && state.attempts < FIRST_ATTEMPTS
            };
            self.changed.notify_all();
            let mut pause = Duration::from_nanos((start + gap).saturating_sub(clock::monotonic()));
            if is_first_failure {
                // Somebody waits for it.
                pause = pause.min(SOON);
            }
            if self.wait_until(pause, |state| state.stopping) || sheet.is_stopped() {
                return;
            }
        }
    }

    fn publish(&self, sheet: &Sheet, now: u64) {
        for (slot, said) in self.slots.iter().zip(sheet.said()) {
            let value = match said {
                // The last value stands until it is too old.
                Said::Nothing => continue,
                Said::Nonsense => f64::NAN,
                Said::Value(value) => value,
            };
            slot.bits.store(value.to_bits(), Ordering::Release);
            slot.time.store(now, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests;
