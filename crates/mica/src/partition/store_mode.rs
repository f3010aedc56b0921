//! Store mode: nothing goes that was not removed and has not expired.
//!
//! Items lie in blocks of a [`Heap`], which is the memory of a [log that stands still](Log::standing): looking them up
//! is what it is in cache mode. Each has its CAS number and a second of expiry in its header, whatever they are, so
//! that no change but that of its length needs another block.
//!
//! **Readers** look beside the owner here too. A block is given back, split or joined with others only after the entry
//! that led to it was cleared or changed, or while its bucket is being written, by the bucket's version. So whoever
//! reads bytes that were written to memory after it was given back finds the version changed when it looks again:
//!
//! * The version was made odd before the entry was cleared, and a release fence lies between that and every later
//!   write of the same thread ([`Versions::write`](crate::versions::Versions::write)). Where another thread has the
//!   partition's lock since, that saw the odd version when it took the lock, and each change of the heap begins with a
//!   release fence of its own.
//! * The reader has an acquire fence between the bytes and the version
//!   ([`Versions::is_unchanged`](crate::versions::Versions::is_unchanged)).
//!
//! **When there is no block** that is long enough, items that have expired are swept out of the index, and then items
//! [are moved](crate::compaction) to join shorter ones.

use super::Partition;
use crate::address::{Address, cas_beside_log};
use crate::found::Found;
use crate::index::Items;
use crate::item::Header;
use crate::log::Log;
use crate::store::Sweep;
use crate::table::Slot;
use crate::{Contents, Error, Key};

/// Of so many items stored, one has a bucket of the index swept for items that have expired: in so many writes as there
/// are items, about, all are looked at.
const WRITES_FOR_A_BUCKET: u64 = 8;

/// Buckets that are swept at once where there is no room for a write.
const BUCKETS_BEFORE_REFUSAL: usize = 256;

impl Partition {
    /// Bytes that no item has, in store mode; `None` in cache mode, where every item may make room.
    pub fn free_bytes(&self) -> Option<usize> {
        self.store.as_ref().map(|store| store.heap.free_bytes())
    }

    /// As [`for_each_live`](Self::for_each_live): every block in use is an item's.
    pub(crate) fn for_each_stored(&self, now: u32, mut each: impl FnMut(Address, &Header)) {
        self.for_each_block(|address, header| {
            if !header.is_expired(now) {
                each(address, header);
            }
        });
    }

    /// Every block in use, in the order of memory.
    pub(crate) fn for_each_block(&self, mut each: impl FnMut(Address, &Header)) {
        let Some(store) = &self.store else { return };
        let mut offset = 0;
        while let Some(address) = store.heap.used_from(&self.log, offset) {
            let (header, _) = self.log.header(address);
            each(address, &header);
            offset = address.offset() + header.item_bytes();
        }
    }

    /// The bucket and the entry of the item in a block.
    pub(crate) fn entry_of(&self, address: Address) -> Option<(usize, Slot)> {
        let index = &self.shared.index;
        let key = self.log.key_at(address.position());
        let home = index.bucket_of(key);
        let slot = index.table.slot_of(home, key.tag(), address.position())?;
        Some((home, slot))
    }

    /// Whether items make room for others, as this is the memory for [large ones](crate::large) of a cache.
    pub(crate) fn evicts_large(&self) -> bool {
        let store = self.store.as_ref();
        store.is_some_and(|store| store.evicts_over.is_some())
    }

    /// The largest CAS number that was given so far.
    pub(crate) fn last_cas_of_store(&self) -> Option<u64> {
        self.store.as_ref().map(|store| store.last_cas)
    }

    /// Count changes from `cas` on, if they are not that many yet.
    pub(crate) fn count_changes_from(&mut self, cas: u64) {
        if let Some(store) = &mut self.store {
            store.last_cas = store.last_cas.max(cas);
        }
    }

    /// The CAS number of the next change, in store mode: they count changes.
    pub(crate) fn next_cas(&mut self) -> Option<u64> {
        let store = self.store.as_mut()?;
        store.last_cas = match store.evicts_over {
            // A key may have had, and will have, items in the log as well.
            Some(_) => cas_beside_log(store.last_cas),
            None => store.last_cas + 1,
        };
        Some(store.last_cas)
    }

    /// An item may expire at this second.
    #[inline]
    pub(crate) fn note_expiry(&mut self, expires_at: u32) {
        if let Some(store) = &mut self.store {
            store.sweep.note(expires_at);
        }
    }

    /// The header of a new item, with all that may change where it lies.
    fn header_in_store(&mut self, key: Key<'_>, now: u32, contents: &Contents<'_>) -> Header {
        let header = Header::new(key.bytes().len(), contents, now).with_expiry();
        match contents.cas {
            0 => header.with_cas(self.next_cas()),
            _ => header,
        }
    }

