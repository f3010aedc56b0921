//! The thread that samples, on absolute ticks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::time::ClockId;
use serde::Serialize;

use crate::clock::{self, Ticks};
use crate::error::ProbeError;
use crate::host::Host;
use crate::probes::Probe;
use crate::ring::{Ring, Rows};
use crate::set::ReaderSet;

/// Rows are kept for this long if they are not drained.
const KEPT_SECONDS: f64 = 120.0;

/// The longest sleep, so that a stop is soon heard; in nanoseconds.
const LONGEST_SLEEP: u64 = 100_000_000;

/// What a raised scheduling priority is, where it is permitted: a host under full load is when ticks matter most.
const RAISED_NICE: i32 = -10;

/// Samples a host on a thread of its own.
pub struct Sampler {
    columns: Vec<String>,
    probes: Vec<Probe>,
    interval: Duration,
    ring: Arc<Ring>,
    state: State,
}

enum State {
    Ready(Box<ReaderSet>),
    Running {
        stop: Arc<AtomicBool>,
        thread: JoinHandle<(ReaderSet, Summary)>,
    },
    Stopped,
}

/// What the sampling itself was like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Rows that were read.
    pub ticks: u64,
    /// Ticks whose whole interval passed before they could start; there is no row for them.
    pub missed_ticks: u64,
    /// Rows that were read but not kept, because none were drained.
    pub dropped_rows: u64,
    /// CPU time of the sampling thread, in seconds.
    pub cpu_seconds: f64,
    /// From start to stop, in seconds.
    pub wall_seconds: f64,
    /// The longest that a tick started after its time, in seconds.
    pub worst_lateness_seconds: f64,
    /// The nice value of the sampling thread: below zero where raising its priority was permitted.
    pub nice: i32,
}

impl Sampler {
    /// Sets up the readers of `host`, to be read every [`Host::interval`] (10 ms to 1 s). What cannot be read is no
    /// error: [`Sampler::probes`] says it.
    pub fn new(host: &Host) -> Result<Self, ProbeError> {
        let interval = host.interval;
        let seconds = interval.as_secs_f64();
        if !(0.01..=1.0).contains(&seconds) {
            return Err(ProbeError::Interval(seconds));
        }
        let set = ReaderSet::new(host);
        let columns = set.columns().to_vec();
        let ring = Arc::new(Ring::new(columns.len(), (KEPT_SECONDS / seconds) as usize));
        Ok(Self {
            probes: set.probes().to_vec(),
            columns,
            interval,
            ring,
            state: State::Ready(Box::new(set)),
        })
    }

    /// The metric names, in the order of the values of a row.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// What the probes said at construction and, once stopped, at the end.
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// Starts the thread; the first row is read at once.
    pub fn start(&mut self) -> Result<(), ProbeError> {
        let set = match std::mem::replace(&mut self.state, State::Stopped) {
            State::Ready(set) => *set,
            other => {
                self.state = other;
                return Err(ProbeError::State(
                    "this sampler was started before: make a new one",
                ));
            }
        };
        let stop = Arc::new(AtomicBool::new(false));
        let interval = self.interval.as_nanos() as u64;
        let (ring, stopped) = (Arc::clone(&self.ring), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("rackscope-probe".to_owned())
            .spawn(move || sample(set, interval, &ring, &stopped))
            .map_err(ProbeError::Thread)?;
        self.state = State::Running { stop, thread };
        Ok(())
    }

    /// Takes the rows that were read since the last call; never makes the sampling thread wait.
    pub fn drain(&mut self) -> Rows {
        self.ring.drain()
    }

    /// Ends the thread; rows that were not drained remain to be drained.
    pub fn stop(&mut self) -> Result<Summary, ProbeError> {
        match std::mem::replace(&mut self.state, State::Stopped) {
            State::Running { stop, thread } => {
                stop.store(true, Ordering::Relaxed);
                let (set, summary) = thread.join().map_err(|_| {
                    ProbeError::State(
                        "the sampling thread ended by itself: this is a defect, please report it",
                    )
                })?;
                self.probes = set.probes().to_vec();
                Ok(summary)
            }
            other => {
                self.state = other;
                Err(ProbeError::State("this sampler is not running"))
            }
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // Not running is the usual case, and there is nobody left to tell of anything else.
        let _ = self.stop();
    }
}

/// What the thread does.
fn sample(
    mut set: ReaderSet,
    interval: u64,
    ring: &Ring,
    stop: &AtomicBool,
) -> (ReaderSet, Summary) {
    let nice = raise_priority();
    let start = clock::monotonic();
    let epoch = clock::now(ClockId::Realtime);
    let mut ticks = Ticks::new(start, interval);
    let mut rows = 0;
    let wall = loop {
        let now = loop {
            let now = clock::monotonic();
            if now >= ticks.deadline() || stop.load(Ordering::Relaxed) {
                break now;
            }
            clock::sleep_until(ticks.deadline().min(now + LONGEST_SLEEP));
        };
        if stop.load(Ordering::Relaxed) {
            ticks.end(now);
            break now - start;
        }
        ticks.begin(now);
        ring.push((epoch + (now - start)) as i64, set.read());
        rows += 1;
    };
    // Taken before the probes are asked: that is not sampling.
    let cpu = clock::thread_cpu();
    set.refresh_probes();
    let summary = Summary {
        ticks: rows,
        missed_ticks: ticks.missed,
        dropped_rows: ring.dropped(),
        cpu_seconds: cpu as f64 * 1e-9,
        wall_seconds: wall as f64 * 1e-9,
        worst_lateness_seconds: ticks.worst_lateness as f64 * 1e-9,
        nice,
    };
    (set, summary)
}

/// Raises the priority of the calling thread where that is permitted, and returns its nice value.
fn raise_priority() -> i32 {
    // On Linux a thread has a nice value of its own, addressed by its thread id.
    let thread = Some(rustix::thread::gettid());
    // Not being permitted to is usual; the value that is read back tells.
    let _ = rustix::process::setpriority_process(thread, RAISED_NICE);
    rustix::process::getpriority_process(thread).unwrap_or(0)
}

#[cfg(test)]
mod tests;
