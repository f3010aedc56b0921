//! What a phase came to.
use crate::clock::{self, Clock};
use crate::config::LoopConfig;
use crate::monitor::totals;
use crate::operation::Operation;
use crate::phase::Phase;
use crate::statistics::{
    Counter, GROUPING_POWER, LatencySum, LatencySums, MAX_VALUE_POWER, OperationStatistics,
    WorkerStatistics,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a phase came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseResult {
    /// The name it was given.
    pub name: String,
    /// When it began, in nanoseconds since the epoch.
    pub start_ns: u64,
    /// When it ended: at its deadline or with its last completion, whichever is later.
    pub end_ns: u64,
    /// From start to end.
    pub duration_seconds: f64,
    /// Operations that were completed, without those that the server refused.
    pub operations: u64,
    /// Operations that the server refused.
    pub errors: u64,
    /// Keys that reads found.
    pub hits: u64,
    /// Keys that reads did not find.
    pub misses: u64,
    /// Values that differ from all that they could be.
    pub wrong_values: u64,
    /// What was wrong with the first of them.
    pub first_wrong: Option<String>,
    /// What the first refusal said.
    pub first_error: Option<String>,
    /// Bytes written to connections.
    pub bytes_sent: u64,
    /// Bytes read from connections.
    pub bytes_received: u64,
    /// The rate of an open loop.
    pub offered_operations_per_second: Option<f64>,
    /// Operations of an open loop that were due and never sent, because all connections were at their limit.
    pub unsent_operations: u64,
    /// Processor time of the workers.
    pub generator_cpu_seconds: f64,
    /// The share of the workers' time in which they waited for the server or for the next arrival.
    pub generator_idle_ratio: f64,
    /// 99 of 100 operations of an open loop were sent at most so late; absent in a closed loop.
    pub lag_p99_seconds: Option<f64>,
    /// Why it ended early.
    pub failed: Option<String>,
    /// Counts of each operation of the phase.
    pub per_operation: BTreeMap<Operation, OperationCounts>,
    /// Latencies of each operation of the phase.
    pub histograms: Vec<LatencyHistogram>,
}

/// Counts of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OperationCounts {
    /// Completed, without those that the server refused.
    pub count: u64,
    /// Refused by the server.
    pub errors: u64,
    /// Keys found.
    pub hits: u64,
    /// Keys not found.
    pub misses: u64,
}

/// Latencies of one operation, of one kind: the non-empty buckets of an H2 histogram of nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyHistogram {
    /// The operation.
    pub operation: Operation,
    /// `response` (from the intended start to completion), `service` (from sending to completion) or `lag` (from the
    /// intended start to sending).
    pub kind: &'static str,
    /// See [`histogram::Config`].
    pub grouping_power: u8,
    /// See [`histogram::Config`].
    pub max_value_power: u8,
    /// Which buckets are not empty.
    pub index: Vec<u32>,
    /// What they count.
    pub count: Vec<u64>,
    /// The exact mean.
    pub mean_seconds: f64,
    /// The exact maximum.
    pub max_seconds: f64,
}

impl LatencyHistogram {
    fn new(operation: Operation, kind: &'static str, sum: &LatencySum) -> Option<Self> {
        let total = sum.total();
        let buckets = (0..).zip(&sum.counts).filter(|&(_, &count)| count > 0);
        let (index, count) = buckets.map(|(index, &count)| (index, count)).unzip();
        (total > 0).then(|| Self {
            operation,
            kind,
            grouping_power: GROUPING_POWER,
            max_value_power: MAX_VALUE_POWER,
            index,
            count,
            mean_seconds: sum.sum as f64 / total as f64 * 1e-9,
            max_seconds: clock::to_seconds(sum.max),
        })
    }
}

impl PhaseResult {
    /// Of a phase whose workers have ended.
    pub(crate) fn new(phase: &Phase, clock: Clock) -> Self {
        let workers = &phase.statistics;
        let sum = |count: fn(&WorkerStatistics) -> &Counter| -> u64 {
            workers.iter().map(|worker| count(worker).get()).sum()
        };
        let latest = |time: fn(&WorkerStatistics) -> &Counter| {
            workers
                .iter()
                .map(|worker| time(worker).get())
                .max()
                .unwrap_or(0)
        };
        let last_completion = latest(|worker| &worker.last_completion);
        let end = if phase.config.duration_seconds.is_some() || last_completion == 0 {
            let ended = latest(|worker| &worker.ended);
            last_completion.max(phase.deadline.min(ended))
        } else {
            last_completion
        };
        // Where no worker even began, it ended as it started.
        let end = end.max(phase.start + 1);
        let nanoseconds = end - phase.start;
        let mut per_operation = BTreeMap::new();
        let mut histograms = Vec::new();
        for operation in phase.config.drawn_operations() {
            let parts = || {
                workers
                    .iter()
                    .map(|worker| &worker.operations[operation as usize])
            };
            per_operation.insert(operation, OperationCounts::of(parts()));
            let sums = LatencySums::of(parts());
            let kinds = [
                ("response", sums.response),
                ("service", sums.service),
                ("lag", sums.lag),
            ];
            let found = kinds.iter();
            histograms.extend(
                found.filter_map(|(kind, sum)| LatencyHistogram::new(operation, kind, sum)),
            );
        }
        let all = LatencySums::of(workers.iter().flat_map(|worker| &worker.operations));
        let [operations, errors, hits, misses, bytes_sent, bytes_received] = totals(workers);
        Self {
            name: phase.config.name.clone(),
            start_ns: clock.epoch_nanoseconds(phase.start),
            end_ns: clock.epoch_nanoseconds(end),
            duration_seconds: clock::to_seconds(nanoseconds),
            operations,
            errors,
            hits,
            misses,
            wrong_values: sum(|worker| &worker.wrong_values),
            first_wrong: phase.first_wrong.get(),
            first_error: phase.first_error.get(),
            bytes_sent,
            bytes_received,
            offered_operations_per_second: match phase.config.control {
                LoopConfig::Closed {} => None,
                LoopConfig::Open {
                    rate_per_second, ..
                } => Some(rate_per_second),
            },
            unsent_operations: sum(|worker| &worker.unsent),
            generator_cpu_seconds: clock::to_seconds(sum(|worker| &worker.cpu)),
            generator_idle_ratio: (sum(|worker| &worker.idle) as f64
                / (nanoseconds * workers.len() as u64) as f64)
                .min(1.0),
            lag_p99_seconds: all.lag.quantiles(&[0.99]).map(|lag| lag[0]),
            failed: phase.failure.get(),
            per_operation,
            histograms,
        }
    }
}

impl OperationCounts {
    fn of<'a>(parts: impl Iterator<Item = &'a OperationStatistics> + Clone) -> Self {
        let sum = |count: fn(&OperationStatistics) -> &Counter| {
            parts.clone().map(|part| count(part).get()).sum()
        };
        Self {
            count: sum(|part| &part.completed),
            errors: sum(|part| &part.errors),
            hits: sum(|part| &part.hits),
            misses: sum(|part| &part.misses),
        }
    }
}
