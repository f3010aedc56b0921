use crate::index::Slot;
use crate::item::{HEADER_BYTES, Header};
use crate::log::value_offset;
use crate::partition::{Found, Partition};
use crate::{Contents, Error, Item, Key, Marks};

/// The place of a key in a partition, at one moment.
pub enum Entry<'p, 'k> {
    /// There is a live item.
    Occupied(Occupied<'p, 'k>),
    /// There is none.
    Vacant(Vacant<'p, 'k>),
}

impl Entry<'_, '_> {
    /// Store `contents` whether or not there is an item, and return the new item's CAS number.
    ///
    /// # Errors
    /// [`Error::ItemTooLarge`] or [`Error::KeyTooLong`]; what was there stays.
    #[inline]
    pub fn set(self, contents: Contents<'_>) -> Result<u64, Error> {
        match self {
            Self::Occupied(entry) => entry.replace(contents),
            Self::Vacant(entry) => entry.insert(contents),
        }
    }
}

/// A key without an item.
pub struct Vacant<'p, 'k> {
    partition: &'p mut Partition,
    key: Key<'k>,
    now: u32,
}

impl<'p, 'k> Vacant<'p, 'k> {
    #[inline]
    pub(crate) fn new(partition: &'p mut Partition, key: Key<'k>, now: u32) -> Self {
        Self {
            partition,
            key,
            now,
        }
    }

    /// Store `contents` and return the item's CAS number.
    ///
    /// # Errors
    /// [`Error::ItemTooLarge`] or [`Error::KeyTooLong`].
    #[inline]
    pub fn insert(self, contents: Contents<'_>) -> Result<u64, Error> {
        let space_bytes = self
            .partition
            .check_size(self.key.bytes.len(), contents.value.len())?;
        Ok(self
            .partition
            .write(self.key, self.now, space_bytes, &contents, None))
    }
}

/// A key with its item.
pub struct Occupied<'p, 'k> {
    partition: &'p mut Partition,
    key: Key<'k>,
    now: u32,
    found: Found,
}

impl<'p, 'k> Occupied<'p, 'k> {
    #[inline]
    pub(crate) fn new(partition: &'p mut Partition, key: Key<'k>, now: u32, found: Found) -> Self {
        Self {
            partition,
            key,
            now,
            found,
        }
    }

