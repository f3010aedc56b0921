//! Every item of a partition, without a key to look for, in pieces between which the partition may change.

use super::Partition;
use crate::index::Items;
use crate::{Item, Key};

impl Partition {
    /// Hand every item whose key falls into `share` of `shares` (a power of two) to `each`, at second `now`.
    ///
    /// Which share a key falls into never changes. So whoever takes the shares one after the other meets each item that
    /// is there all the time exactly once, however the partition grows meanwhile.
    pub fn for_each_of_share(
        &mut self,
        (share, shares): (u32, u32),
        now: u32,
        mut each: impl FnMut(Key<'_>, Item<'_>),
    ) {
        debug_assert!(shares.is_power_of_two() && share < shares);
        self.flush_if_due(now);
        let index = &self.shared.index;
        let in_share = |key: Key<'_>| key.bucket_bits() as u32 & (shares - 1) == share;
        for bucket in index.buckets_of_share(share, shares) {
            for slot in index.table.filled(bucket) {
                let address = self.log.address(index.table.position(slot));
                if !self.log.is_alive(address) || self.shared.is_flushed(address) {
                    continue;
                }
                let (header, _) = self.log.header(address);
                let key = self.log.key_at(address.position());
                if !header.is_expired(now) && in_share(key) {
                    each(key, self.log.item(address, &header, now));
                }
            }
        }
        if let Some(large) = &mut self.large {
            large.for_each_of_share((share, shares), now, each);
        }
    }

    /// Seconds since the item whose turn to make room comes first was last read or written, where there is one: how
    /// long items stay that nobody reads. None makes room in store mode.
    #[must_use]
    pub fn oldest_age_seconds(&self, now: u32) -> Option<u32> {
        if self.store.is_some() {
            return None;
        }
        let (header, _) = self.log.header(self.log.oldest()?);
        Some(now.saturating_sub(header.accessed_at(now)))
    }
}
