use super::{Read, Storage, read_in};
use mica::{Front, Hasher, Key, Partition};
use wire::memcached::partition_map::owner;

/// The partitions of one worker, which alone gets at them (EREW): no lock anywhere.
pub struct Owned {
    hasher: Hasher,
    partitions: Box<[Partition]>,
    worker: usize,
    workers: usize,
}

impl Owned {
    /// The partitions of `worker`, which has its share of the keys among `workers`.
    #[must_use]
    pub fn new(hasher: Hasher, partitions: Vec<Partition>, worker: usize, workers: usize) -> Self {
        Self {
            hasher,
            partitions: partitions.into(),
            worker,
            workers,
        }
    }

    #[inline]
    fn index(&self, key: Key<'_>) -> usize {
        match self.partitions.len() {
            1 => 0,
            several => key.partition(several),
        }
    }

    #[inline]
    pub(super) fn partition(&mut self, key: Key<'_>) -> &mut Partition {
        let index = self.index(key);
        &mut self.partitions[index]
    }
}

impl Storage for Owned {
    const IS_ALONE: bool = true;

    #[inline]
    fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    #[inline]
    fn prefetch_bucket(&self, key: Key<'_>) {
        self.partitions[self.index(key)].prefetch_bucket(key);
    }

    #[inline]
    fn prefetch_item(&self, key: Key<'_>) -> bool {
        self.partitions[self.index(key)].prefetch_item(key)
    }

    #[inline]
    fn prefetch_further(&self, key: Key<'_>) {
        self.partitions[self.index(key)].prefetch_further(key);
    }

    #[inline]
    fn read(
        &mut self,
        key: Key<'_>,
        now: u32,
        out: &mut Vec<u8>,
        write_front: impl Fn(&mut Vec<u8>, Front),
    ) -> Read {
        if let Some(owner) = self.other_worker(key) {
            return Read::OtherWorker(owner);
        }
        read_in(self.partition(key), key, now, out, write_front)
    }

    #[inline]
    fn other_worker(&self, key: Key<'_>) -> Option<usize> {
        if self.workers == 1 {
            return None;
        }
        let owner = owner(key.bytes(), self.workers);
        (owner != self.worker).then_some(owner)
    }

    #[inline]
    fn parts(&self) -> usize {
        self.workers
    }

    #[inline]
    fn with<R>(&mut self, key: Key<'_>, work: impl FnOnce(&mut Partition, Key<'_>) -> R) -> R {
        work(self.partition(key), key)
    }

    fn each(&mut self, work: impl FnMut(&mut Partition)) {
        self.partitions.iter_mut().for_each(work);
    }
}