    #[inline(never)]
    pub(crate) fn insert_into_store(
        &mut self,
        key: Key<'_>,
        now: u32,
        contents: &Contents<'_>,
    ) -> Result<u64, Error> {
        let header = self.header_in_store(key, now, contents);
        let address = self.allocate(header.item_bytes(), now)?;
        self.grow();
        let index = &self.shared.index;
        let home = index.bucket_of(key);
        let Some(slot) = self.index.slot_to_fill(index, &self.log, home) else {
            self.give_back(address, &header);
            return Err(self.refuse(header.item_bytes()));
        };
        self.log
            .write_item(address, &header, key.bytes(), contents.value);
        self.point(home, slot, key, address);
        self.statistics.items += 1;
        self.statistics.bytes += header.item_bytes() as u64;
        self.statistics.items_stored += 1;
        self.note_expiry(header.expires_at());
        self.sweep_a_little(now);
        Ok(header.explicit_cas().unwrap_or_default())
    }

    pub(crate) fn replace_in_store(
        &mut self,
        mut found: Found,
        key: Key<'_>,
        now: u32,
        contents: &Contents<'_>,
    ) -> Result<u64, Error> {
        if self.evicts_large() {
            return self.replace_by_removing(&found, key, now, contents);
        }
        let header = self.header_in_store(key, now, contents);
        let (old, bytes) = (found.header, header.item_bytes());
        let resized = self.resized(&found, bytes, |log, address| {
            log.write_item(address, &header, key.bytes(), contents.value);
        });
        if !resized {
            let address = self.allocate_keeping(&mut found, key, bytes, now)?;
            self.log
                .write_item(address, &header, key.bytes(), contents.value);
            self.move_to(&mut found, key, address);
        }
        self.count_change(&old, &header);
        self.statistics.overwritten += 1;
        self.statistics.items_stored += 1;
        self.sweep_a_little(now);
        Ok(header.explicit_cas().unwrap_or_default())
    }

    pub(crate) fn join_in_store(
        &mut self,
        found: &mut Found,
        key: Key<'_>,
        now: u32,
        header: Header,
        (front, back): (&[u8], &[u8]),
    ) -> Result<(), Error> {
        let (old, bytes) = (found.header, header.item_bytes());
        let is_appended = front.is_empty() && header.bytes() == old.bytes();
        let resized = self.resized(found, bytes, |log, address| {
            if is_appended {
                log.set_header(address, &header);
                log.append(address, &old, back);
            } else {
                log.write_joined(
                    address,
                    &header,
                    key.bytes(),
                    (front, (address, &old), back),
                );
            }
        });
        if !resized && self.evicts_large() {
            return self.join_by_removing(found, key, now, (header, front, back));
        }
        if !resized {
            let address = self.allocate_keeping(found, key, bytes, now)?;
            self.log.write_joined(
                address,
                &header,
                key.bytes(),
                (front, (found.address, &old), back),
            );
            self.move_to(found, key, address);
        }
        found.header = header;
        self.count_change(&old, &header);
        self.sweep_a_little(now);
        Ok(())
    }

    /// Replace an item where there may not be room for both.
    fn replace_by_removing(
        &mut self,
        found: &Found,
        key: Key<'_>,
        now: u32,
        contents: &Contents<'_>,
    ) -> Result<u64, Error> {
        self.remove_from_store(found);
        self.statistics.overwritten += 1;
        self.insert_into_store(key, now, contents)
    }

    /// As [`join_in_store`](Self::join_in_store), where there may not be room for both: by way of other memory.
    fn join_by_removing(
        &mut self,
        found: &mut Found,
        key: Key<'_>,
        now: u32,
        (header, front, back): (Header, &[u8], &[u8]),
    ) -> Result<(), Error> {
        let old = self.log.item(found.address, &found.header, now);
        let value = [front, old.value, back].concat();
        let contents = Contents {
            value: &value,
            flags: old.flags,
            expires_at: old.expires_at,
            marks: header.marks(),
            cas: header.explicit_cas().unwrap_or_default(),
        };
        self.remove_from_store(found);
        self.insert_into_store(key, now, &contents)?;
        // Whoever had it joined counts it.
        self.statistics.items_stored -= 1;
        if let Some(sought) = self.seek(key) {
            (found.slot, found.address) = (sought.slot, sought.address);
        }
        found.header = header;
        Ok(())
    }

    #[inline(never)]
    pub(crate) fn remove_from_store(&mut self, found: &Found) {
        self.index
            .remove(&self.shared.index, found.home, found.slot);
        self.give_back(found.address, &found.header);
        self.statistics.items -= 1;
        self.statistics.bytes -= found.header.item_bytes() as u64;
    }

    /// Give back every item's block and forget the entries; that takes the same time however many there are.
    #[cold]
    pub(crate) fn empty_store(&mut self) {
        let Some(store) = &mut self.store else { return };
        let index = &self.shared.index;
        let _writing = index.versions.write_all();
        self.index.reset(index);
        store.heap.free_all(&mut self.log);
        store.sweep = Sweep::NOTHING;
    }

