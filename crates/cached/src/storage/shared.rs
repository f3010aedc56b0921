use super::{Read, Storage, answer, answer_beside};
use mica::{Hasher, Key, Lookup, Partition, Reader};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::memcached::server::reply;

/// Partitions that several workers share (CRCW). Whoever changes one holds its lock for one key at a
/// time; a key's hash chooses its partition, so two workers wait for each other only when their keys fall together.
/// Whoever reads waits for nobody.
#[derive(Clone)]
pub struct Shared {
    hasher: Hasher,
    partitions: Arc<[(Mutex<Partition>, Option<Reader>)]>,
}

impl Shared {
    /// Share partitions, which should have readers.
    #[must_use]
    pub fn new(hasher: Hasher, partitions: Vec<Partition>) -> Self {
        let with_reader = |partition: Partition| {
            let reader = partition.reader();
            (Mutex::new(partition), reader)
        };
        Self {
            hasher,
            partitions: partitions.into_iter().map(with_reader).collect(),
        }
    }

    #[inline]
    fn partition(&self, key: Key<'_>) -> &(Mutex<Partition>, Option<Reader>) {
        &self.partitions[key.partition(self.partitions.len())]
    }
}

impl Storage for Shared {
    #[inline]
    fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        self.hasher.key(bytes)
    }

    #[inline]
    fn prefetch_bucket(&self, key: Key<'_>) {
        if let (_, Some(reader)) = self.partition(key) {
            reader.prefetch_bucket(key);
        }
    }

    #[inline]
    fn prefetch_item(&self, key: Key<'_>) {
        if let (_, Some(reader)) = self.partition(key) {
            reader.prefetch_item(key);
        }
    }

    #[inline]
    fn read(&mut self, key: Key<'_>, now: u32, with_cas: bool, out: &mut Vec<u8>) -> Read {
        let (partition, reader) = self.partition(key);
        let found = reader.as_ref().map_or(Lookup::Ask, |reader| {
            answer_beside(reader, key, now, with_cas, out)
        });
        match found {
            Lookup::Miss => Read::Miss,
            Lookup::Hit { should_note, .. } => {
                reply::line(out, b"");
                if should_note {
                    lock(partition).get(key, now);
                }
                Read::Hit
            }
            Lookup::Ask => answer(&mut lock(partition), key, now, with_cas, out),
        }
    }

    #[inline]
    fn with<R>(&mut self, key: Key<'_>, work: impl FnOnce(&mut Partition, Key<'_>) -> R) -> R {
        work(&mut lock(&self.partition(key).0), key)
    }

    fn each(&mut self, mut work: impl FnMut(&mut Partition)) {
        for (partition, _) in self.partitions.iter() {
            work(&mut lock(partition));
        }
    }
}

/// A worker that panics ends the whole server, so nobody goes on with what it left behind.
fn lock(partition: &Mutex<Partition>) -> MutexGuard<'_, Partition> {
    partition.lock().unwrap_or_else(PoisonError::into_inner)
}
