//! When the operations of an open loop are meant to start.
use crate::config::{ArrivalKind, LoopConfig};
use crate::phase::Phase;
use crate::random::Random;

/// A wait ends so long before the next arrival, and the rest is spun: longer than it takes to be woken.
pub(crate) const SPIN_BEFORE_ARRIVAL: u64 = 60_000;

/// The intended starts of one worker. They wait for nothing: those that the worker could not keep are still here,
/// in order, so that this is also the queue of the operations that are late, of any length and without memory.
pub(crate) struct Arrivals {
    kind: ArrivalKind,
    start: u64,
    period: f64,
    /// Constant: the number of the next arrival of all workers together.
    index: u64,
    stride: u64,
    /// Poisson: nanoseconds from the start to the next arrival of this worker.
    offset: f64,
    random: Random,
    next: u64,
}

impl Arrivals {
    /// Those of `worker` in a phase; none where its loop is closed.
    pub(crate) fn of(phase: &Phase, worker: usize, seed: u64) -> Option<Self> {
        let LoopConfig::Open {
            arrivals,
            rate_per_second,
        } = phase.config.control
        else {
            return None;
        };
        let random = Random::new(seed, [phase.number, (worker as u64) << 1 | 1]);
        let workers = (worker, phase.statistics.len());
        Some(Self::new(
            arrivals,
            rate_per_second,
            phase.start,
            workers,
            random,
        ))
    }

    /// For worker number `worker` of `workers`, which share `rate` arrivals a second from `start` (monotonic
    /// nanoseconds) on.
    pub(crate) fn new(
        kind: ArrivalKind,
        rate: f64,
        start: u64,
        (worker, workers): (usize, usize),
        random: Random,
    ) -> Self {
        let period = match kind {
            ArrivalKind::Constant => 1e9 / rate,
            // Independent Poisson processes add up to one.
            ArrivalKind::Poisson => 1e9 / rate * workers as f64,
        };
        let mut arrivals = Self {
            kind,
            start,
            period,
            index: worker as u64,
            stride: workers as u64,
            offset: 0.0,
            random,
            next: 0,
        };
        arrivals.place();
        arrivals
    }

    /// When the next operation is meant to start, in monotonic nanoseconds.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Go on to the one after it.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.index += self.stride;
        self.place();
    }

    /// How many are meant to start before `end`, from the next one on.
    pub(crate) fn count_until(&mut self, end: u64) -> u64 {
        self.count_one_by_one(end, 50_000_000)
    }

    /// At most so many are counted one by one; of more, the rest is the expected number.
    fn count_one_by_one(&mut self, end: u64, most: u64) -> u64 {
        let mut count = 0;
        while self.next < end {
            if count == most {
                let period = match self.kind {
                    ArrivalKind::Constant => self.period * self.stride as f64,
                    ArrivalKind::Poisson => self.period,
                };
                return count + ((end - self.next) as f64 / period) as u64;
            }
            count += 1;
            self.advance();
        }
        count
    }

    #[inline]
    fn place(&mut self) {
        let offset = match self.kind {
            ArrivalKind::Constant => self.index as f64 * self.period,
            ArrivalKind::Poisson => {
                // 1 - [0, 1) is never 0.
                self.offset -= (1.0 - self.random.unit()).ln() * self.period;
                self.offset
            }
        };
        self.next = self.start.saturating_add(offset.round() as u64);
    }
}

#[cfg(test)]
mod tests;
