mod store_mode;
mod walk;
mod writing;

pub use walk::Live;

use crate::address::{Address, cas};
use crate::found::{Found, Sought};
use crate::index::{self, Index};
use crate::item::{First, HEADER_BYTES, Header, is_past};
use crate::log::Log;
use crate::reader::Reader;
use crate::shared::Shared;
use crate::store::Store;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::table::Slot;
use crate::{Config, Contents, Error, Eviction, Hasher, Item, Key, Marks, Mode, Statistics, burst};
use std::sync::Arc;

/// A circular log, or a heap in store mode, and the index over it. One owner at a time: one that is shared is locked.
/// Others may [read](Partition::reader) meanwhile.
pub struct Partition {
    pub(crate) shared: Arc<Shared>,
    pub(crate) log: Log,
    pub(crate) index: Index,
    /// What store mode has beside these.
    pub(crate) store: Option<Box<Store>>,
    /// Items that are too large for the log.
    pub(crate) large: Option<Box<Self>>,
    pub(crate) statistics: Statistics,
    item_bytes_max: usize,
    /// The lap of the log that the index is being swept in.
    swept_lap: u64,
}

impl Partition {
    /// An empty partition for keys that `hasher` makes.
    ///
    /// # Errors
    /// [`Error::LogTooSmall`], [`Error::LogTooLarge`] or [`Error::OutOfMemory`].
    pub fn new(config: Config, hasher: Hasher) -> Result<Self, Error> {
        let (own, large) = config.divided();
        let large = large
            .map(|large| Self::made(large, hasher.clone(), Some(config.large_items_max() as u64)))
            .transpose()?;
        Ok(Self {
            large: large.map(Box::new),
            ..Self::made(own, hasher, None)?
        })
    }

    /// A log, or a heap, where large items are not kept apart; `evicts_over` as in [`Store`].
    fn made(config: Config, hasher: Hasher, evicts_over: Option<u64>) -> Result<Self, Error> {
        let mut log = match config.mode {
            Mode::Cache => Log::new(config.log_bytes, hasher)?,
            Mode::Store => Log::standing(config.log_bytes, hasher)?,
        };
        let limit = match evicts_over {
            None => log.capacity() / 2,
            Some(_) => log.capacity().saturating_sub(8),
        };
        if config.item_bytes_max < HEADER_BYTES || config.item_bytes_max > limit {
            return Err(Error::LogTooSmall {
                log_bytes: config.log_bytes,
                item_bytes_max: config.item_bytes_max,
            });
        }
        // In store mode nothing is ever flushed but at once, and there is no tail to move items away from.
        let (store, flushed_below, eviction) = match config.mode {
            Mode::Cache => (None, log.tail(), config.eviction),
            Mode::Store => {
                let store = Box::new(Store::new(&mut log, evicts_over));
                (Some(store), log.head(), Eviction::FirstWritten)
            }
        };
        let shared = Shared {
            index: index::Shared::new(config.buckets_min, config.buckets_max, config.has_readers)?,
            log: Arc::clone(log.shared()),
            eviction,
            flushed_below: AtomicU64::new(flushed_below.bits()),
            flush_due: AtomicU32::new(u32::MAX),
            has_large: AtomicBool::new(false),
        };
        Ok(Self {
            index: Index::new(config.mode, &shared.index),
            shared: Arc::new(shared),
            log,
            store,
            large: None,
            statistics: Statistics::default(),
            item_bytes_max: config.item_bytes_max,
            swept_lap: flushed_below.lap(),
        })
    }

    /// A way to read while the owner writes; `None` unless the partition was made for that.
    pub fn reader(&self) -> Option<Reader> {
        self.shared
            .index
            .versions
            .are_read()
            .then(|| Reader::new(Arc::clone(&self.shared)))
    }

