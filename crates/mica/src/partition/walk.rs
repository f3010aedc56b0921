//! What it takes to carry the items of one partition over to another, in this process or in a later one.

use super::Partition;
use crate::Item;
use crate::address::Address;
use crate::item::Header;
use crate::sync::Ordering::Relaxed;

/// An item that is met on a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Live<'p> {
    /// Its key.
    pub key: &'p [u8],
    /// The item.
    pub item: Item<'p>,
    /// The CAS number that it carries with it, as [`Contents::cas`](crate::Contents) does; 0 where its number follows
    /// from where it lies, and is another one elsewhere.
    pub own_cas: u64,
}

impl Partition {
    /// Hand every item that a lookup at second `now` could find to `each`: in cache mode from the one that was written
    /// first to the one that was written last, in store mode as they lie in memory. Nothing changes: no item is noted to
    /// have been read.
    pub fn for_each_live(&self, now: u32, mut each: impl FnMut(Live<'_>)) {
        if self.shared.flush_due.load(Relaxed) <= now {
            return;
        }
        if self.store.is_some() {
            return self
                .for_each_stored(now, |address, header| each(self.live(address, header, now)));
        }
        let mut next = self.log.oldest();
        while let Some(address) = next {
            let (header, _) = self.log.header(address);
            if self.is_counted(address, &header) && !header.is_expired(now) {
                each(self.live(address, &header, now));
            }
            next = self.log.behind(address, header.item_bytes());
        }
        if let Some(large) = &self.large {
            large.for_each_live(now, each);
        }
    }

    fn live(&self, address: Address, header: &Header, now: u32) -> Live<'_> {
        Live {
            key: self.log.key(address, header, self.log.header(address).1),
            item: self.log.item(address, header, now),
            own_cas: header.explicit_cas().unwrap_or(0),
        }
    }

    /// The second of a flush that is yet to happen.
    pub fn flush_due(&self) -> Option<u32> {
        match self.shared.flush_due.load(Relaxed) {
            u32::MAX => None,
            due => Some(due),
        }
    }

    /// No CAS number that the partition gave so far is larger than this.
    pub fn last_cas(&self) -> u64 {
        let of_large = self.large.as_ref().map_or(0, |large| large.last_cas());
        self.last_cas_of_store()
            .unwrap_or_else(|| self.log.tail().cas(u8::MAX))
            .max(of_large)
    }

    /// Give only CAS numbers that are larger than `cas` from now on, as a partition must that takes the place of one
    /// that gave numbers up to `cas`: who kept one of those must not find it on another item. To be called before
    /// anything is stored; later it does nothing.
    pub fn number_after(&mut self, cas: u64) {
        if self.statistics.items_stored > 0 {
            return;
        }
        if self.store.is_some() {
            return self.count_changes_from(cas);
        }
        if self.last_cas() <= cas {
            self.log.begin_after(cas);
            let tail = self.log.tail();
            self.shared.flushed_below.store(tail.bits(), Relaxed);
            self.swept_lap = tail.lap();
        }
    }
}
