//! A memory channel whose bandwidth is known by construction: a token bucket that threads and processes share.
//!
//! On a host with far more DRAM bandwidth than its cores can use, nothing can make memory the limit, and no antagonist
//! can contend for it. Threads that draw every byte they read from a [`Channel`] stall when it is full, as cores do at
//! a full memory channel. After MemGuard (Yun et al., RTAS 2013), which regulates real memory in this way: a budget
//! that is refilled steadily and kept for a period.
//!
//! The bucket is kept as the time at which it will have let everything through (the virtual scheduling of ITU-T
//! I.371, annex A): one word, advanced by compare-and-swap, so the rate is exact however many threads draw.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::{Error, Result};
use words::Words;

mod hold;
mod words;

pub use hold::Hold;

/// The name of a channel's file in the folder of the system that has one.
pub const FILE_NAME: &str = "regulated-channel";

/// How long unused bandwidth is kept. Longer than the 100 ms period by which the kernel enforces CPU quotas, so that a
/// thread that was kept off its core for a part of it can catch up: only the channel limits what it gets.
pub const DEPTH: Duration = Duration::from_millis(125);

/// Slowest and fastest channel, in bytes a second.
pub const RATE_BOUNDS: std::ops::RangeInclusive<u64> = 1 << 10..=1 << 50;

const NANOSECONDS: u64 = 1_000_000_000;
const MILLION: u64 = 1_000_000;

/// A channel. Cheap to share among threads by reference.
#[derive(Debug)]
pub struct Channel {
    words: Words,
}

/// When bytes that were drawn have passed the channel: `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[must_use = "the bytes have passed only once this was waited for"]
pub struct Passage(u64);

impl Channel {
    /// Makes the channel's file, replacing one that is there. It starts without any kept bandwidth. Refuses a rate out
    /// of [`RATE_BOUNDS`].
    pub fn create(path: &Path, bytes_per_second: u64) -> Result<Self> {
        if !RATE_BOUNDS.contains(&bytes_per_second) {
            return Err(Error::Argument(format!(
                "a channel of {bytes_per_second} bytes a second is out of bounds: {} to {}",
                RATE_BOUNDS.start(),
                RATE_BOUNDS.end()
            )));
        }
        let words = Words::create(path, bytes_per_second)?;
        words.free_at_ns().store(monotonic_ns(), Ordering::Relaxed);
        Ok(Self { words })
    }

    /// Opens the channel of another process.
    pub fn open(path: &Path) -> Result<Self> {
        Words::open(path).map(|words| Self { words })
    }

    /// Bytes a second that it carries when nothing is taken away.
    pub fn bytes_per_second(&self) -> u64 {
        self.words.bytes_per_second().load(Ordering::Relaxed)
    }

    /// Bytes a second that it carries now.
    pub fn bytes_per_second_left(&self) -> u64 {
        left(&self.words, monotonic_ns())
    }

    /// Bytes that all who draw from it have drawn so far.
    pub fn carried_bytes(&self) -> u64 {
        self.words.carried_bytes().load(Ordering::Relaxed)
    }

    /// Draws `bytes`. They have passed once the returned time has come: read them meanwhile, then
    /// [`Channel::wait_for`] it.
    pub fn draw(&self, bytes: u64) -> Passage {
        let words = &self.words;
        let now = monotonic_ns();
        let duration = nanoseconds_for(bytes, left(words, now));
        let earliest = now.saturating_sub(DEPTH.as_nanos() as u64);
        let passed = |free_at: u64| free_at.max(earliest).saturating_add(duration);
        let mut free_at = words.free_at_ns().load(Ordering::Relaxed);
        // Only this word orders those who draw; nothing else is published by it.
        while let Err(other) = words.free_at_ns().compare_exchange_weak(
            free_at,
            passed(free_at),
            Ordering::Relaxed,
            Ordering::Relaxed,
        ) {
            free_at = other;
        }
        words.carried_bytes().fetch_add(bytes, Ordering::Relaxed);
        Passage(passed(free_at))
    }

    /// Stalls until `passage`: busy, as a core that waits for memory is, but threads that could go on do.
    pub fn wait_for(&self, passage: Passage) {
        while monotonic_ns() < passage.0 {
            thread::yield_now();
        }
    }

    /// Draws bytes again and again for `duration`; how many passed, and how long it took. Uses up first what was kept.
    #[must_use]
    pub fn measure(&self, duration: Duration) -> (u64, Duration) {
        // A hundredth of a second's worth at a time would round; a ten-thousandth does not.
        let portion = (self.bytes_per_second() / 10_000).max(1);
        while monotonic_ns() >= self.words.free_at_ns().load(Ordering::Relaxed) {
            let _ = self.draw(portion);
        }
        let (start, end) = (monotonic_ns(), monotonic_ns() + duration.as_nanos() as u64);
        let mut bytes = 0;
        while monotonic_ns() < end {
            let passage = self.draw(portion);
            self.wait_for(passage);
            bytes += portion;
        }
        (bytes, Duration::from_nanos(monotonic_ns() - start))
    }
}

/// What is left of the rate at `now_ns`. A hold that is not renewed has ended.
fn left(words: &Words, now_ns: u64) -> u64 {
    let rate = words.bytes_per_second().load(Ordering::Relaxed).max(1);
    if words.held_until_ns().load(Ordering::Acquire) <= now_ns {
        return rate;
    }
    let held = words.held_millionths().load(Ordering::Relaxed).min(MILLION);
    let left = u128::from(rate) * u128::from(MILLION - held) / u128::from(MILLION);
    (left as u64).max(1)
}

fn nanoseconds_for(bytes: u64, bytes_per_second: u64) -> u64 {
    let nanoseconds =
        u128::from(bytes) * u128::from(NANOSECONDS) / u128::from(bytes_per_second.max(1));
    nanoseconds.try_into().unwrap_or(u64::MAX)
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * NANOSECONDS + now.tv_nsec as u64
}

#[cfg(test)]
mod tests;
