//! How items come into a partition and leave it: room is claimed, what lies there is dropped, the index told.

use super::Partition;
use crate::address::{Address, cas};
use crate::found::Found;
use crate::item::{HEADER_BYTES, Header};
use crate::table::Slot;
use crate::{Contents, Error, KEY_BYTES_MAX, Key, Statistics};

impl Partition {
    /// Write the item again at the tail, with another header, and more before and behind its value.
    #[cold]
    pub(crate) fn relocate(
        &mut self,
        found: &mut Found,
        key: Key<'_>,
        now: u32,
        header: Header,
        ends: (&[u8], &[u8]),
    ) {
        let (old_place, old) = (found.address, found.header);
        self.mark_dead(old_place, &old);
        // Claiming may drop the old item. Its bytes stay until they are written over, and they are read before.
        let address = self.claim(header.item_bytes(), now);
        self.log.write_joined(
            address,
            &header,
            key.bytes(),
            (ends.0, (old_place, &old), ends.1),
        );
        found.address = address;
        found.header = header;
        self.publish(found, key);
    }

    /// Write the item again with another header, and more before and behind its value.
    pub(crate) fn join(
        &mut self,
        found: &mut Found,
        key: Key<'_>,
        now: u32,
        header: Header,
        ends: (&[u8], &[u8]),
    ) -> Result<(), Error> {
        if self.store.is_some() {
            self.join_in_store(found, key, now, header, ends)?;
        } else {
            self.relocate(found, key, now, header, ends);
        }
        self.statistics.overwritten += 1;
        self.statistics.items_stored += 1;
        Ok(())
    }

    /// Whether `items` and `bytes` count this item of the log: nothing removed, replaced or flushed it.
    #[inline]
    pub(super) fn is_counted(&self, address: Address, header: &Header) -> bool {
        !header.is_dead() && !self.shared.is_flushed(address)
    }

    /// Mark a counted item of the log as dead, so that it is not counted again when the tail passes it. Readers take
    /// no notice: to them the index says what is there.
    #[inline]
    pub(crate) fn mark_dead(&mut self, address: Address, header: &Header) {
        self.statistics.items -= 1;
        self.statistics.bytes -= header.item_bytes() as u64;
        self.log.set_header(address, &header.dead());
    }

    /// The error of an item that would be too large.
    #[inline]
    pub(crate) fn check_size(&self, key_bytes: usize, value_bytes: usize) -> Result<(), Error> {
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
        Ok(())
    }

    /// Take room at the tail; the oldest items go.
    #[inline]
    pub(super) fn claim(&mut self, bytes: usize, now: u32) -> Address {
        while let Some(oldest) = self.log.oldest_in_the_way(bytes) {
            let (header, _) = self.log.header(oldest);
            if self.is_counted(oldest, &header) {
                self.statistics.items -= 1;
                self.statistics.bytes -= header.item_bytes() as u64;
                self.count_drop(&header, now, |statistics| &mut statistics.evictions);
            }
            self.log.drop_oldest(header.item_bytes());
        }
        self.log.claim(bytes)
    }

