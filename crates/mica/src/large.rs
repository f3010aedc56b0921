//! Items that are too large for a cache's log to have beside small ones: one of them would push out thousands.
//!
//! They lie in a memory of their own, a [store](crate::store) that evicts: there the large item goes that was not used
//! for longest. So however many large ones come, the log is the small ones', and however many small ones come, this
//! memory is the large ones'. A key has its item on one side: what is stored on one is removed from the other.
//!
//! What an item in the log costs does not change: a lookup that finds a key there never looks at the other side. Readers know
//! only the log; while there is a large item, they have the owner asked about what they miss.

use crate::Partition;
use crate::address::Address;
use crate::found::Found;
use crate::item::Header;
use crate::sync::Ordering::{Relaxed, Release};
use crate::{Config, Contents, Error, Eviction, HEADER_BYTES, Item, Key, Mode};

/// A log has items up to this part of all memory; longer ones are large.
const LARGE_PART: usize = 64;

/// What is kept for large items: this part of all memory, or as much as the largest needs.
const KEPT_PART: usize = 4;

/// Items up to this length are never worth a memory of their own.
const SMALL_BYTES: usize = 1 << 20;

/// Blocks and their headers are a little longer than the items that are asked for.
const MARGIN_BYTES: usize = 64;

impl Config {
    /// With items of up to `bytes`, which is at most [`item_bytes_limit`](Self::item_bytes_limit). Where one of them
    /// would take more than a 64th of a cache, and more than 1 MiB, large items get a part of the memory for themselves:
    /// a quarter, or as much as the largest needs.
    #[must_use]
    pub fn with_items_of(self, bytes: usize) -> Self {
        let is_apart =
            self.mode == Mode::Cache && bytes > SMALL_BYTES.max(self.log_bytes / LARGE_PART);
        Self {
            item_bytes_max: bytes,
            large_bytes: if is_apart {
                (bytes + MARGIN_BYTES).max(self.log_bytes / KEPT_PART)
            } else {
                0
            },
            ..self
        }
    }

    /// The largest item that this memory can be made for: three quarters of a cache, half of a store.
    pub fn item_bytes_limit(&self) -> usize {
        let half = self.log_bytes / 2;
        match self.mode {
            Mode::Cache if half > SMALL_BYTES => self.log_bytes / 4 * 3 - MARGIN_BYTES,
            _ => half,
        }
    }

    /// What the log gets, and the memory for large items, if there is one.
    pub(crate) fn divided(self) -> (Self, Option<Self>) {
        if self.large_bytes == 0 || self.mode == Mode::Store {
            return (self, None);
        }
        let large = Self {
            mode: Mode::Store,
            log_bytes: self.large_bytes,
            large_bytes: 0,
            buckets_min: 1,
            buckets_max: self.large_items_max(),
            eviction: Eviction::FirstWritten,
            has_readers: false,
            ..self
        };
        let log = Self {
            log_bytes: self.log_bytes.saturating_sub(self.large_bytes),
            item_bytes_max: self.small_bytes_max(),
            ..self
        };
        (log, Some(large))
    }

    /// The longest item that is not large.
    fn small_bytes_max(&self) -> usize {
        (self.log_bytes / LARGE_PART).clamp(HEADER_BYTES, self.item_bytes_max.max(HEADER_BYTES))
    }

    /// More large items do not fit, but some may have become small where they are.
    pub(crate) fn large_items_max(&self) -> usize {
        self.large_bytes / self.small_bytes_max() + 1
    }
}

impl Partition {
    /// Store an item that the log does not take, with the error to return where there is no memory for large items.
    #[cold]
    pub(crate) fn set_large(
        &mut self,
        key: Key<'_>,
        now: u32,
        contents: &Contents<'_>,
        refusal: Error,
    ) -> Result<u64, Error> {
        self.flush_if_due(now);
        let Some(large) = &mut self.large else {
            return Err(refusal);
        };
        large.check_size(key.bytes().len(), contents.value.len())?;
        large.count_changes_from(self.log.tail().cas(0));
        // Before the log's item goes: a reader that misses that sees this.
        self.shared.has_large.store(true, Relaxed);
        let cas = large.set(key, now, contents)?;
        if let Some(found) = self.find(key, now) {
            self.remove(&found);
            self.statistics.overwritten += 1;
        }
        Ok(cas)
    }

    /// As [`get`](Self::get), of a key that the log has not.
    #[inline(never)]
    pub(crate) fn get_large(&mut self, key: Key<'_>, now: u32) -> Option<Item<'_>> {
        let large = self.large.as_mut()?;
        if !self.shared.has_large.load(Relaxed) {
            return None;
        }
        // Those that have expired are looked for as clients miss others, not only as they write.
        large.sweep_bucket(now);
        if large.statistics.items == 0 {
            // Behind all that took the last one away: a reader that sees this sees what the log has in its place.
            self.shared.has_large.store(false, Release);
            return None;
        }
        large.get(key, now)
    }

    /// Remove the large item under a key that is about to have another in the log, and return the CAS number of that,
    /// which its place does not give: it would not be larger.
    #[inline]
    pub(crate) fn take_large(&mut self, key: Key<'_>, now: u32) -> Option<u64> {
        let large = self.large.as_mut()?;
        let found = large.find(key, now)?;
        large.remove(&found);
        large.count_changes_from(self.log.tail().cas(0));
        self.statistics.overwritten += 1;
        large.next_cas()
    }

    /// Let the large item go that was not used for longest, of those that lie in this memory; `false` where there is none
    /// or all are to stay.
    #[cold]
    pub(crate) fn evict_least_recently_used(&mut self, now: u32) -> bool {
        if !self.evicts_large() {
            return false;
        }
        // They are few.
        let mut oldest: Option<((u32, u64), Address, Header)> = None;
        self.for_each_block(|address, header| {
            let age = match header.is_expired(now) {
                true => (0, 0),
                false => (
                    header.accessed_at(now),
                    header.explicit_cas().unwrap_or_default(),
                ),
            };
            if oldest.is_none_or(|(least, ..)| age < least) {
                oldest = Some((age, address, *header));
            }
        });
        let Some((_, address, header)) = oldest else {
            return false;
        };
        let Some((home, slot)) = self.entry_of(address) else {
            return false;
        };
        self.count_drop(&header, now, |statistics| &mut statistics.evictions);
        self.remove_from_store(&Found {
            home,
            slot,
            address,
            header,
        });
        true
    }
}
