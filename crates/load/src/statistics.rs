//! What a worker counts. Each number has one writer, the worker, and any number of readers, so that counting is a plain
//! addition and reading never makes the worker wait.
use crate::operation::Operation;
use histogram::{Bucket, Config, Histogram};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Buckets of a power of two are divided into 2^7: values are known to 1/128.
pub(crate) const GROUPING_POWER: u8 = 7;
/// Up to 2^42 ns, which is 73 minutes; longer ones count as that long.
pub(crate) const MAX_VALUE_POWER: u8 = 42;

/// A number with one writer.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(crate) fn add(&self, amount: u64) {
        self.set(self.get().wrapping_add(amount));
    }

    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// An H2 histogram of nanoseconds, with exact sum and maximum.
#[derive(Debug)]
pub(crate) struct Latency {
    buckets: Box<[Counter]>,
    sum: Counter,
    max: Counter,
}

impl Default for Latency {
    fn default() -> Self {
        Self {
            buckets: std::iter::repeat_with(Counter::default)
                .take(config().total_buckets())
                .collect(),
            sum: Counter::default(),
            max: Counter::default(),
        }
    }
}

impl Latency {
    #[inline]
    pub(crate) fn record(&self, nanoseconds: u64) {
        let index = bucket(nanoseconds).min(self.buckets.len() - 1);
        self.buckets[index].add(1);
        self.sum.add(nanoseconds);
        if nanoseconds > self.max.get() {
            self.max.set(nanoseconds);
        }
    }
}

/// The H2 bucket of `value`: linear below 2^(g+1), then 2^g buckets for each power of two, with g the grouping power.
#[inline]
fn bucket(value: u64) -> usize {
    let group = (64 - (value | 1).leading_zeros()).saturating_sub(u32::from(GROUPING_POWER) + 1);
    ((u64::from(group) << GROUPING_POWER) + (value >> group)) as usize
}

fn config() -> Config {
    const CONFIG: Result<Config, histogram::Error> = Config::new(GROUPING_POWER, MAX_VALUE_POWER);
    match CONFIG {
        Ok(config) => config,
        Err(_) => unreachable!(),
    }
}

/// Latencies of several workers or operations together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LatencySum {
    pub(crate) counts: Vec<u64>,
    pub(crate) sum: u64,
    pub(crate) max: u64,
}

impl LatencySum {
    fn new() -> Self {
        Self {
            counts: vec![0; config().total_buckets()],
            sum: 0,
            max: 0,
        }
    }

    fn add(&mut self, latency: &Latency) {
        for (count, bucket) in self.counts.iter_mut().zip(&latency.buckets) {
            *count += bucket.get();
        }
        self.sum += latency.sum.get();
        self.max = self.max.max(latency.max.get());
    }

    /// How many values there are.
    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// What was counted since `earlier`.
    fn since(&self, earlier: &Self) -> Self {
        let pairs = self.counts.iter().zip(&earlier.counts);
        Self {
            counts: pairs.map(|(now, then)| now - then).collect(),
            sum: self.sum.wrapping_sub(earlier.sum),
            max: self.max,
        }
    }

    /// The upper ends, in seconds, of the buckets in which `quantiles` lie (1 is the maximum); `None` when there are no
    /// values.
    pub(crate) fn quantiles(&self, quantiles: &[f64]) -> Option<Vec<f64>> {
        let histogram =
            Histogram::from_buckets(GROUPING_POWER, MAX_VALUE_POWER, self.counts.clone()).ok()?;
        let mut buckets = vec![None; quantiles.len()];
        histogram
            .quantile_buckets_into(quantiles, &mut buckets)
            .ok()?;
        let seconds = |bucket: Option<Bucket>| Some(bucket?.end() as f64 * 1e-9);
        buckets.into_iter().map(seconds).collect()
    }
}

/// What one worker counts for one operation.
#[derive(Debug, Default)]
pub(crate) struct OperationStatistics {
    pub(crate) completed: Counter,
    pub(crate) errors: Counter,
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) latencies: Option<Latencies>,
}

/// Latencies by kind.
#[derive(Debug)]
pub(crate) struct Latencies {
    /// From being sent to completion.
    pub(crate) service: Latency,
    /// Kept in an open loop only; in a closed one, an operation is meant to start when it is sent.
    pub(crate) open: Option<OpenLatencies>,
}

/// What tells an open loop from a closed one.
#[derive(Debug, Default)]
pub(crate) struct OpenLatencies {
    /// From the intended start to completion.
    pub(crate) response: Latency,
    /// From the intended start to being sent.
    pub(crate) lag: Latency,
}

/// Latencies by kind of several workers or operations together.
pub(crate) struct LatencySums {
    /// In a closed loop, the service.
    pub(crate) response: LatencySum,
    pub(crate) service: LatencySum,
    pub(crate) lag: LatencySum,
}

impl LatencySums {
    pub(crate) fn of<'a>(parts: impl IntoIterator<Item = &'a OperationStatistics>) -> Self {
        let mut sums = Self {
            response: LatencySum::new(),
            service: LatencySum::new(),
            lag: LatencySum::new(),
        };
        for latencies in parts.into_iter().filter_map(|part| part.latencies.as_ref()) {
            sums.service.add(&latencies.service);
            match &latencies.open {
                None => sums.response.add(&latencies.service),
                Some(open) => {
                    sums.response.add(&open.response);
                    sums.lag.add(&open.lag);
                }
            }
        }
        sums
    }

    /// What was counted since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            response: self.response.since(&earlier.response),
            service: self.service.since(&earlier.service),
            lag: self.lag.since(&earlier.lag),
        }
    }
}

/// What one worker counts in one phase. Aligned so that no two workers write to one cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct WorkerStatistics {
    pub(crate) operations: [OperationStatistics; Operation::ALL.len()],
    pub(crate) wrong_values: Counter,
    pub(crate) bytes_sent: Counter,
    pub(crate) bytes_received: Counter,
    /// Nanoseconds spent waiting: for replies, or for the next arrival.
    pub(crate) idle: Counter,
    /// Since when it has been waiting, in monotonic nanoseconds; 0 while it is not.
    pub(crate) idle_since: Counter,
    /// Operations of an open loop that were due before the end and never sent.
    pub(crate) unsent: Counter,
    pub(crate) cpu: Counter,
    /// When the last operation completed, in monotonic nanoseconds.
    pub(crate) last_completion: Counter,
    /// When the worker was done, in monotonic nanoseconds.
    pub(crate) ended: Counter,
}

impl WorkerStatistics {
    /// Ready to count `operations`.
    pub(crate) fn new(
        operations: impl IntoIterator<Item = Operation>,
        record: bool,
        open: bool,
    ) -> Self {
        let mut statistics = Self::default();
        for operation in operations {
            statistics.operations[operation as usize].latencies = record.then(|| Latencies {
                service: Latency::default(),
                open: open.then(OpenLatencies::default),
            });
        }
        statistics
    }
}

#[cfg(test)]
mod tests;
