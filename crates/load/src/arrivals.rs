//! When the operations of an open loop are meant to start.
use crate::config::ArrivalKind;
use crate::random::Random;

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
        /// Counted one by one; of more, the rest is the expected number.
        const MOST: u64 = 50_000_000;
        let mut count = 0;
        while self.next < end {
            if count == MOST {
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
mod tests {
    use super::*;
    use crate::distribution::tests::chi_square;

    fn arrivals(kind: ArrivalKind, rate: f64, worker: usize, workers: usize) -> Arrivals {
        let random = Random::new(5, [worker as u64, 0]);
        Arrivals::new(kind, rate, 1_000_000, (worker, workers), random)
    }

    #[test]
    fn constant_arrivals_interleave_evenly() {
        let mut all = Vec::new();
        for worker in 0..3 {
            let mut arrivals = arrivals(ArrivalKind::Constant, 3e6, worker, 3);
            for _ in 0..1000 {
                all.push(arrivals.next());
                arrivals.advance();
            }
        }
        all.sort_unstable();
        for (index, &time) in all.iter().enumerate() {
            assert_eq!(
                time,
                1_000_000 + (index as f64 * 1000.0 / 3.0).round() as u64
            );
        }
    }

    #[test]
    fn constant_arrivals_do_not_drift() {
        let mut arrivals = arrivals(ArrivalKind::Constant, 3.0, 0, 1);
        for _ in 0..3_000_000 {
            arrivals.advance();
        }
        assert_eq!(arrivals.next(), 1_000_000 + 1_000_000 * 1_000_000_000);
    }

    #[test]
    fn poisson_arrivals_have_exponential_gaps_and_the_right_rate() {
        let mut arrivals = arrivals(ArrivalKind::Poisson, 1e5, 0, 2);
        let mean = 20_000.0;
        let draws = 400_000;
        let mut counts = vec![0; 41];
        let mut last = 1_000_000;
        for _ in 0..draws {
            let gap = (arrivals.next() - last) as f64;
            counts[((gap / mean * 10.0) as usize).min(40)] += 1;
            last = arrivals.next();
            arrivals.advance();
        }
        let survival = |cell: usize| (-(cell as f64) / 10.0).exp();
        let mut probabilities: Vec<f64> = (0..40)
            .map(|cell| survival(cell) - survival(cell + 1))
            .collect();
        probabilities.push(survival(40));
        let (statistic, critical) = chi_square(&counts, &probabilities);
        assert!(statistic < critical, "{statistic} > {critical}");
        let rate = f64::from(draws) / ((last - 1_000_000) as f64 * 1e-9);
        assert!((rate / 5e4 - 1.0).abs() < 0.01, "{rate}");
    }

    #[test]
    fn what_was_not_sent_is_counted() {
        let mut arrivals = arrivals(ArrivalKind::Constant, 1e6, 0, 1);
        assert_eq!(arrivals.count_until(1_000_000), 0);
        assert_eq!(arrivals.count_until(1_000_001), 1);
        assert_eq!(arrivals.count_until(2_000_000), 999);
        assert_eq!(arrivals.next(), 2_000_000);
    }
}
