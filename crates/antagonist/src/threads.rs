//! Threads on given cores that use a resource for a given share of the time, and count what they used.

use std::hint::black_box;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use ceiling::attendants::Attendants;
use ceiling::bandwidth::read_words;
use ceiling::instructions::execute_mix;
use ceiling::memory;
use mapping::Words;
use rustix::process::setpriority_process;

use crate::cache::last_level_cache_bytes;
use crate::{Error, Result};

/// What is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// DRAM bandwidth: buffers that no cache holds are read from end to end.
    DramBandwidth,
    /// The last-level cache: a line after the other is touched of buffers that together are as large as it is.
    LastLevelCache,
    /// Nothing: instructions for the same share of the same cores, and no memory beyond the first-level cache.
    Placebo,
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "dram_bandwidth" => Ok(Self::DramBandwidth),
            "last_level_cache" => Ok(Self::LastLevelCache),
            "placebo" => Ok(Self::Placebo),
            other => Err(Error::Argument(format!(
                "'{other}' is not a kind of antagonist: dram_bandwidth, last_level_cache or placebo"
            ))),
        }
    }
}

/// What is to be taken away, where, and how much of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// What.
    pub kind: Kind,
    /// One thread on each.
    pub cores: Vec<usize>,
    /// The most of the time, above 0 and at most 1, that each thread is busy.
    pub duty: f64,
    /// The most bytes a second that all threads together move; not for [`Kind::Placebo`], which moves none.
    pub bytes_per_second: Option<f64>,
    /// Bytes of all buffers together; by default as the kind and this host's last-level cache want it.
    pub buffer_bytes: Option<usize>,
    /// How readily the threads give way on their cores, 0 (as others) to 19 (`setpriority(2)`).
    pub nice: i32,
}

impl Options {
    /// All of the time, as much as the cores can.
    #[must_use]
    pub fn new(kind: Kind, cores: Vec<usize>) -> Self {
        Self {
            kind,
            cores,
            duty: 1.0,
            bytes_per_second: None,
            buffer_bytes: None,
            nice: 0,
        }
    }

    fn check(&self) -> Result<()> {
        let refuse = |what: String| Err(Error::Argument(what));
        if self.cores.is_empty() {
            return refuse("no core was given to run an antagonist on".into());
        }
        if !(self.duty > 0.0 && self.duty <= 1.0) {
            return refuse(format!(
                "an antagonist cannot be busy for {} of the time: the fraction must be above 0 and at most 1",
                self.duty
            ));
        }
        match self.bytes_per_second {
            Some(_) if self.kind == Kind::Placebo => {
                return refuse("a placebo moves no bytes, so it cannot be paced by them".into());
            }
            Some(rate) if !(rate > 0.0 && rate.is_finite()) => {
                return refuse(format!("{rate} bytes a second cannot be moved"));
            }
            _ => {}
        }
        if !(0..=19).contains(&self.nice) {
            return refuse(format!("niceness {} is not 0 to 19", self.nice));
        }
        let buffer = self.buffer_bytes.unwrap_or(LINE_BYTES * self.cores.len());
        if !(LINE_BYTES * self.cores.len()..=BUFFER_BYTES_MAX).contains(&buffer) {
            return refuse(format!(
                "a buffer of {buffer} bytes is not {} to {BUFFER_BYTES_MAX}",
                LINE_BYTES * self.cores.len()
            ));
        }
        Ok(())
    }

    /// Words of each thread's buffer.
    fn words(&self) -> usize {
        let cache = || last_level_cache_bytes(Path::new("/")).unwrap_or(PRESUMED_CACHE_BYTES);
        let bytes = self.buffer_bytes.unwrap_or_else(|| match self.kind {
            // As STREAM asks for: four times the cache. No thread's part may fit into a cache of its core's own.
            Kind::DramBandwidth => cache()
                .saturating_mul(4)
                .max(self.cores.len() * STREAM_BYTES_MIN)
                .min(BUFFER_BYTES_MAX),
            Kind::LastLevelCache => cache(),
            Kind::Placebo => 0,
        });
        bytes / self.cores.len() / LINE_BYTES * LINE_WORDS
    }
}

/// Where the kernel does not tell the size of the last-level cache.
const PRESUMED_CACHE_BYTES: usize = 64 << 20;
const STREAM_BYTES_MIN: usize = 32 << 20;
const BUFFER_BYTES_MAX: usize = 8 << 30;
const LINE_BYTES: usize = 64;
const LINE_WORDS: usize = LINE_BYTES / size_of::<u64>();
/// A portion takes some microseconds: short beside a period, long beside reading the clock.
const PORTION_LINES: usize = 2048;
const PORTION_BLOCKS: u64 = 1000;
/// A thread is busy at the start of each period; short enough that a request of a millisecond meets several.
const PERIOD: Duration = Duration::from_micros(500);
/// A thread that was held up for longer than this does not catch up on its bytes.
const BACKLOG: Duration = Duration::from_millis(10);

