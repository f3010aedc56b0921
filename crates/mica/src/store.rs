//! What store mode keeps beside log and index.

use crate::heap::Heap;
use crate::log::Log;

/// What store mode has beside log and index.
pub(crate) struct Store {
    pub heap: Heap,
    /// The CAS number given last.
    pub last_cas: u64,
    pub sweep: Sweep,
    /// Where items are not to stay: how many there may be.
    pub evicts_over: Option<u64>,
}

/// Where the index is in being looked through for items that have expired.
pub(crate) struct Sweep {
    /// The bucket looked at next.
    pub bucket: usize,
    /// No item expires before this second.
    pub soonest: u32,
    /// The same of items in buckets that this round has looked at, and of those stored since it began.
    pub soonest_of_round: u32,
}

impl Sweep {
    pub const NOTHING: Self = Self {
        bucket: 0,
        soonest: u32::MAX,
        soonest_of_round: u32::MAX,
    };

    pub fn note(&mut self, expires_at: u32) {
        if expires_at != 0 {
            self.soonest = self.soonest.min(expires_at);
            self.soonest_of_round = self.soonest_of_round.min(expires_at);
        }
    }
}

impl Store {
    pub fn new(log: &mut Log, evicts_over: Option<u64>) -> Self {
        Self {
            heap: Heap::new(log),
            last_cas: 0,
            sweep: Sweep::NOTHING,
            evicts_over,
        }
    }
}
