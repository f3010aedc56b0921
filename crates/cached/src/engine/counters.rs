use super::client_memory::{Allowance, ClientMemory};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a worker counts: keys by what became of them, values, bytes, connections, datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    GetHits,
    GetMisses,
    /// Values sent to be stored.
    Sets,
    Flushes,
    TouchHits,
    TouchMisses,
    /// `me`.
    MetaDebugs,
    DeleteHits,
    DeleteMisses,
    IncrementHits,
    IncrementMisses,
    DecrementHits,
    DecrementMisses,
    CasHits,
    CasMisses,
    /// Values not stored because the CAS number was wrong.
    CasMismatches,
    /// Values refused because they were too large.
    TooLarge,
    /// Values refused because memory was full.
    OutOfMemory,
    BytesRead,
    BytesWritten,
    /// Times a connection had to wait for the client to read.
    Stalls,
    /// Connections closed because they asked for nothing.
    IdleKicks,
    /// Attempts to give a password.
    Authentications,
    AuthenticationFailures,
    /// Times a connection, or a datagram, went to the worker that its next command is for.
    Moves,
    /// Commands that another worker carried out, whose connection stayed.
    Forwards,
    DatagramsReceived,
    DatagramsSent,
    /// Datagrams that could not be sent at once.
    DatagramsDropped,
    /// TLS sessions that clients began, and did not take up from an earlier connection.
    TlsNewSessions,
    /// TLS handshakes that failed or took too long.
    TlsHandshakeErrors,
    /// TLS sessions that failed later.
    TlsProtocolErrors,
    /// Connections closed because there was no memory for what they sent.
    ReadsOutOfMemory,
    /// Connections closed because there was no memory for replies that they did not take.
    RepliesOutOfMemory,
    /// Datagrams for another worker, for which too many wait.
    DatagramsNotForwarded,
    /// Connections taken on.
    Opened,
    /// Connections that ended.
    Closed,
}

const COUNTS: usize = Count::Closed as usize + 1;

/// What one worker counted. It alone writes; any thread may read.
#[repr(align(128))]
pub(crate) struct Counters {
    counts: [AtomicU64; COUNTS],
    allowance: Allowance,
}

impl Counters {
    /// Of a worker whose clients' buffers take from `memory`.
    #[must_use]
    pub fn new(memory: &Arc<ClientMemory>) -> Self {
        Self {
            counts: [const { AtomicU64::new(0) }; COUNTS],
            allowance: Allowance::of(memory),
        }
    }

    /// What the worker has by it of the memory for clients.
    #[inline]
    pub fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    /// Count `more`. For the owning worker only: two writers would lose counts.
    #[inline]
    pub fn add(&self, count: Count, more: u64) {
        let counter = &self.counts[count as usize];
        counter.store(
            counter.load(Ordering::Relaxed).wrapping_add(more),
            Ordering::Relaxed,
        );
    }
}

/// Sums over workers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals([u64; COUNTS]);

impl Default for Totals {
    fn default() -> Self {
        Self([0; COUNTS])
    }
}

impl Totals {
    /// What all workers counted so far.
    pub fn of<'c>(workers: impl IntoIterator<Item = &'c Counters>) -> Self {
        let mut totals = Self::default();
        for counters in workers {
            for (total, counter) in totals.0.iter_mut().zip(&counters.counts) {
                *total += counter.load(Ordering::Relaxed);
            }
        }
        totals
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = *self;
        for (total, earlier) in since.0.iter_mut().zip(&earlier.0) {
            *total -= earlier;
        }
        since
    }
}
