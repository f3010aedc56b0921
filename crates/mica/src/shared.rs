//! What the owner of a partition and its readers share.

use crate::address::Address;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::{Eviction, Key, index};
use std::sync::Arc;

/// What the owner of a partition and its readers share.
pub(crate) struct Shared {
    pub index: index::Shared,
    pub log: Arc<crate::log::Shared>,
    pub eviction: Eviction,
    /// Items before this [`Address`] were flushed.
    pub flushed_below: AtomicU64,
    /// The second of a flush that is yet to happen; `u32::MAX` when there is none.
    pub flush_due: AtomicU32,
    /// Whether there may be an item that is not in the log.
    pub has_large: AtomicBool,
}

impl Shared {
    #[inline]
    pub fn is_flushed(&self, address: Address) -> bool {
        address.bits() < self.flushed_below.load(Relaxed)
    }

    #[inline]
    pub fn prefetch_bucket(&self, key: Key<'_>) {
        self.index.table.prefetch(self.index.bucket_of(key));
    }

    #[inline]
    pub fn prefetch_item(&self, key: Key<'_>) -> bool {
        let table = &self.index.table;
        let home = self.index.bucket_of(key);
        if let Some((_, position)) = table.first_candidate(home, key.tag()) {
            self.log.prefetch(position);
            return false;
        }
        let next = table.next(home);
        if let Some(next) = next {
            table.prefetch(next);
        }
        next.is_some()
    }

    #[cold]
    pub fn prefetch_further(&self, key: Key<'_>) {
        let home = self.index.bucket_of(key);
        if let Some((_, position)) = self.index.table.candidates(home, key.tag()).next() {
            self.log.prefetch(position);
        }
    }
}