    /// Count a live item that goes: as expired if its time had come anyway, else under `cause`.
    pub(crate) fn count_drop(
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
    pub(super) fn publish(&mut self, found: &Found, key: Key<'_>) {
        {
            let _writing = self.shared.index.versions.write(found.home);
            self.shared
                .index
                .table
                .set(found.slot, key.tag(), found.address.position());
        }
        self.statistics.items += 1;
        self.statistics.bytes += found.header.item_bytes() as u64;
        self.sweep(found.header.item_bytes());
    }

    /// Have the index forget what the log dropped, in step with `bytes` that it took. Slots may move.
    #[inline]
    pub(super) fn sweep(&mut self, bytes: usize) {
        let index = &self.shared.index;
        if self.log.tail().lap() != self.swept_lap {
            self.swept_lap = self.log.tail().lap();
            self.index.finish_sweep(index, &self.log);
        }
        self.index
            .sweep(index, &self.log, bytes, self.log.capacity());
    }

    /// Store a new item under a key that has none.
    #[inline(never)]
    pub(crate) fn insert(
        &mut self,
        key: Key<'_>,
        now: u32,
        contents: &Contents<'_>,
    ) -> Result<u64, Error> {
        if self.store.is_some() {
            return self.insert_into_store(key, now, contents);
        }
        let mut header = Header::new(key.bytes().len(), contents, now);
        if let Some(cas) = self.take_large(key, now).filter(|_| contents.cas == 0) {
            header = header.with_cas(Some(cas));
        }
        let address = self.claim(header.item_bytes(), now);
        self.log
            .write_item(address, &header, key.bytes(), contents.value);
        let (home, slot) = self.vacate(key, now);
        let found = Found {
            home,
            slot,
            address,
            header,
        };
        self.publish(&found, key);
        self.statistics.items_stored += 1;
        Ok(cas(address, &header))
    }

    /// Store a new item in place of one that is there, and return its CAS number. It stays where that was if it is of
    /// the same length and the log's tail is not about to pass it; else it goes to the tail.
    #[inline]
    pub(crate) fn replace(
        &mut self,
        mut found: Found,
        key: Key<'_>,
        now: u32,
        contents: &Contents<'_>,
    ) -> Result<u64, Error> {
        if self.store.is_some() {
            return self.replace_in_store(found, key, now, contents);
        }
        self.statistics.overwritten += 1;
        self.statistics.items_stored += 1;
        let header = Header::new(key.bytes().len(), contents, now);
        if header.item_bytes() == found.header.item_bytes()
            && !self.log.is_near_its_end(found.address)
            && let Some(header) = header.next_edition(&found.header)
        {
            let _writing = self.shared.index.versions.write(found.home);
            self.log
                .write_item(found.address, &header, key.bytes(), contents.value);
            return Ok(cas(found.address, &header));
        }
        self.mark_dead(found.address, &found.header);
        found.address = self.claim(header.item_bytes(), now);
        found.header = header;
        self.log
            .write_item(found.address, &header, key.bytes(), contents.value);
        self.publish(&found, key);
        Ok(cas(found.address, &header))
    }

    /// Change bytes of a value where it lies, and the header to one of the same length.
    pub(crate) fn edit(
        &mut self,
        found: &mut Found,
        header: Header,
        change: impl FnOnce(&mut [u8]),
    ) {
        found.header = header;
        let _writing = self.shared.index.versions.write(found.home);
        self.log.edit_value(found.address, &header, change);
        self.log.set_header(found.address, &header);
    }

    /// Let the index have the size that one more item needs.
    #[inline]
    pub(crate) fn grow(&mut self) {
        self.index
            .grow_for(&self.shared.index, self.statistics.items, &self.log);
    }

    /// A slot for a new key: the oldest entry goes where all are full.
    #[inline]
    pub(super) fn vacate(&mut self, key: Key<'_>, now: u32) -> (usize, Slot) {
        self.grow();
        let index = &self.shared.index;
        let home = index.bucket_of(key);
        let slot = self.index.slot_to_fill(index, &self.log, home);
        // There always is one, as this is not store mode.
        let slot = slot.unwrap_or(Slot::new(home, 0));
        if index.table.tag(slot) != 0 {
            let address = self.log.address(index.table.position(slot));
            self.drop_entry(address, now);
        }
        (home, slot)
    }

    /// The index gives up the slot of an item; count that if the item was there.
    #[cold]
    pub(super) fn drop_entry(&mut self, address: Address, now: u32) {
        if self.log.is_alive(address) {
            let (header, _) = self.log.header(address);
            if self.is_counted(address, &header) {
                self.mark_dead(address, &header);
                self.count_drop(&header, now, |statistics| &mut statistics.bucket_evictions);
            }
        }
    }
}
