use crate::index::{Index, SLOTS, Slot};
use crate::item::{ALIGNMENT, HEADER_BYTES, Header};
use crate::log::{Log, Position};
use crate::{
    Contents, Entry, Error, Hasher, Item, KEY_BYTES_MAX, Key, Marks, Occupied, Statistics, Vacant,
};

/// How large a partition is. Memory is taken from the system as it is first written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Capacity of the circular log, in bytes; rounded down to a multiple of 8, not to a power of two.
    pub log_bytes: usize,
    /// Buckets that the index starts with, of 64 bytes and 8 slots each.
    pub buckets_min: usize,
    /// Buckets that it may grow to (1 to 2^32), one for every item.
    pub buckets_max: usize,
    /// The largest item that is kept: [`HEADER_BYTES`], key and value; at most half of the log.
    pub item_bytes_max: usize,
}

impl Config {
    /// A log of `log_bytes`, an index that may grow to a bucket for every 128 bytes, and items of up
    /// to 1 MiB where the log can take them.
    #[must_use]
    pub fn for_log_bytes(log_bytes: usize) -> Self {
        Self {
            log_bytes,
            buckets_min: 1024,
            buckets_max: (log_bytes / 128).max(1024),
            item_bytes_max: (log_bytes / 2).min(1 << 20),
        }
    }
}

/// A circular log and the index over it. One owner at a time: whoever shares it, locks it.
pub struct Partition {
    hasher: Hasher,
    pub(crate) log: Log,
    pub(crate) index: Index,
    pub(crate) statistics: Statistics,
    item_bytes_max: usize,
    last_cas: u64,
    /// Items with a lower number than this were flushed.
    flushed_below: u64,
    /// The second of a flush that is yet to happen; `u32::MAX` when there is none.
    flush_due: u32,
}

/// Where a live item is.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub bucket: usize,
    pub slot: usize,
    pub position: Position,
    pub header: Header,
}

impl Found {
    #[inline]
    pub fn offset(&self) -> usize {
        self.position.offset()
    }
}

impl Partition {
    /// An empty partition for keys that `hasher` makes.
    ///
    /// # Errors
    /// [`Error::LogTooSmall`], [`Error::LogTooLarge`] or [`Error::OutOfMemory`].
    pub fn new(config: Config, hasher: Hasher) -> Result<Self, Error> {
        let log = Log::new(config.log_bytes)?;
        if config.item_bytes_max < HEADER_BYTES || config.item_bytes_max > log.capacity() / 2 {
            return Err(Error::LogTooSmall {
                log_bytes: config.log_bytes,
                item_bytes_max: config.item_bytes_max,
            });
        }
        Ok(Self {
            hasher,
            log,
            index: Index::new(config.buckets_min, config.buckets_max)?,
            statistics: Statistics::default(),
            item_bytes_max: config.item_bytes_max.min(u32::MAX as usize - ALIGNMENT),
            last_cas: 0,
            flushed_below: 0,
            flush_due: u32::MAX,
        })
    }

    /// What it holds and what happened to it.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Capacity of the log in bytes.
    #[must_use]
    pub fn log_bytes(&self) -> usize {
        self.log.capacity()
    }

    /// Size of the index at present, in bytes.
    #[must_use]
    pub fn index_bytes(&self) -> usize {
        self.index.buckets() * SLOTS * size_of::<u64>()
    }

    /// The largest item that is kept, in bytes: [`HEADER_BYTES`], key and value.
    #[must_use]
    pub fn item_bytes_max(&self) -> usize {
        self.item_bytes_max
    }

