use super::clock::Clock;
use super::counters::{Count, Counters, Totals};
use super::events::Events;
use super::prefixes::Prefixes;
use crate::options::Options;
use mica::Statistics;
use net::Endpoint;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What all workers of a server share: how it was started, and what it counts.
pub(crate) struct ServerState {
    pub options: Options,
    /// The largest item, in bytes.
    pub item_bytes_max: usize,
    pub addresses: Addresses,
    pub clock: Clock,
    /// Of each worker, which alone may add to its own.
    pub counters: Box<[Counters]>,
    pub prefixes: Prefixes,
    pub events: Arc<Events>,
    /// What connections are encrypted with; `None` where none are.
    pub certificates: Option<Arc<dyn Certificates>>,
    refused_connections: AtomicU64,
    baseline: Mutex<Baseline>,
}

/// Where the server is reached, apart from its common endpoints.
#[derive(Default)]
pub(crate) struct Addresses {
    /// Where each worker listens by itself, where each has keys of its own.
    pub workers: Vec<Endpoint>,
    /// Of datagrams: those of all workers, then each worker's own where each has keys of its own.
    pub datagrams: Vec<SocketAddr>,
}

/// Certificates that can be read again.
pub(crate) trait Certificates: Send + Sync {
    /// Read the files again, for connections to come.
    fn refresh(&self) -> Result<(), String>;

    /// Seconds since the files were read.
    fn age_seconds(&self) -> u64;
}

/// What `stats reset` found; counting goes on from there.
#[derive(Clone, Copy, Default)]
pub(super) struct Baseline {
    pub totals: Totals,
    pub refused_connections: u64,
    pub items: Statistics,
}

impl ServerState {
    pub fn new(
        options: Options,
        item_bytes_max: usize,
        addresses: Addresses,
        clock: Clock,
        certificates: Option<Arc<dyn Certificates>>,
    ) -> Self {
        Self {
            prefixes: Prefixes::new(options.prefix_delimiter, options.counts_prefixes),
            counters: (0..options.threads)
                .map(|_| Counters::new(options.hot_keys))
                .collect(),
            options,
            item_bytes_max,
            addresses,
            clock,
            events: Arc::default(),
            certificates,
            refused_connections: AtomicU64::new(0),
            baseline: Mutex::default(),
        }
    }

    /// Of how many workers each has partitions of its own; 1 where all have the same.
    pub fn parts(&self) -> usize {
        self.addresses.workers.len().max(1)
    }

    /// Connections that ended so far.
    pub fn closed_connections(&self) -> u64 {
        Totals::of(&self.counters).get(Count::Closed)
    }

    /// Count a connection that was refused because there were too many.
    pub fn count_refused(&self) {
        self.refused_connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused_connections(&self) -> u64 {
        self.refused_connections.load(Ordering::Relaxed)
    }

    pub(super) fn baseline(&self) -> Baseline {
        *self.baseline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_baseline(&self, baseline: Baseline) {
        *self.baseline.lock().unwrap_or_else(PoisonError::into_inner) = baseline;
    }
}