    /// The item.
    #[inline]
    #[must_use]
    pub fn item(&self) -> Item<'_> {
        self.partition
            .log
            .item(self.found.offset(), &self.found.header)
    }

    /// The item, for as long as the partition is borrowed.
    #[inline]
    #[must_use]
    pub fn into_item(self) -> Item<'p> {
        self.partition
            .log
            .item(self.found.offset(), &self.found.header)
    }

    /// Note that the item was read, as [`Partition::get`] does.
    #[inline]
    pub fn note_hit(&mut self) {
        self.partition.note_hit(&mut self.found, self.key, self.now);
    }

    /// Let the item live on as a hit does, without noting one.
    pub fn keep(&mut self) {
        self.partition.keep(&mut self.found, self.key, self.now);
    }

    /// Change the second at which it expires; 0 means never.
    #[inline]
    pub fn set_expires_at(&mut self, expires_at: u32) {
        self.update(|header| header.expires_at = expires_at);
    }

    /// Change what is noted about it.
    #[inline]
    pub fn set_marks(&mut self, marks: Marks) {
        self.update(|header| header.marks = marks);
    }

    /// Give it a new CAS number, and return that.
    #[inline]
    pub fn renew_cas(&mut self) -> u64 {
        let cas = self.partition.next_cas();
        self.update(|header| header.cas = cas);
        cas
    }

    /// Change bytes of the value, but not how many there are, and return the new CAS number.
    #[inline]
    pub fn edit(&mut self, change: impl FnOnce(&mut [u8])) -> u64 {
        let Found {
            position, header, ..
        } = &self.found;
        change(self.partition.log.value_mut(position.offset(), header));
        self.renew_cas()
    }

    /// Replace the item and return the new CAS number. It stays where it is in the log if it fits there and the
    /// log's tail is not about to pass it; else it goes to the tail.
    ///
    /// # Errors
    /// [`Error::ItemTooLarge`]; the item stays as it was.
    #[inline]
    pub fn replace(mut self, contents: Contents<'_>) -> Result<u64, Error> {
        let space_bytes = self
            .partition
            .check_size(self.key.bytes.len(), contents.value.len())?;
        self.partition.statistics.overwritten += 1;
        if self.stays_in_place(space_bytes) {
            let cas = self.partition.next_cas();
            let header = Header {
                cas,
                value_bytes: contents.value.len() as u32,
                flags: contents.flags,
                expires_at: contents.expires_at,
                accessed_at: self.now,
                marks: contents.marks,
                ..self.found.header
            };
            self.rewrite(&header);
            let value = self.partition.log.value_mut(self.found.offset(), &header);
            value.copy_from_slice(contents.value);
            return Ok(cas);
        }
        self.partition.bury(self.found.offset(), self.found.header);
        let slot = (self.found.bucket, self.found.slot);
        Ok(self
            .partition
            .write(self.key, self.now, space_bytes, &contents, Some(slot)))
    }

    /// Put `front` before and `back` behind the value, and return the new CAS number. Flags and expiry stay; marks
    /// go, except [`Marks::BINARY_KEY`].
    ///
    /// # Errors
    /// [`Error::ItemTooLarge`]; the item stays as it was.
    pub fn join(mut self, front: &[u8], back: &[u8]) -> Result<u64, Error> {
        let old = self.found.header;
        let value_bytes = (old.value_bytes as usize)
            .saturating_add(front.len())
            .saturating_add(back.len());
        let space_bytes = self
            .partition
            .check_size(self.key.bytes.len(), value_bytes)?;
        let kept = if old.marks.has(Marks::BINARY_KEY) {
            Marks::BINARY_KEY
        } else {
            Marks::default()
        };
        let cas = self.partition.next_cas();
        let mut header = Header {
            cas,
            value_bytes: value_bytes as u32,
            accessed_at: self.now,
            marks: kept,
            ..old
        };
        self.partition.statistics.overwritten += 1;
        let in_place = self.stays_in_place(space_bytes);
        let position = if in_place {
            self.found.position
        } else {
            // Claiming may drop the old item. Its bytes stay until they are written over, and moving its value is
            // the first write.
            header.space_bytes = space_bytes;
            self.partition.bury(self.found.offset(), old);
            self.partition.claim(space_bytes, self.now)
        };
        let from = value_offset(self.found.offset(), &old);
        let to = value_offset(position.offset(), &header) + front.len();
        self.partition
            .log
            .copy_within(from, to, old.value_bytes as usize);
        if in_place {
            self.rewrite(&header);
        } else {
            self.partition.log.set_header(position.offset(), &header);
            self.partition
                .log
                .set_key(position.offset(), self.key.bytes);
        }
        let value = self.partition.log.value_mut(position.offset(), &header);
        value[..front.len()].copy_from_slice(front);
        value[value_bytes - back.len()..].copy_from_slice(back);
        if !in_place {
            let Found { bucket, slot, .. } = self.found;
            self.partition
                .publish(self.key, bucket, slot, position, &header);
            self.partition.statistics.items_stored += 1;
        }
        Ok(cas)
    }

    /// Remove the item.
    pub fn remove(self) {
        let Found { bucket, slot, .. } = self.found;
        self.partition.index.set_slot(bucket, slot, Slot::EMPTY);
        self.partition.bury(self.found.offset(), self.found.header);
        self.partition.statistics.deleted += 1;
    }

    #[inline]
    fn stays_in_place(&self, space_bytes: u32) -> bool {
        space_bytes <= self.found.header.space_bytes
            && !self.partition.log.is_near_its_end(self.found.position)
    }

    /// Write the header of an item that is replaced where it is, and count that.
    #[inline]
    fn rewrite(&mut self, header: &Header) {
        let statistics = &mut self.partition.statistics;
        statistics.items_stored += 1;
        statistics.bytes = statistics.bytes - self.found.header.item_bytes() + header.item_bytes();
        self.partition.log.set_header(self.found.offset(), header);
    }

    #[inline]
    fn update(&mut self, change: impl FnOnce(&mut Header)) {
        change(&mut self.found.header);
        self.partition
            .log
            .set_header(self.found.offset(), &self.found.header);
    }
}

const _: () = assert!(HEADER_BYTES.is_multiple_of(crate::item::ALIGNMENT));
