//! How fast cores are while something else runs on them: bursts of a known number of instructions, a fraction of a
//! percent of the time.
//!
//! A core's speed is not constant: its clock moves, and on a shared host the hardware thread beside it belongs to
//! others, which no counter of a guest shows. What a workload achieves moves with it. Knowing the speed while it was
//! measured takes that part of the noise away.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::Result;
use crate::attendants::Attendants;
use crate::clock::{nanoseconds, thread_cpu};
use crate::instructions::execute_mix;

/// Between two bursts: short beside what changes a core's speed.
const PAUSE: Duration = Duration::from_millis(4);
/// About 25 µs of a current core, so that both threads' switches and the clock's own cost are small beside it.
const BLOCKS: u64 = 2000;
/// What goes before each burst, with a look at the clock: what ran on the core before has the caches to itself, and a
/// burst that began with fetching its own code and the kernel's would read as a slow core.
const WARM_UP_BLOCKS: u64 = 200;
/// A burst that took this long was moved between cores, or its core was taken away, which is not its speed.
const LONGEST_BURST: Duration = Duration::from_millis(1);

/// What one core executed in bursts so far, and the CPU time that took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Instructions of the kernel.
    pub instructions: u64,
    /// CPU time of the bursts.
    pub busy: Duration,
}

#[derive(Debug, Default)]
struct Counter {
    instructions: AtomicU64,
    nanoseconds: AtomicU64,
}

/// Threads that take the speed of cores until dropped.
#[derive(Debug)]
pub struct Speedometer(Attendants<Counter>);

impl Speedometer {
    /// Starts one thread a core; returns when all of them are on theirs.
    pub fn start(cores: &[usize]) -> Result<Self> {
        Attendants::start("speed", cores, || Ok(()), take).map(Self)
    }

    /// What each core did since the start, in the order in which the cores were given.
    pub fn read(&self) -> Vec<Reading> {
        self.0
            .states()
            .iter()
            .map(|counter| Reading {
                instructions: counter.instructions.load(Relaxed),
                busy: Duration::from_nanos(counter.nanoseconds.load(Relaxed)),
            })
            .collect()
    }

    /// Ends the threads. Idempotent.
    pub fn stop(&mut self) {
        self.0.stop();
    }
}

fn take((): (), counter: &Counter, stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        let _ = (execute_mix(WARM_UP_BLOCKS), thread_cpu());
        let before = thread_cpu();
        let instructions = execute_mix(BLOCKS);
        let burst = thread_cpu().saturating_sub(before);
        if !burst.is_zero() && burst <= LONGEST_BURST {
            counter.instructions.fetch_add(instructions, Relaxed);
            counter.nanoseconds.fetch_add(nanoseconds(burst), Relaxed);
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests;