/// Takes away until dropped.
#[derive(Debug)]
pub struct Antagonist(Attendants<Used>);

/// What one thread used.
#[derive(Debug, Default)]
struct Used {
    moved_bytes: AtomicU64,
    busy_nanoseconds: AtomicU64,
}

impl Antagonist {
    /// Starts a thread on each core; returns when all of them have their memory and have begun.
    pub fn start(options: &Options) -> Result<Self> {
        options.check()?;
        let (words, nice) = (options.words(), options.nice);
        let share = |rate| rate / options.cores.len() as f64;
        let worker = Worker {
            kind: options.kind,
            duty: options.duty,
            bytes_per_second: options.bytes_per_second.map(share),
        };
        let prepare = move || prepare(words, nice);
        let run = move |buffer, used: &Used, stop: &AtomicBool| worker.run(buffer, used, stop);
        let threads = Attendants::start("antagonist", &options.cores, prepare, run)?;
        Ok(Self(threads))
    }

    /// Bytes that all threads have moved since the start.
    pub fn moved_bytes(&self) -> u64 {
        self.sum(|used| &used.moved_bytes)
    }

    /// How long the threads have been busy since the start, added up.
    pub fn busy(&self) -> Duration {
        Duration::from_nanos(self.sum(|used| &used.busy_nanoseconds))
    }

    fn sum(&self, count: fn(&Used) -> &AtomicU64) -> u64 {
        let threads = self.0.states().iter();
        threads.map(|used| count(used).load(Relaxed)).sum()
    }

    /// Ends the threads. Idempotent.
    pub fn stop(&mut self) {
        self.0.stop();
    }
}

/// What a thread needs before it begins: its memory, and the niceness that it is to have.
fn prepare(words: usize, nice: i32) -> ceiling::Result<Words> {
    if nice > 0 {
        // Zero is the calling thread (setpriority(2), "C library/kernel differences").
        setpriority_process(None, nice)
            .map_err(ceiling::Error::host("a thread could not be made nice"))?;
    }
    let mut buffer = memory::zeroed(words)?;
    // The owner touches its pages first, which places them on its own NUMA node.
    buffer.fill(1);
    Ok(buffer)
}

/// One thread's part.
#[derive(Debug, Clone, Copy)]
struct Worker {
    kind: Kind,
    duty: f64,
    bytes_per_second: Option<f64>,
}

impl Worker {
    fn run(&self, mut buffer: Words, used: &Used, stop: &AtomicBool) {
        let busy_time = PERIOD.mul_f64(self.duty);
        let mut position = 0;
        let mut paced_from = Instant::now();
        let mut paced_bytes = 0.0;
        while !stop.load(Relaxed) {
            let start = Instant::now();
            while start.elapsed() < busy_time {
                let moved = self.portion(&mut buffer, &mut position);
                used.moved_bytes.fetch_add(moved, Relaxed);
                paced_bytes += moved as f64;
                if self.ahead(paced_from, paced_bytes).is_some() {
                    break;
                }
            }
            let busy = start.elapsed();
            used.busy_nanoseconds
                .fetch_add(busy.as_nanos() as u64, Relaxed);
            let rest = match self.bytes_per_second {
                None => PERIOD.saturating_sub(busy),
                Some(rate) => {
                    let due = Duration::from_secs_f64(paced_bytes / rate);
                    let behind = paced_from.elapsed().saturating_sub(due);
                    if behind > BACKLOG {
                        paced_from += behind - BACKLOG;
                    }
                    let period = if self.duty < 1.0 {
                        PERIOD.saturating_sub(busy)
                    } else {
                        Duration::ZERO
                    };
                    due.saturating_sub(paced_from.elapsed()).max(period)
                }
            };
            if !rest.is_zero() {
                thread::sleep(rest);
            }
        }
    }

    /// How much too early it is for the bytes moved so far.
    fn ahead(&self, since: Instant, bytes: f64) -> Option<Duration> {
        let due = Duration::from_secs_f64(bytes / self.bytes_per_second?);
        due.checked_sub(since.elapsed())
    }

    /// Do a little; the bytes that it moved.
    fn portion(&self, buffer: &mut Words, position: &mut usize) -> u64 {
        if self.kind == Kind::Placebo {
            black_box(execute_mix(PORTION_BLOCKS));
            return 0;
        }
        let end = buffer.len().min(*position + PORTION_LINES * LINE_WORDS);
        let words = &buffer[*position..end];
        let sum = match self.kind {
            // One word of each line brings the line in; more would only take longer.
            Kind::LastLevelCache => words
                .iter()
                .step_by(LINE_WORDS)
                .fold(0_u64, |sum, word| sum.wrapping_add(*word)),
            _ => read_words(words),
        };
        black_box(sum);
        *position = if end == buffer.len() { 0 } else { end };
        size_of_val(words) as u64
    }
}

#[cfg(test)]
mod tests;
