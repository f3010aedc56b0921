use super::{Read, Storage, read_in};
use mica::{Front, Hasher, Key, Lookup, Partition, Reader};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Partitions that several workers share (CRCW). A worker that changes one holds its lock for one key at a
/// time; a key's hash chooses its partition, so two workers wait for each other only when their keys fall together.
/// Readers wait for no lock.
#[derive(Clone)]
pub struct SharedPartitions {
    hasher: Hasher,
    partitions: Arc<[(Mutex<Partition>, Option<Reader>)]>,
}

impl SharedPartitions {
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

impl Storage for SharedPartitions {
    #[inline]
    fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    #[inline]
    fn prefetch_bucket(&self, key: Key<'_>) {
        if let (_, Some(reader)) = self.partition(key) {
            reader.prefetch_bucket(key);
        }
    }

    #[inline]
    fn prefetch_item(&self, key: Key<'_>) -> bool {
        let (_, reader) = self.partition(key);
        reader
            .as_ref()
            .is_some_and(|reader| reader.prefetch_item(key))
    }

    #[inline]
    fn prefetch_further(&self, key: Key<'_>) {
        if let (_, Some(reader)) = self.partition(key) {
            reader.prefetch_further(key);
        }
    }

    #[inline]
    fn read(
        &mut self,
        key: Key<'_>,
        now: u32,
        out: &mut Vec<u8>,
        write_front: impl Fn(&mut Vec<u8>, Front),
    ) -> Read {
        let (partition, reader) = self.partition(key);
        let found = reader.as_ref().map_or(Lookup::Ask, |reader| {
            reader.get(key, now, out, &write_front)
        });
        match found {
            Lookup::Miss => Read::Miss,
            Lookup::Hit { should_note, .. } => {
                if should_note {
                    lock(partition).get(key, now);
                }
                Read::Hit
            }
            Lookup::Ask => read_in(&mut lock(partition), key, now, out, write_front),
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

/// A worker that panics ends the whole server, so no other goes on with what it left behind.
fn lock(partition: &Mutex<Partition>) -> MutexGuard<'_, Partition> {
    partition.lock().unwrap_or_else(PoisonError::into_inner)
}
