//! How a worker gets at the partitions: MICA's modes of parallel data access (NSDI'14, section 3.1.1).

mod concurrent;
mod owned;
mod shared;

pub use concurrent::Concurrent;
pub use owned::Owned;
pub use shared::SharedPartitions;

use mica::{Front, Hasher, Key, Partition};

/// How a worker gets at the partitions.
pub trait Storage {
    /// Whether no other thread writes to the partitions, so that a value may be sent from where it lies.
    const IS_ALONE: bool = false;

    /// What keys are hashed with.
    fn hasher(&self) -> &Hasher;

    /// A key's bytes with their hash.
    #[inline]
    fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        self.hasher().key(bytes)
    }

    /// Have what leads to the item under `key` fetched.
    fn prefetch_bucket(&self, key: Key<'_>);

    /// Have the item under `key` fetched. Whether its bucket is continued in another, which is fetched instead: then there
    /// may be a third step.
    fn prefetch_item(&self, key: Key<'_>) -> bool;

    /// That third step: have the item fetched that the other bucket leads to.
    fn prefetch_further(&self, key: Key<'_>);

    /// Have the items under `keys` fetched, whose buckets were: at most 64 of them.
    #[inline]
    fn prefetch_items<'k>(&self, keys: impl Iterator<Item = Key<'k>> + Clone) {
        let mut further = 0_u64;
        for (number, key) in keys.clone().enumerate() {
            further |= u64::from(self.prefetch_item(key)) << number;
        }
        for (number, key) in keys.enumerate() {
            if further >> number == 0 {
                break;
            }
            if further >> number & 1 != 0 {
                self.prefetch_further(key);
            }
        }
    }

    /// Append the item under `key` at second `now` to `out`: what `write_front` makes of it, then the value.
    fn read(
        &mut self,
        key: Key<'_>,
        now: u32,
        out: &mut Vec<u8>,
        write_front: impl Fn(&mut Vec<u8>, Front),
    ) -> Read;

    /// The worker that alone may do anything but [`read`](Self::read) with `key`, if that is another one.
    fn other_worker(&self, _key: Key<'_>) -> Option<usize> {
        None
    }

    /// Of how many workers each has partitions of its own; 1 where all have the same.
    fn parts(&self) -> usize {
        1
    }

    /// Do something with a key that is not [`other_worker`](Self::other_worker) in its partition.
    fn with<R>(&mut self, key: Key<'_>, work: impl FnOnce(&mut Partition, Key<'_>) -> R) -> R;

    /// Do something with every partition that this worker has.
    fn each(&mut self, work: impl FnMut(&mut Partition));
}

/// What a worker had, once it has ended, whichever way it got at it.
pub trait Partitions: Send {
    /// As [`Storage::each`].
    fn each(&mut self, work: &mut dyn FnMut(&mut Partition));
}

impl<S: Storage + Send> Partitions for S {
    fn each(&mut self, work: &mut dyn FnMut(&mut Partition)) {
        Storage::each(self, work);
    }
}

/// What became of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// The item was appended.
    Hit,
    /// There is none.
    Miss,
    /// This worker must be asked.
    OtherWorker(usize),
}

/// As [`Storage::read`], in the key's partition.
#[inline]
fn read_in(
    partition: &mut Partition,
    key: Key<'_>,
    now: u32,
    out: &mut Vec<u8>,
    write_front: impl Fn(&mut Vec<u8>, Front),
) -> Read {
    let Some(item) = partition.get(key, now) else {
        return Read::Miss;
    };
    let front = Front {
        value_bytes: item.value.len(),
        flags: item.flags,
        cas: item.cas,
    };
    write_front(out, front);
    out.extend_from_slice(item.value);
    Read::Hit
}
