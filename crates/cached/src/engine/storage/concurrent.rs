use super::{Owned, Read, Storage, read_in};
use mica::{Front, Hasher, Key, Lookup, Partition, Reader};
use std::sync::Arc;
use wire::memcached::partition_map::owner;

/// The partitions of one worker, which alone writes to them, and a look at those of all others (CREW): no lock
/// anywhere. Hits of other workers are not recorded, except that an item that is soon to be evicted is read at its
/// owner's, who keeps it.
pub struct Concurrent {
    own: Owned,
    /// Of each worker's partitions.
    readers: Arc<[Box<[Reader]>]>,
}

impl Concurrent {
    /// `own` partitions, and readers of every worker's, in the order of workers.
    #[must_use]
    pub fn new(own: Owned, readers: Arc<[Box<[Reader]>]>) -> Self {
        Self { own, readers }
    }

    #[inline]
    fn reader(&self, owner: usize, key: Key<'_>) -> &Reader {
        let readers = &self.readers[owner];
        &readers[key.partition(readers.len())]
    }

    #[inline]
    fn owner(&self, key: Key<'_>) -> usize {
        owner(key.bytes(), self.readers.len())
    }
}

impl Storage for Concurrent {
    #[inline]
    fn hasher(&self) -> &Hasher {
        self.own.hasher()
    }

    #[inline]
    fn prefetch_bucket(&self, key: Key<'_>) {
        self.reader(self.owner(key), key).prefetch_bucket(key);
    }

    #[inline]
    fn prefetch_item(&self, key: Key<'_>) -> bool {
        self.reader(self.owner(key), key).prefetch_item(key)
    }

    #[inline]
    fn prefetch_further(&self, key: Key<'_>) {
        self.reader(self.owner(key), key).prefetch_further(key);
    }

    #[inline]
    fn read(
        &mut self,
        key: Key<'_>,
        now: u32,
        out: &mut Vec<u8>,
        write_front: impl Fn(&mut Vec<u8>, Front),
    ) -> Read {
        let Some(owner) = self.own.other_worker(key) else {
            return read_in(self.own.partition(key), key, now, out, write_front);
        };
        let start = out.len();
        let reader = self.reader(owner, key);
        match reader.get(key, now, out, write_front) {
            Lookup::Miss => Read::Miss,
            Lookup::Hit {
                should_keep: false, ..
            } => Read::Hit,
            Lookup::Hit { .. } | Lookup::Ask => {
                out.truncate(start);
                Read::OtherWorker(owner)
            }
        }
    }

    #[inline]
    fn other_worker(&self, key: Key<'_>) -> Option<usize> {
        self.own.other_worker(key)
    }

    #[inline]
    fn parts(&self) -> usize {
        self.own.parts()
    }

    #[inline]
    fn with<R>(&mut self, key: Key<'_>, work: impl FnOnce(&mut Partition, Key<'_>) -> R) -> R {
        self.own.with(key, work)
    }

    fn each(&mut self, work: impl FnMut(&mut Partition)) {
        self.own.each(work);
    }
}
