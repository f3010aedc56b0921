//! Lookups beside the one who writes (concurrent read, in MICA's words: CREW and CRCW).

use crate::Eviction;
use crate::address::{Address, cas, near_end};
use crate::item::{Header, WINDOW_BYTES};
use crate::shared::Shared;
use crate::sync::{Ordering::Acquire, Ordering::Relaxed, fence};
use crate::{Key, Marks};
use std::sync::Arc;

/// How often a lookup is tried again when the owner wrote meanwhile, before the owner is asked instead.
const ATTEMPTS: usize = if cfg!(loom) { 1 } else { 16 };

/// Hits of the same item within this many seconds are noted once.
const NOTED_SECONDS: u32 = 60;

/// Looks items up while their owner writes. Values are copied out, and what was overwritten meanwhile is read again.
#[derive(Clone)]
pub struct Reader {
    shared: Arc<Shared>,
}

/// What a lookup beside the owner found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// No item.
    Miss,
    /// The item was appended to the buffer.
    Hit {
        /// Whether the owner should be told, by [`Partition::get`](crate::Partition::get): to note the hit, or to move
        /// the item out of the tail's way.
        should_note: bool,
        /// Whether it is to be moved, if it is not to make room soon.
        should_keep: bool,
    },
    /// The owner must be asked: it wrote all the time, or there is something for it to do.
    Ask,
}

/// What is known of an item before its value is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Front {
    /// Length of the value in bytes.
    pub value_bytes: usize,
    /// The client's flags.
    pub flags: u32,
    /// The item's CAS number.
    pub cas: u64,
}

impl Reader {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// As [`Partition::prefetch_bucket`](crate::Partition::prefetch_bucket).
    #[inline]
    pub fn prefetch_bucket(&self, key: Key<'_>) {
        self.shared.prefetch_bucket(key);
    }

    /// As [`Partition::prefetch_item`](crate::Partition::prefetch_item).
    #[inline]
    pub fn prefetch_item(&self, key: Key<'_>) -> bool {
        self.shared.prefetch_item(key)
    }

    /// As [`Partition::prefetch_further`](crate::Partition::prefetch_further).
    #[inline]
    pub fn prefetch_further(&self, key: Key<'_>) {
        self.shared.prefetch_further(key);
    }

    /// Append the item under `key` at second `now` to `out`: what `write_front` makes of it, then the value.
    #[inline]
    pub fn get(
        &self,
        key: Key<'_>,
        now: u32,
        out: &mut Vec<u8>,
        write_front: impl Fn(&mut Vec<u8>, Front),
    ) -> Lookup {
        if self.shared.flush_due.load(Relaxed) <= now {
            return Lookup::Ask;
        }
        let start = out.len();
        for _ in 0..ATTEMPTS {
            if let Some(found) = self.attempt(key, now, out, &write_front) {
                return found;
            }
            out.truncate(start);
            std::hint::spin_loop();
        }
        Lookup::Ask
    }

    /// `None` where the owner wrote meanwhile.
    #[inline]
    fn attempt(
        &self,
        key: Key<'_>,
        now: u32,
        out: &mut Vec<u8>,
        write_front: &impl Fn(&mut Vec<u8>, Front),
    ) -> Option<Lookup> {
        let Shared { index, log, .. } = &*self.shared;
        let home = index.bucket_of(key);
        let seen = index.versions.begin(home)?;
        // A split may have moved the key to another bucket, and changed this one before it was looked at.
        let unchanged = || index.versions.is_unchanged(home, seen) && index.bucket_of(key) == home;
        let (head, tail) = (log.head(), log.tail());
        let mut is_passed = false;
        let mut found = None;
        for (_, position) in index.table.candidates(home, key.tag()) {
            let address = Address::before(tail, position);
            if address < head {
                is_passed = true;
                continue;
            }
            if address.offset() + WINDOW_BYTES > log.memory.bytes() {
                continue;
            }
            let mut window = [0; WINDOW_BYTES];
            log.memory.load_into(address.offset(), &mut window);
            let (header, header_bytes) = Header::decode(&window);
            let key_at = address.offset() + header_bytes;
            if usize::from(header.key_bytes) == key.bytes().len()
                && key_at + key.bytes().len() <= log.capacity()
                && log.memory.equals(key_at, key.bytes())
            {
                found = Some((address, header, header_bytes));
                break;
            }
        }
        let Some((address, header, header_bytes)) = found else {
            // An item that the head has passed may be this key's, and about to be written anew: over itself, perhaps, so
            // that what was read was no longer this key's. Hence the head must be where it was.
            // Or it may be too large for the log, since it was last seen there. Looked at before the version: where the
            // last large item was replaced by one in the log, this or the version tells of it.
            let has_large = self.shared.has_large.load(Relaxed);
            return (unchanged() && log.head() == head).then_some(match is_passed || has_large {
                true => Lookup::Ask,
                false => Lookup::Miss,
            });
        };
        // Nothing that was read so far is sure, and it says how much to copy.
        if !unchanged() || !self.is_still_there(address) {
            return None;
        }
        if self.shared.is_flushed(address) || header.is_expired(now) {
            return Some(Lookup::Miss);
        }
        let value_bytes = header.value_bytes as usize;
        let (flags, cas) = (header.flags(), cas(address, &header));
        write_front(
            out,
            Front {
                value_bytes,
                flags,
                cas,
            },
        );
        log.memory.load(
            address.offset() + header_bytes + key.bytes().len(),
            value_bytes,
            out,
        );
        if !unchanged() || !self.is_still_there(address) {
            return None;
        }
        let should_keep = self.shared.eviction == Eviction::LeastRecentlyUsed
            && address < near_end(tail, log.capacity());
        Some(Lookup::Hit {
            should_note: should_keep
                || !header.marks().has(Marks::FETCHED)
                || now.wrapping_sub(header.accessed_at(now)) >= NOTED_SECONDS,
            should_keep,
        })
    }

    /// Whether the log's head has not passed `address`, so that nothing was written over what was read there.
    #[inline]
    fn is_still_there(&self, address: Address) -> bool {
        fence(Acquire);
        self.shared.log.head() <= address
    }
}
