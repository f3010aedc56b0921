//! What the workers of one phase share.
use crate::config::{LoopConfig, PhaseConfig};
use crate::statistics::WorkerStatistics;
use net::Waker;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Phase {
    pub(crate) config: PhaseConfig,
    /// Number of the phase in its client, from 0 on.
    pub(crate) number: u64,
    /// When it starts, in monotonic nanoseconds.
    pub(crate) start: u64,
    /// When no more operations start, in monotonic nanoseconds.
    pub(crate) deadline: u64,
    pub(crate) statistics: Vec<WorkerStatistics>,
    pub(crate) first_error: FirstSentence,
    pub(crate) first_wrong: FirstSentence,
    /// Why it ended early.
    pub(crate) failure: FirstSentence,
    stop: AtomicBool,
    wakers: Vec<Arc<Waker>>,
    running: Mutex<usize>,
    ended: Condvar,
}

impl Phase {
    pub(crate) fn new(
        config: PhaseConfig,
        number: u64,
        (start, deadline): (u64, u64),
        wakers: Vec<Arc<Waker>>,
    ) -> Self {
        let open = matches!(config.control, LoopConfig::Open { .. });
        let statistics = wakers
            .iter()
            .map(|_| WorkerStatistics::new(config.drawn_operations(), config.record_latency, open))
            .collect();
        Self {
            number,
            start,
            deadline,
            statistics,
            first_error: FirstSentence::default(),
            first_wrong: FirstSentence::default(),
            failure: FirstSentence::default(),
            stop: AtomicBool::new(false),
            running: Mutex::new(wakers.len()),
            wakers,
            ended: Condvar::new(),
            config,
        }
    }

    /// Whether no more operations should start, and those under way should not be waited for long.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        for waker in &self.wakers {
            waker.wake();
        }
    }

    /// End the phase early, because of `why`.
    pub(crate) fn fail(&self, why: String) {
        self.failure.offer(|| why);
        self.stop();
    }

    pub(crate) fn worker_ended(&self) {
        *lock(&self.running) -= 1;
        self.ended.notify_all();
    }

    /// Wait until all workers have ended, at most `timeout`; whether they have.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let began = Instant::now();
        let mut running = lock(&self.running);
        while *running > 0 {
            let left = timeout.saturating_sub(began.elapsed());
            if left.is_zero() {
                return false;
            }
            (running, _) = self
                .ended
                .wait_timeout(running, left)
                .unwrap_or_else(PoisonError::into_inner);
        }
        true
    }
}

/// The first of several sentences.
#[derive(Debug, Default)]
pub(crate) struct FirstSentence(OnceLock<String>);

impl FirstSentence {
    /// Take what `sentence` says, unless there is one already.
    pub(crate) fn offer(&self, sentence: impl FnOnce() -> String) {
        self.0.get_or_init(sentence);
    }

    pub(crate) fn get(&self) -> Option<String> {
        self.0.get().cloned()
    }
}

/// Lock, also after a panic elsewhere: what these locks guard is whole after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
