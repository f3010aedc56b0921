use crate::Partition;
use crate::address::cas;
use crate::found::Found;
use crate::item::Header;
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
    /// [`Error::ItemTooLarge`], [`Error::KeyTooLong`] or, in store mode, [`Error::Full`]; what was there stays.
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
    /// [`Error::ItemTooLarge`], [`Error::KeyTooLong`] or, in store mode, [`Error::Full`].
    #[inline]
    pub fn insert(self, contents: Contents<'_>) -> Result<u64, Error> {
        let sized = self
            .partition
            .check_size(self.key.bytes().len(), contents.value.len());
        if let Err(refusal) = sized {
            return self
                .partition
                .set_large(self.key, self.now, &contents, refusal);
        }
        self.partition.insert(self.key, self.now, &contents)
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
    pub fn item(&self) -> Item<'_> {
        self.partition
            .log
            .item(self.found.address, &self.found.header, self.now)
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

    /// Change the second at which it expires; 0 means never. The CAS number stays.
    #[inline]
    pub fn set_expires_at(&mut self, expires_at: u32) {
        let old = self.found.header;
        let mut header = old.expiring_at(expires_at);
        if header.bytes() != old.bytes() {
            header = header.with_cas(Some(cas(self.found.address, &old)));
        }
        self.set_header(header);
        self.partition.note_expiry(expires_at);
    }

    /// Change what is noted about it.
    #[inline]
    pub fn set_marks(&mut self, marks: Marks) {
        self.set_header(self.found.header.marked(marks));
    }

    /// Give it another CAS number, `wanted` or, where that is 0, a new one, and return that.
    pub fn renew_cas(&mut self, wanted: u64) -> u64 {
        let old = self.found.header;
        if wanted != 0 {
            self.set_header(old.with_cas(Some(wanted)));
        } else if let Some(next) = self.changed_header() {
            self.set_header(next);
        } else {
            // Only another place gives it a number that it never had.
            self.relocate(old.with_cas(None));
        }
        cas(self.found.address, &self.found.header)
    }

    /// The header with another CAS number, of the same length, as in store mode every item has the number in it. `None`
    /// where the item's place has no more.
    #[inline]
    fn changed_header(&mut self) -> Option<Header> {
        let old = self.found.header;
        let counted = |cas| old.with_cas(Some(cas));
        old.next_edition(&old)
            .or_else(|| self.partition.next_cas().map(counted))
    }

    /// Change bytes of the value, but not how many there are, and return the new CAS number.
    #[inline]
    pub fn edit(&mut self, change: impl FnOnce(&mut [u8])) -> u64 {
        // Together with the value: nobody finds the new one under the old number.
        let Some(header) = self.changed_header() else {
            // After which there is one.
            self.renew_cas(0);
            return self.edit(change);
        };
        self.partition.edit(&mut self.found, header, change);
        cas(self.found.address, &header)
    }

    /// Replace the item and return the new CAS number. In cache mode it stays where it is in the log if it is as long
    /// as it was and the log's tail is not about to pass it, else it goes to the tail. In store mode it stays in its
    /// block if that can be made as long as needed.
    ///
    /// # Errors
    /// [`Error::ItemTooLarge`] or, in store mode, [`Error::Full`]; the item stays as it was.
    #[inline]
    pub fn replace(self, contents: Contents<'_>) -> Result<u64, Error> {
        let sized = self
            .partition
            .check_size(self.key.bytes().len(), contents.value.len());
        if let Err(refusal) = sized {
            return self
                .partition
                .set_large(self.key, self.now, &contents, refusal);
        }
        self.partition
            .replace(self.found, self.key, self.now, &contents)
    }

    /// Put `front` before and `back` behind the value, and return the new CAS number: `wanted` where that is not 0. Flags and expiry stay; marks
    /// go, except [`Marks::BINARY_KEY`].
    ///
    /// # Errors
    /// [`Error::ItemTooLarge`] or, in store mode, [`Error::Full`]; the item stays as it was.
    pub fn join(mut self, front: &[u8], back: &[u8], wanted: u64) -> Result<u64, Error> {
        let old = self.found.header;
        let value_bytes = (old.value_bytes as usize)
            .saturating_add(front.len())
            .saturating_add(back.len());
        let sized = self
            .partition
            .check_size(self.key.bytes().len(), value_bytes);
        let kept = if old.marks().has(Marks::BINARY_KEY) {
            Marks::BINARY_KEY
        } else {
            Marks::default()
        };
        if let Err(refusal) = sized {
            return self.join_large(front, back, (kept, wanted), refusal);
        }
        let wanted = (wanted != 0).then_some(wanted);
        let header = old
            .with_cas(wanted.or_else(|| self.partition.next_cas()))
            .sized(value_bytes)
            .marked(kept)
            .accessed(self.now);
        self.partition
            .join(&mut self.found, self.key, self.now, header, (front, back))?;
        Ok(cas(self.found.address, &self.found.header))
    }

    /// As [`join`](Self::join), of what becomes too large for where it is.
    #[cold]
    fn join_large(
        self,
        front: &[u8],
        back: &[u8],
        (marks, cas): (Marks, u64),
        refusal: Error,
    ) -> Result<u64, Error> {
        if self.partition.large.is_none() {
            return Err(refusal);
        }
        let item = self.item();
        let value = [front, item.value, back].concat();
        let contents = Contents {
            value: &value,
            flags: item.flags,
            expires_at: item.expires_at,
            marks,
            cas,
        };
        self.partition
            .set_large(self.key, self.now, &contents, refusal)
    }

    /// Remove the item.
    pub fn remove(self) {
        self.partition.remove(&self.found);
        self.partition.statistics.deleted += 1;
    }

    /// Write another header: where the item is, or with all of it at the tail if it is of another length.
    #[inline]
    fn set_header(&mut self, header: Header) {
        let found = &mut self.found;
        if header.bytes() == found.header.bytes() {
            self.partition.rewrite_header(found, header);
        } else {
            self.relocate(header);
        }
    }

    fn relocate(&mut self, header: Header) {
        self.partition
            .relocate(&mut self.found, self.key, self.now, header, (&[], &[]));
    }
}

impl Partition {
    /// The place of `key` at second `now`, to look before writing.
    #[inline]
    pub fn entry<'p, 'k>(&'p mut self, key: Key<'k>, now: u32) -> Entry<'p, 'k> {
        if let Some(found) = self.find(key, now) {
            return Entry::Occupied(Occupied::new(self, key, now, found));
        }
        let found = self.large.as_mut().and_then(|large| large.find(key, now));
        if let Some(found) = found
            && let Some(ref mut large) = self.large
        {
            return Entry::Occupied(Occupied::new(large, key, now, found));
        }
        Entry::Vacant(Vacant::new(self, key, now))
    }
}
