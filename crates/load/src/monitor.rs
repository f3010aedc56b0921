//! Watches the workers of a phase from outside, and reports at regular intervals what happened in each.
use crate::clock::{self, Clock};
use crate::phase::{Phase, lock};
use crate::statistics::{LatencySums, WorkerStatistics};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

/// Intervals that are kept for a reader who does not come; then the oldest go.
const MOST_INTERVALS: usize = 100_000;

/// What happened from one report to the next, as metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// When it ended, in nanoseconds since the epoch.
    pub timestamp_ns: u64,
    /// Metrics by name. Totals count from the creation of the client on; what does not apply is not there.
    pub metrics: Vec<(&'static str, f64)>,
}

/// Intervals that wait to be fetched.
#[derive(Debug, Default)]
pub(crate) struct Intervals(Mutex<VecDeque<Interval>>);

impl Intervals {
    fn push(&self, interval: Interval) {
        let mut intervals = lock(&self.0);
        if intervals.len() == MOST_INTERVALS {
            intervals.pop_front();
        }
        intervals.push_back(interval);
    }

    pub(crate) fn take(&self) -> Vec<Interval> {
        lock(&self.0).drain(..).collect()
    }
}

/// Sums over operations and workers, as they are named.
pub(crate) type Totals = [u64; TOTALS.len()];

const TOTALS: [&str; 6] = [
    "load_operations_total",
    "load_errors_total",
    "load_hits_total",
    "load_misses_total",
    "load_bytes_sent_total",
    "load_bytes_received_total",
];

pub(crate) fn totals(workers: &[WorkerStatistics]) -> Totals {
    let mut sums = [0; 4];
    for operation in workers.iter().flat_map(|worker| &worker.operations) {
        sums[0] += operation.completed.get();
        sums[1] += operation.errors.get();
        sums[2] += operation.hits.get();
        sums[3] += operation.misses.get();
    }
    let [operations, errors, hits, misses] = sums;
    let sent = workers.iter().map(|worker| worker.bytes_sent.get()).sum();
    let received = workers
        .iter()
        .map(|worker| worker.bytes_received.get())
        .sum();
    [operations, errors, hits, misses, sent, received]
}

/// One and the other.
pub(crate) fn both(one: Totals, other: Totals) -> Totals {
    std::array::from_fn(|place| one[place] + other[place])
}

/// Report on `phase` until it ends. `before` is what earlier phases counted.
pub(crate) fn watch(phase: &Phase, clock: Clock, before: Totals, intervals: &Intervals) {
    let length = clock::from_seconds(phase.config.interval_seconds);
    let mut last = Snapshot::take(phase, phase.start);
    let mut end = phase.start + length;
    loop {
        let now = clock::now();
        let ended = phase.wait(Duration::from_nanos(end.saturating_sub(now)));
        let now = clock::now();
        // The rest of an interval is reported only where it is long enough to say something.
        if now >= end || (now - last.time) * 2 >= length || last.time == phase.start {
            let snapshot = Snapshot::take(phase, now.max(phase.start + 1));
            intervals.push(snapshot.since(&last, clock, before));
            last = snapshot;
        }
        if ended {
            return;
        }
        while end <= now {
            end += length;
        }
    }
}

/// All counts at one time.
struct Snapshot {
    time: u64,
    totals: Totals,
    latencies: LatencySums,
    idle: u64,
    workers: usize,
}

impl Snapshot {
    fn take(phase: &Phase, time: u64) -> Self {
        let workers = &phase.statistics;
        let idle = |worker: &WorkerStatistics| {
            let waiting = match worker.idle_since.get() {
                0 => 0,
                since => time.saturating_sub(since),
            };
            worker.idle.get() + waiting
        };
        Self {
            time,
            totals: totals(workers),
            latencies: LatencySums::of(workers.iter().flat_map(|worker| &worker.operations)),
            idle: workers.iter().map(idle).sum(),
            workers: workers.len(),
        }
    }

    fn since(&self, last: &Self, clock: Clock, before: Totals) -> Interval {
        let nanoseconds = (self.time - last.time).max(1);
        let operations = self.totals[0] - last.totals[0];
        // A worker that began or ended to wait between two reads of its counts may seem a little out of bounds.
        let idle =
            self.idle.saturating_sub(last.idle) as f64 / (nanoseconds * self.workers as u64) as f64;
        let totals = both(before, self.totals).map(|total| total as f64);
        let mut metrics: Vec<_> = TOTALS.into_iter().zip(totals).collect();
        metrics.extend([
            (
                "load_throughput_operations_per_second",
                operations as f64 / clock::to_seconds(nanoseconds),
            ),
            ("load_idle_ratio", idle.min(1.0)),
        ]);
        let latencies = self.latencies.since(&last.latencies);
        for (sum, quantiles, names) in [
            (latencies.response, &QUANTILES[..], &RESPONSE[..]),
            (latencies.service, &QUANTILES, &SERVICE),
            (latencies.lag, &[0.99], &LAG),
        ] {
            let values = sum.quantiles(quantiles).unwrap_or_default();
            metrics.extend(names.iter().copied().zip(values));
        }
        Interval {
            timestamp_ns: clock.epoch_nanoseconds(self.time),
            metrics,
        }
    }
}

const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];
const RESPONSE: [&str; 5] = [
    "load_response_seconds{quantile=\"0.5\"}",
    "load_response_seconds{quantile=\"0.9\"}",
    "load_response_seconds{quantile=\"0.99\"}",
    "load_response_seconds{quantile=\"0.999\"}",
    "load_response_seconds{quantile=\"1\"}",
];
const SERVICE: [&str; 5] = [
    "load_service_seconds{quantile=\"0.5\"}",
    "load_service_seconds{quantile=\"0.9\"}",
    "load_service_seconds{quantile=\"0.99\"}",
    "load_service_seconds{quantile=\"0.999\"}",
    "load_service_seconds{quantile=\"1\"}",
];
const LAG: [&str; 1] = ["load_lag_seconds{quantile=\"0.99\"}"];