    /// What it holds and what happened to it.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics;
        if let Some(large) = &self.large {
            statistics += large.statistics;
        }
        statistics
    }

    /// Room for items, in bytes.
    pub fn log_bytes(&self) -> usize {
        self.log.capacity() + self.large.as_ref().map_or(0, |large| large.log_bytes())
    }

    /// Size of the index at present, in bytes.
    pub fn index_bytes(&self) -> usize {
        let large = self.large.as_ref();
        self.index.bytes(&self.shared.index) + large.map_or(0, |large| large.index_bytes())
    }

    /// The largest item that is kept, in bytes: [`HEADER_BYTES`], key and value.
    pub fn item_bytes_max(&self) -> usize {
        let large = self.large.as_ref();
        large.map_or(self.item_bytes_max, |large| large.item_bytes_max)
    }

    /// Have the index's bucket for `key` fetched into the cache: the first of two steps that a burst of lookups takes
    /// for each key before it looks any of them up, so that memory answers many at once.
    #[inline]
    pub fn prefetch_bucket(&self, key: Key<'_>) {
        self.shared.prefetch_bucket(key);
    }

    /// Have the item under `key`, if there seems to be one, fetched into the cache: the second step. True where the
    /// bucket is continued in another one, which is fetched instead: there may be a third step, which is
    /// [`prefetch_further`](Self::prefetch_further).
    #[inline]
    pub fn prefetch_item(&self, key: Key<'_>) -> bool {
        self.shared.prefetch_item(key)
    }

    /// Have the item under `key` fetched where [`prefetch_item`](Self::prefetch_item) told of another bucket.
    #[inline]
    pub fn prefetch_further(&self, key: Key<'_>) {
        self.shared.prefetch_further(key);
    }

    /// Do something with many keys, in order, with buckets and items fetched ahead; see [`burst`].
    #[inline]
    pub fn prefetched(&mut self, keys: &[Key<'_>], work: impl FnMut(&mut Self, usize, Key<'_>)) {
        burst(
            self,
            keys,
            |partition, key| partition.prefetch_bucket(key),
            |partition, key| partition.prefetch_item(key),
            |partition, key| partition.prefetch_further(key),
            work,
        );
    }

    /// The item under `key` at second `now`, as it was before this hit was noted (when it was last read, and whether
    /// it ever was). A hit shortly before its turn to be overwritten moves it to the log's tail.
    #[inline]
    pub fn get(&mut self, key: Key<'_>, now: u32) -> Option<Item<'_>> {
        self.flush_if_due(now);
        let Some(sought) = self.seek(key) else {
            return self.get_large(key, now);
        };
        let Sought { address, first, .. } = sought;
        // What has no expiration time, no flags and a short value is the most that small items are.
        if first.is_plain() && !self.shared.is_flushed(address) && !self.is_to_be_kept(address) {
            self.note(sought.home, address, first, now);
            return Some(Item {
                value: self.log.plain_value(address, first),
                flags: 0,
                cas: address.cas(first.edition()),
                expires_at: 0,
                accessed_at: first.accessed_at(now),
                marks: first.marks(),
            });
        }
        // Field by field: both ways then end in registers. As a whole it would go by way of memory, in which a read of
        // two fields at once waits for the writes of each.
        let Item {
            value,
            flags,
            cas,
            expires_at,
            accessed_at,
            marks,
        } = self.get_and_note(sought, key, now)?;
        Some(Item {
            value,
            flags,
            cas,
            expires_at,
            accessed_at,
            marks,
        })
    }

    /// Note a hit in an item's first bytes.
    #[inline]
    fn note(&mut self, home: usize, address: Address, first: First, now: u32) {
        let noted = first.noted(now);
        if noted != first {
            let _writing = self.shared.index.versions.write(home);
            self.log.set_first(address, noted);
        }
    }

    #[inline(never)]
    fn get_and_note(&mut self, sought: Sought, key: Key<'_>, now: u32) -> Option<Item<'_>> {
        let Sought { address, first, .. } = sought;
        let (flags, expires_at) = self.log.options(address, first);
        if first.is_short()
            && !is_past(expires_at, now)
            && !self.shared.is_flushed(address)
            && !self.is_to_be_kept(address)
        {
            self.note(sought.home, address, first, now);
            return Some(Item {
                value: self.log.short_value(address, first),
                flags,
                cas: address.cas(first.edition()),
                expires_at,
                accessed_at: first.accessed_at(now),
                marks: first.marks(),
            });
        }
        let mut found = self.found(sought, now)?;
        let before = found.header;
        let cas = cas(found.address, &before);
        self.note_hit(&mut found, key, now);
        Some(Item {
            cas,
            accessed_at: before.accessed_at(now),
            marks: before.marks(),
            ..self.log.item(found.address, &found.header, now)
        })
    }

    /// Store `contents` under `key` at second `now`, whether or not there is an item, and return its CAS number.
    ///
    /// # Errors
    /// [`Error::ItemTooLarge`], [`Error::KeyTooLong`] or, in store mode, [`Error::Full`]; what was there stays.
    #[inline]
    pub fn set(&mut self, key: Key<'_>, now: u32, contents: &Contents<'_>) -> Result<u64, Error> {
        if let Err(refusal) = self.check_size(key.bytes().len(), contents.value.len()) {
            return self.set_large(key, now, contents, refusal);
        }
        self.flush_if_due(now);
        let Some(sought) = self.seek(key) else {
            return self.insert(key, now, contents);
        };
        let Sought { address, first, .. } = sought;
        // As `replace` does it where the item stays in its place.
        if let Some(next) = first.replaced_by(contents, now)
            && !self.shared.is_flushed(address)
            && !self.log.is_near_its_end(address)
        {
            self.statistics.overwritten += 1;
            self.statistics.items_stored += 1;
            let _writing = self.shared.index.versions.write(sought.home);
            self.log.set_first(address, next);
            self.log.set_plain_value(address, next, contents.value);
            return Ok(address.cas(next.edition()));
        }
        self.set_in_full(sought, key, now, contents)
    }

    // Apart, so that the short way above has the registers.
    #[inline(never)]
    fn set_in_full(
        &mut self,
        sought: Sought,
        key: Key<'_>,
        now: u32,
        contents: &Contents<'_>,
    ) -> Result<u64, Error> {
        let Sought { address, first, .. } = sought;
        if let Some(next) = first.renewed_by(contents, now)
            && !self.shared.is_flushed(address)
            && !self.log.is_near_its_end(address)
            && !is_past(self.log.options(address, first).1, now)
        {
            self.statistics.overwritten += 1;
            self.statistics.items_stored += 1;
            let _writing = self.shared.index.versions.write(sought.home);
            self.log.renew(address, next, contents.value);
            return Ok(address.cas(next.0.edition()));
        }
        match self.found(sought, now) {
            Some(found) => self.replace(found, key, now, contents),
            None => self.insert(key, now, contents),
        }
    }

    /// Forget every item, at once and in constant time; a flush that was still to come is called off.
    pub fn flush(&mut self) {
        match self.store {
            None => self
                .shared
                .flushed_below
                .store(self.log.tail().bits(), Relaxed),
            Some(_) => self.empty_store(),
        }
        if let Some(large) = &mut self.large {
            large.flush();
        }
        self.shared.flush_due.store(u32::MAX, Relaxed);
        self.statistics.items = 0;
        self.statistics.bytes = 0;
    }

    /// Forget, when second `due` arrives, every item stored before it. Replaces a flush that is still to come at
    /// second `now`.
    pub fn flush_at(&mut self, due: u32, now: u32) {
        self.flush_if_due(now);
        self.shared.flush_due.store(due, Relaxed);
    }

    #[inline]
    pub(crate) fn flush_if_due(&mut self, now: u32) {
        if self.shared.flush_due.load(Relaxed) <= now {
            self.flush();
        }
    }

    #[inline(always)]
    pub(crate) fn seek(&self, key: Key<'_>) -> Option<Sought> {
        let table = &self.shared.index.table;
        let home = self.shared.index.bucket_of(key);
        let (head, tail) = (self.log.head(), self.log.tail());
        // Mostly the first slot with the tag is the one, or there is none.
        let mut found = None;
        if let Some((slot, position)) = table.first_candidate(home, key.tag()) {
            found = self.look_at(key, slot, Address::before(tail, position), head);
        } else if table.next(home).is_none() {
            return None;
        }
        if found.is_none() {
            let slot = self.seek_on(key, home)?;
            found = self.look_at(key, slot, Address::before(tail, table.position(slot)), head);
        }
        let (slot, address, first) = found?;
        Some(Sought {
            home,
            slot,
            address,
            first,
        })
    }

    /// What is at `address`, if the log's `head` has not passed it and it is the key's.
    #[inline(always)]
    fn look_at(
        &self,
        key: Key<'_>,
        slot: Slot,
        address: Address,
        head: Address,
    ) -> Option<(Slot, Address, First)> {
        if address < head {
            return None;
        }
        let first = self.log.first_with_key(address, key.bytes())?;
        Some((slot, address, first))
    }

    /// Look at every slot. What comes back fits registers: a large value would go by way of memory, and so would the
    /// one that is found at once.
    #[cold]
    #[inline(never)]
    fn seek_on(&self, key: Key<'_>, home: usize) -> Option<Slot> {
        let (head, tail) = (self.log.head(), self.log.tail());
        let table = &self.shared.index.table;
        table
            .candidates(home, key.tag())
            .find_map(|(slot, position)| {
                let address = Address::before(tail, position);
                (address >= head && self.log.first_with_key(address, key.bytes()).is_some())
                    .then_some(slot)
            })
    }

    #[inline]
    pub(crate) fn find(&mut self, key: Key<'_>, now: u32) -> Option<Found> {
        self.flush_if_due(now);
        let sought = self.seek(key)?;
        self.found(sought, now)
    }

    /// What [`seek`](Self::seek) found, unless its time is over.
    #[inline]
    fn found(&mut self, sought: Sought, now: u32) -> Option<Found> {
        let Sought {
            home,
            slot,
            address,
            ..
        } = sought;
        let (header, _) = self.log.header(address);
        let found = Found {
            home,
            slot,
            address,
            header,
        };
        if self.shared.is_flushed(address) {
            self.clear(&found);
            return None;
        }
        if header.is_expired(now) {
            self.statistics.expired += 1;
            self.remove(&found);
            return None;
        }
        Some(found)
    }

    /// Take an item out that is there.
    #[inline]
    pub(crate) fn remove(&mut self, found: &Found) {
        if self.store.is_some() {
            return self.remove_from_store(found);
        }
        self.clear(found);
        self.mark_dead(found.address, &found.header);
    }

    /// Take the item out of the index.
    #[inline]
    fn clear(&self, found: &Found) {
        let _writing = self.shared.index.versions.write(found.home);
        self.shared.index.table.clear(found.slot);
    }

    #[inline]
    pub(crate) fn note_hit(&mut self, found: &mut Found, key: Key<'_>, now: u32) {
        self.keep(found, key, now);
        let header = found.header;
        if header.accessed_at(now) != now || !header.marks().has(Marks::FETCHED) {
            let noted = header
                .accessed(now)
                .marked(header.marks().with(Marks::FETCHED));
            self.rewrite_header(found, noted);
        }
    }

    /// Write a header of the same length over an item's.
    #[inline]
    pub(crate) fn rewrite_header(&mut self, found: &mut Found, header: Header) {
        found.header = header;
        let _writing = self.shared.index.versions.write(found.home);
        self.log.set_header(found.address, &header);
    }

    /// Whether an item that is read is to be written again.
    #[inline]
    fn is_to_be_kept(&self, address: Address) -> bool {
        self.shared.eviction == Eviction::LeastRecentlyUsed && self.log.is_near_its_end(address)
    }

    /// Move an item that is soon to be overwritten out of the tail's way.
    #[inline]
    pub(crate) fn keep(&mut self, found: &mut Found, key: Key<'_>, now: u32) {
        if self.is_to_be_kept(found.address) {
            let header = found.header;
            let header = header.with_cas(Some(cas(found.address, &header)));
            self.relocate(found, key, now, header, (&[], &[]));
            self.statistics.reinserted += 1;
        }
    }
}
