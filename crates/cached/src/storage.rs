use mica::{Hasher, Key, Lookup, Partition, Reader};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::memcached::server::reply;

/// How a worker gets at the partitions.
pub trait Storage {
    /// A key's bytes with their hash.
    fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k>;

    /// Have what leads to the item under `key` fetched.
    fn prefetch_bucket(&self, key: Key<'_>);

    /// Have the item under `key` fetched.
    fn prefetch_item(&self, key: Key<'_>);

    /// Answer with the item under `key` at second `now`, as `get` does; false where there is none.
    fn read(&mut self, key: Key<'_>, now: u32, with_cas: bool, out: &mut Vec<u8>) -> bool;

    /// Do something with a key in its partition.
    fn with<R>(&mut self, key: Key<'_>, work: impl FnOnce(&mut Partition, Key<'_>) -> R) -> R;

    /// Do something with every partition.
    fn each(&mut self, work: impl FnMut(&mut Partition));
}

/// The partitions of a single worker: no lock anywhere.
pub struct Owned {
    hasher: Hasher,
    partitions: Box<[Partition]>,
}

impl Owned {
    /// Take over partitions.
    #[must_use]
    pub fn new(hasher: Hasher, partitions: Vec<Partition>) -> Self {
        Self {
            hasher,
            partitions: partitions.into(),
        }
    }

    #[inline]
    fn index(&self, key: Key<'_>) -> usize {
        match self.partitions.len() {
            1 => 0,
            several => key.partition(several),
        }
    }
}

impl Storage for Owned {
    #[inline]
    fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        self.hasher.key(bytes)
    }

    #[inline]
    fn prefetch_bucket(&self, key: Key<'_>) {
        self.partitions[self.index(key)].prefetch_bucket(key);
    }

    #[inline]
    fn prefetch_item(&self, key: Key<'_>) {
        self.partitions[self.index(key)].prefetch_item(key);
    }

    #[inline]
    fn read(&mut self, key: Key<'_>, now: u32, with_cas: bool, out: &mut Vec<u8>) -> bool {
        self.with(key, |partition, key| {
            answer(partition, key, now, with_cas, out)
        })
    }

    #[inline]
    fn with<R>(&mut self, key: Key<'_>, work: impl FnOnce(&mut Partition, Key<'_>) -> R) -> R {
        let index = self.index(key);
        work(&mut self.partitions[index], key)
    }

    fn each(&mut self, work: impl FnMut(&mut Partition)) {
        self.partitions.iter_mut().for_each(work);
    }
}

/// Partitions that several workers share (CRCW, in MICA's words). Whoever changes one holds its lock for one key at a
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
    fn read(&mut self, key: Key<'_>, now: u32, with_cas: bool, out: &mut Vec<u8>) -> bool {
        let (partition, reader) = self.partition(key);
        let found = reader.as_ref().map_or(Lookup::Ask, |reader| {
            reader.get(key, now, out, |out, front| {
                let cas = with_cas.then_some(front.cas);
                reply::value_line(out, key.bytes(), front.flags, front.value_bytes, cas);
            })
        });
        match found {
            Lookup::Miss => false,
            Lookup::Hit { should_note } => {
                reply::line(out, b"");
                if should_note {
                    lock(partition).get(key, now);
                }
                true
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

#[inline]
fn answer(
    partition: &mut Partition,
    key: Key<'_>,
    now: u32,
    with_cas: bool,
    out: &mut Vec<u8>,
) -> bool {
    let Some(item) = partition.get(key, now) else {
        return false;
    };
    let cas = with_cas.then_some(item.cas);
    reply::value(out, key.bytes(), item.flags, item.value, cas);
    true
}

/// A worker that panics ends the whole server, so nobody goes on with what it left behind.
fn lock(partition: &Mutex<Partition>) -> MutexGuard<'_, Partition> {
    partition.lock().unwrap_or_else(PoisonError::into_inner)
}