    /// The item under `key` at second `now`, as it was before this hit was noted (when it was last read, and whether
    /// it ever was). A hit shortly before its turn to be overwritten moves it to the log's tail.
    #[inline]
    pub fn get(&mut self, key: Key<'_>, now: u32) -> Option<Item<'_>> {
        let mut found = self.find(key, now)?;
        let before = found.header;
        self.note_hit(&mut found, key, now);
        Some(self.log.item(found.offset(), &before))
    }

    /// The place of `key` at second `now`, to look before writing.
    #[inline]
    pub fn entry<'p, 'k>(&'p mut self, key: Key<'k>, now: u32) -> Entry<'p, 'k> {
        match self.find(key, now) {
            Some(found) => Entry::Occupied(Occupied::new(self, key, now, found)),
            None => Entry::Vacant(Vacant::new(self, key, now)),
        }
    }

    /// Forget every item, at once and in constant time; a flush that was still to come is called off.
    pub fn flush(&mut self) {
        // The number goes to no item, so that one stored next differs from one that was flushed.
        self.flushed_below = self.next_cas();
        self.flush_due = u32::MAX;
        self.statistics.items = 0;
        self.statistics.bytes = 0;
    }

    /// Forget, when second `due` arrives, every item stored before it. Replaces a flush that is still to come at
    /// second `now`.
    pub fn flush_at(&mut self, due: u32, now: u32) {
        self.flush_if_due(now);
        self.flush_due = due;
    }

    #[inline]
    fn flush_if_due(&mut self, now: u32) {
        if self.flush_due <= now {
            self.flush();
        }
    }

    #[inline]
    pub(crate) fn find(&mut self, key: Key<'_>, now: u32) -> Option<Found> {
        self.flush_if_due(now);
        let log = &self.log;
        let mut header = None;
        let (bucket, slot, position) = self.index.find(key, |position| {
            if !log.is_alive(position) {
                return false;
            }
            let candidate = log.header(position.offset());
            let same = log.key(position.offset(), &candidate) == key.bytes;
            header = Some(candidate);
            same
        })?;
        let found = Found {
            bucket,
            slot,
            position,
            header: header?,
        };
        if !self.is_counted(&found.header) {
            self.index.set_slot(bucket, slot, Slot::EMPTY);
            return None;
        }
        if found.header.is_expired(now) {
            self.statistics.expired += 1;
            self.index.set_slot(bucket, slot, Slot::EMPTY);
            self.bury(found.offset(), found.header);
            return None;
        }
        Some(found)
    }

    #[inline]
    pub(crate) fn note_hit(&mut self, found: &mut Found, key: Key<'_>, now: u32) {
        self.keep(found, key, now);
        let header = &mut found.header;
        if header.accessed_at != now || !header.marks.has(Marks::FETCHED) {
            header.accessed_at = now;
            header.marks = header.marks.with(Marks::FETCHED);
            self.log.set_header(found.offset(), &found.header);
        }
    }

    /// Move an item that is soon to be overwritten out of the tail's way.
    #[inline]
    pub(crate) fn keep(&mut self, found: &mut Found, key: Key<'_>, now: u32) {
        if self.log.is_near_its_end(found.position) {
            self.reinsert(found, key, now);
        }
    }

    /// Write the item again at the tail, as it is.
    #[cold]
    fn reinsert(&mut self, found: &mut Found, key: Key<'_>, now: u32) {
        let old = found.header;
        let header = Header {
            space_bytes: space_bytes(key.bytes.len(), old.value_bytes as usize),
            ..old
        };
        self.bury(found.offset(), old);
        let position = self.claim(header.space_bytes, now);
        let from = crate::log::value_offset(found.offset(), &old);
        let to = crate::log::value_offset(position.offset(), &header);
        self.log.copy_within(from, to, old.value_bytes as usize);
        self.log.set_header(position.offset(), &header);
        self.log.set_key(position.offset(), key.bytes);
        self.publish(key, found.bucket, found.slot, position, &header);
        self.statistics.reinserted += 1;
        found.position = position;
        found.header = header;
    }

    /// Whether `items` and `bytes` count this item of the log: nothing removed, replaced or flushed it.
    #[inline]
    fn is_counted(&self, header: &Header) -> bool {
        !header.marks.has(Marks::DEAD) && header.cas >= self.flushed_below
    }

    /// Mark a counted item of the log as dead, so that nobody counts it again when the tail passes it.
    #[inline]
    pub(crate) fn bury(&mut self, offset: usize, header: Header) {
        self.statistics.items -= 1;
        self.statistics.bytes -= header.item_bytes();
        let dead = Header {
            marks: header.marks.with(Marks::DEAD),
            ..header
        };
        self.log.set_header(offset, &dead);
    }

    #[inline]
    pub(crate) fn next_cas(&mut self) -> u64 {
        self.last_cas += 1;
        self.last_cas
    }

    /// The error of an item that would be too large, or the space it takes in the log.
    #[inline]
    pub(crate) fn check_size(&self, key_bytes: usize, value_bytes: usize) -> Result<u32, Error> {
        if key_bytes > KEY_BYTES_MAX {
            return Err(Error::KeyTooLong { bytes: key_bytes });
        }
        let bytes = value_bytes.saturating_add(HEADER_BYTES + key_bytes);
        if bytes > self.item_bytes_max {
            return Err(Error::ItemTooLarge {
                bytes,
                limit: self.item_bytes_max,
            });
        }
        Ok(space_bytes(key_bytes, value_bytes))
    }

    /// Take room at the tail; the oldest items go.
    #[inline]
    pub(crate) fn claim(&mut self, space_bytes: u32, now: u32) -> Position {
        while let Some(offset) = self.log.oldest_in_the_way(space_bytes as usize) {
            let header = self.log.header(offset);
            if self.is_counted(&header) {
                self.statistics.items -= 1;
                self.statistics.bytes -= header.item_bytes();
                self.count_drop(&header, now, |statistics| &mut statistics.evictions);
            }
            self.log.drop_oldest(header.space_bytes);
        }
        self.log.claim(space_bytes as usize)
    }

    /// Count a live item that goes: as expired if its time had come anyway, else under `cause`.
    fn count_drop(
        &mut self,
        header: &Header,
        now: u32,
        cause: impl FnOnce(&mut Statistics) -> &mut u64,
    ) {
        if header.is_expired(now) {
            self.statistics.expired += 1;
        } else {
            *cause(&mut self.statistics) += 1;
        }
    }

    /// Let the index point to a new item that is whole in the log, and count it.
    #[inline]
    pub(crate) fn publish(
        &mut self,
        key: Key<'_>,
        bucket: usize,
        slot: usize,
        position: Position,
        header: &Header,
    ) {
        self.index
            .set_slot(bucket, slot, Slot::new(key.tag(), position));
        self.statistics.items += 1;
        self.statistics.bytes += header.item_bytes();
        self.index.sweep(&self.log, header.space_bytes as usize);
    }

    /// Write a new item at the tail and let slot `slot` of `bucket` point to it.
    #[inline]
    pub(crate) fn write(
        &mut self,
        key: Key<'_>,
        now: u32,
        space_bytes: u32,
        contents: &Contents<'_>,
        slot: Option<(usize, usize)>,
    ) -> u64 {
        let position = self.claim(space_bytes, now);
        let header = Header {
            cas: self.next_cas(),
            value_bytes: contents.value.len() as u32,
            space_bytes,
            flags: contents.flags,
            expires_at: contents.expires_at,
            accessed_at: now,
            key_bytes: key.bytes.len() as u8,
            marks: contents.marks,
        };
        let offset = position.offset();
        self.log.set_header(offset, &header);
        self.log.set_key(offset, key.bytes);
        self.log
            .value_mut(offset, &header)
            .copy_from_slice(contents.value);
        let (bucket, slot) = slot.unwrap_or_else(|| self.vacate(key, now));
        self.publish(key, bucket, slot, position, &header);
        self.statistics.items_stored += 1;
        header.cas
    }

    /// Let the index have the size that one more item needs.
    #[inline]
    fn grow(&mut self) {
        let (log, hasher) = (&self.log, &self.hasher);
        self.index.grow_for(self.statistics.items, log, |offset| {
            hasher.key(log.key(offset, &log.header(offset)))
        });
    }

    /// A slot for a new key: the oldest entry goes where the bucket is full.
    #[inline]
    fn vacate(&mut self, key: Key<'_>, now: u32) -> (usize, usize) {
        self.grow();
        let bucket = self.index.bucket_of(key);
        let slot = self.index.slot_to_fill(bucket, &self.log);
        let previous = self.index.slot(bucket, slot);
        if previous != Slot::EMPTY && self.log.is_alive(previous.position()) {
            let offset = previous.position().offset();
            let header = self.log.header(offset);
            if self.is_counted(&header) {
                self.bury(offset, header);
                self.count_drop(&header, now, |statistics| &mut statistics.bucket_evictions);
            }
        }
        (bucket, slot)
    }
}

/// What an item takes in the log, in bytes.
#[inline]
fn space_bytes(key_bytes: usize, value_bytes: usize) -> u32 {
    (HEADER_BYTES + key_bytes + value_bytes).next_multiple_of(ALIGNMENT) as u32
}