    /// As [`allocate`](Self::allocate), while an item is to stay that may be moved by it.
    fn allocate_keeping(
        &mut self,
        found: &mut Found,
        key: Key<'_>,
        bytes: usize,
        now: u32,
    ) -> Result<Address, Error> {
        let address = self.allocate(bytes, now);
        let table = &self.shared.index.table;
        let is_where_it_was = table.tag(found.slot) == key.tag()
            && table.position(found.slot) == found.address.position();
        if !is_where_it_was && let Some(sought) = self.seek(key) {
            (found.slot, found.address) = (sought.slot, sought.address);
        }
        address
    }

    /// A block for a new item. Items that have expired make room as far as they are soon found, and others move, both
    /// with their entries.
    fn allocate(&mut self, bytes: usize, now: u32) -> Result<Address, Error> {
        let items_max = self.store.as_ref().and_then(|store| store.evicts_over);
        if items_max.is_some_and(|most| self.statistics.items >= most) {
            self.evict_least_recently_used(now);
        }
        loop {
            if let Some(address) = self.allocate_free(bytes, now) {
                return Ok(address);
            }
            if !self.evict_least_recently_used(now) {
                return Err(self.refuse(bytes));
            }
        }
    }

    fn allocate_free(&mut self, bytes: usize, now: u32) -> Option<Address> {
        let mut buckets = 0..BUCKETS_BEFORE_REFUSAL;
        loop {
            if let Some(store) = &mut self.store
                && let Some(address) = store.heap.allocate(&mut self.log, bytes)
            {
                return Some(address);
            }
            let freed = buckets.find_map(|_| match self.sweep_bucket(now) {
                Some(0) => None,
                found => Some(found.is_some()),
            });
            if freed != Some(true) {
                return self.allocate_by_moving(bytes);
            }
        }
    }

    fn refuse(&mut self, bytes: usize) -> Error {
        self.statistics.refused += 1;
        Error::Full { bytes }
    }

    /// Change the length of an item's block where it lies and have the item written to it, if that can be done.
    fn resized(
        &mut self,
        found: &Found,
        bytes: usize,
        write: impl FnOnce(&mut Log, Address),
    ) -> bool {
        let Some(store) = &mut self.store else {
            return false;
        };
        // What is behind a shorter item is the heap's at once.
        let _writing = self.shared.index.versions.write(found.home);
        let old_bytes = found.header.item_bytes();
        let is_resized = store
            .heap
            .resize(&mut self.log, found.address, old_bytes, bytes);
        if is_resized {
            write(&mut self.log, found.address);
        }
        is_resized
    }

    /// The item is whole at `address` too: let the index point there, and give back the block where it was.
    fn move_to(&mut self, found: &mut Found, key: Key<'_>, address: Address) {
        self.point(found.home, found.slot, key, address);
        self.give_back(found.address, &found.header);
        found.address = address;
    }

    fn point(&self, home: usize, slot: Slot, key: Key<'_>, address: Address) {
        let index = &self.shared.index;
        let _writing = index.versions.write(home);
        index.table.set(slot, key.tag(), address.position());
    }

    /// The block of an item that nothing points to.
    fn give_back(&mut self, address: Address, header: &Header) {
        if let Some(store) = &mut self.store {
            store.heap.free(&mut self.log, address, header.item_bytes());
        }
    }

    fn count_change(&mut self, old: &Header, new: &Header) {
        self.statistics.bytes -= old.item_bytes() as u64;
        self.statistics.bytes += new.item_bytes() as u64;
        self.note_expiry(new.expires_at());
    }

    #[inline]
    fn sweep_a_little(&mut self, now: u32) {
        if self
            .statistics
            .items_stored
            .is_multiple_of(WRITES_FOR_A_BUCKET)
        {
            self.sweep_bucket(now);
        }
    }

    /// Remove what has expired of the next bucket, and return how many items that was; `None` where nothing can have
    /// expired. Entries may move.
    pub(crate) fn sweep_bucket(&mut self, now: u32) -> Option<u64> {
        let index = &self.shared.index;
        let sweep = &mut self.store.as_mut()?.sweep;
        if sweep.soonest <= now && sweep.bucket >= index.buckets() {
            sweep.bucket = 0;
            sweep.soonest = std::mem::replace(&mut sweep.soonest_of_round, u32::MAX);
        }
        if sweep.soonest > now {
            return None;
        }
        let home = sweep.bucket;
        sweep.bucket += 1;
        // They lie anywhere: have them fetched together.
        for slot in index.table.filled(home) {
            self.log.prefetch(index.table.position(slot));
        }
        let mut removed = 0;
        while let Some(found) = self.expired_in(home, now) {
            self.remove_from_store(&found);
            removed += 1;
        }
        self.statistics.expired += removed;
        Some(removed)
    }

    /// An item of a bucket that has expired; those that have not are noted.
    fn expired_in(&mut self, home: usize, now: u32) -> Option<Found> {
        let table = &self.shared.index.table;
        let sweep = &mut self.store.as_mut()?.sweep;
        table.filled(home).find_map(|slot| {
            let address = Address::at(table.position(slot) as usize);
            let (header, _) = self.log.header(address);
            if header.is_expired(now) {
                return Some(Found {
                    home,
                    slot,
                    address,
                    header,
                });
            }
            sweep.note(header.expires_at());
            None
        })
    }
}
