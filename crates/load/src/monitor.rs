//! Watches the workers of a phase from outside, and reports at regular intervals what happened in each.
use crate::clock::{self, Clock};
use crate::phase::{Phase, lock};
use crate::statistics::{LatencySum, WorkerStatistics};
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

/// Sums over operations and workers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) operations: u64,
    pub(crate) errors: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
}

impl Totals {
    pub(crate) fn of(workers: &[WorkerStatistics]) -> Self {
        let mut totals = Self::default();
        for worker in workers {
            totals.bytes_sent += worker.bytes_sent.get();
            totals.bytes_received += worker.bytes_received.get();
            for operation in &worker.operations {
                totals.operations += operation.completed.get();
                totals.errors += operation.errors.get();
                totals.hits += operation.hits.get();
                totals.misses += operation.misses.get();
            }
        }
        totals
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            errors: self.errors + other.errors,
            hits: self.hits + other.hits,
            misses: self.misses + other.misses,
            bytes_sent: self.bytes_sent + other.bytes_sent,
            bytes_received: self.bytes_received + other.bytes_received,
        }
    }
}

/// Response, service and lag of all operations and workers together.
struct Latencies {
    response: LatencySum,
    service: LatencySum,
    lag: LatencySum,
}

impl Latencies {
    fn of(workers: &[WorkerStatistics]) -> Self {
        let mut sums = Self {
            response: LatencySum::new(),
            service: LatencySum::new(),
            lag: LatencySum::new(),
        };
        for worker in workers {
            for latencies in worker
                .operations
                .iter()
                .filter_map(|o| o.latencies.as_ref())
            {
                sums.service.add(&latencies.service);
                // In a closed loop, an operation is meant to start when it is sent.
                let response = latencies
                    .open
                    .as_ref()
                    .map_or(&latencies.service, |open| &open.response);
                sums.response.add(response);
                if let Some(open) = &latencies.open {
                    sums.lag.add(&open.lag);
                }
            }
        }
        sums
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            response: self.response.since(&earlier.response),
            service: self.service.since(&earlier.service),
            lag: self.lag.since(&earlier.lag),
        }
    }
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
    latencies: Latencies,
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
            totals: Totals::of(workers),
            latencies: Latencies::of(workers),
            idle: workers.iter().map(idle).sum(),
            workers: workers.len(),
        }
    }

    fn since(&self, last: &Self, clock: Clock, before: Totals) -> Interval {
        let nanoseconds = (self.time - last.time).max(1);
        let totals = before.plus(self.totals);
        let operations = self.totals.operations - last.totals.operations;
        // A worker that began or ended to wait between two reads of its counts may seem a little out of bounds.
        let idle =
            self.idle.saturating_sub(last.idle) as f64 / (nanoseconds * self.workers as u64) as f64;
        let mut metrics = vec![
            ("load_operations_total", totals.operations as f64),
            ("load_errors_total", totals.errors as f64),
            ("load_hits_total", totals.hits as f64),
            ("load_misses_total", totals.misses as f64),
            ("load_bytes_sent_total", totals.bytes_sent as f64),
            ("load_bytes_received_total", totals.bytes_received as f64),
            (
                "load_throughput_operations_per_second",
                operations as f64 / clock::to_seconds(nanoseconds),
            ),
            ("load_idle_ratio", idle.min(1.0)),
        ];
        let latencies = self.latencies.since(&last.latencies);
        for (sum, names) in [
            (latencies.response, RESPONSE),
            (latencies.service, SERVICE),
            (latencies.lag, LAG),
        ] {
            let quantiles: Vec<f64> = names.iter().map(|&(quantile, _)| quantile).collect();
            if let Some(values) = sum.quantiles(&quantiles) {
                metrics.extend(names.iter().map(|&(_, name)| name).zip(values));
            }
        }
        Interval {
            timestamp_ns: clock.epoch_nanoseconds(self.time),
            metrics,
        }
    }
}

const RESPONSE: &[(f64, &str)] = &[
    (0.5, "load_response_seconds{quantile=\"0.5\"}"),
    (0.9, "load_response_seconds{quantile=\"0.9\"}"),
    (0.99, "load_response_seconds{quantile=\"0.99\"}"),
    (0.999, "load_response_seconds{quantile=\"0.999\"}"),
    (1.0, "load_response_seconds{quantile=\"1\"}"),
];
const SERVICE: &[(f64, &str)] = &[
    (0.5, "load_service_seconds{quantile=\"0.5\"}"),
    (0.9, "load_service_seconds{quantile=\"0.9\"}"),
    (0.99, "load_service_seconds{quantile=\"0.99\"}"),
    (0.999, "load_service_seconds{quantile=\"0.999\"}"),
    (1.0, "load_service_seconds{quantile=\"1\"}"),
];
const LAG: &[(f64, &str)] = &[(0.99, "load_lag_seconds{quantile=\"0.99\"}")];
