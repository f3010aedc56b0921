use super::client_memory::ClientMemory;
use super::clock::Clock;
use super::counters::{Count, Counters, Totals};
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
    /// For what clients sent and did not finish, and for replies that they do not take.
    pub client_memory: Arc<ClientMemory>,
    pub addresses: Addresses,
    pub clock: Clock,
    /// Of each worker, which alone may add to its own.
    pub counters: Box<[Counters]>,
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
    /// Have the files read again soon, for connections to come, by a thread that serves nobody.
    fn refresh(&self);

    /// How often that failed, so that all stayed as it was.
    fn refresh_errors(&self) -> u64;

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
        let bytes = options.client_memory_bytes(item_bytes_max);
        let client_memory = Arc::new(ClientMemory::new(bytes, options.threads));
        Self {
            counters: (0..options.threads)
                .map(|_| Counters::new(&client_memory))
                .collect(),
            options,
            item_bytes_max,
            client_memory,
            addresses,
            clock,
            certificates,
            refused_connections: AtomicU64::new(0),
            baseline: Mutex::default(),
        }
    }

    /// Of how many workers each has partitions of its own; 1 where all have the same.
    pub fn parts(&self) -> usize {
        self.options.parts()
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
