use mica::{Hasher, Key, Partition};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a worker gets at the partitions.
pub trait Storage {
    /// Do something with a key in its partition.
    fn with<R>(&mut self, key: &[u8], work: impl FnOnce(&mut Partition, Key<'_>) -> R) -> R;

    /// Do something with every partition.
    fn each(&mut self, work: impl FnMut(&mut Partition));
}

/// The one partition of a single worker: no lock anywhere.
pub struct Owned {
    hasher: Hasher,
    partition: Partition,
}

impl Owned {
    /// Take over a partition.
    #[must_use]
    pub fn new(hasher: Hasher, partition: Partition) -> Self {
        Self { hasher, partition }
    }
}

impl Storage for Owned {
    #[inline]
    fn with<R>(&mut self, key: &[u8], work: impl FnOnce(&mut Partition, Key<'_>) -> R) -> R {
        work(&mut self.partition, self.hasher.key(key))
    }

    fn each(&mut self, mut work: impl FnMut(&mut Partition)) {
        work(&mut self.partition);
    }
}

/// Partitions that several workers share, each behind a lock that is held for one key at a time. A key's hash
/// chooses its partition, so two workers wait for each other only when their keys fall together.
#[derive(Clone)]
pub struct Shared {
    hasher: Hasher,
    partitions: Arc<[Mutex<Partition>]>,
}

impl Shared {
    /// Share partitions.
    #[must_use]
    pub fn new(hasher: Hasher, partitions: Vec<Partition>) -> Self {
        Self {
            hasher,
            partitions: partitions.into_iter().map(Mutex::new).collect(),
        }
    }
}

impl Storage for Shared {
    #[inline]
    fn with<R>(&mut self, key: &[u8], work: impl FnOnce(&mut Partition, Key<'_>) -> R) -> R {
        let key = self.hasher.key(key);
        let partition = &self.partitions[key.partition(self.partitions.len())];
        work(&mut lock(partition), key)
    }

    fn each(&mut self, mut work: impl FnMut(&mut Partition)) {
        for partition in self.partitions.iter() {
            work(&mut lock(partition));
        }
    }
}

/// A worker that panics ends the whole server, so nobody goes on with what it left behind.
fn lock(partition: &Mutex<Partition>) -> MutexGuard<'_, Partition> {
    partition.lock().unwrap_or_else(PoisonError::into_inner)
}
