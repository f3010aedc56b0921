//! How a worker gets at the partitions: MICA's modes of parallel data access (NSDI'14, section 3.1.1).

mod concurrent;
mod owned;
mod shared;

pub use concurrent::Concurrent;
pub use owned::Owned;
pub use shared::Shared;

use mica::{Key, Partition, Reader};
use wire::memcached::server::reply;

/// How a worker gets at the partitions.
pub trait Storage {
    /// A key's bytes with their hash.
    fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k>;

    /// Have what leads to the item under `key` fetched.
    fn prefetch_bucket(&self, key: Key<'_>);

    /// Have the item under `key` fetched.
    fn prefetch_item(&self, key: Key<'_>);

    /// Answer with the item under `key` at second `now`, as `get` does.
    fn read(&mut self, key: Key<'_>, now: u32, with_cas: bool, out: &mut Vec<u8>) -> Read;

    /// The worker that alone may do anything but [`read`](Self::read) with `key`, if that is another one.
    fn elsewhere(&self, _key: Key<'_>) -> Option<usize> {
        None
    }

    /// Of how many workers each has partitions of its own; 1 where all have the same.
    fn parts(&self) -> usize {
        1
    }

    /// Do something with a key that is not [`elsewhere`](Self::elsewhere) in its partition.
    fn with<R>(&mut self, key: Key<'_>, work: impl FnOnce(&mut Partition, Key<'_>) -> R) -> R;

    /// Do something with every partition that this worker has.
    fn each(&mut self, work: impl FnMut(&mut Partition));
}

/// What became of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// The item was written to the answers.
    Hit,
    /// There is none.
    Miss,
    /// This worker must be asked.
    Elsewhere(usize),
}

#[inline]
fn answer(
    partition: &mut Partition,
    key: Key<'_>,
    now: u32,
    with_cas: bool,
    out: &mut Vec<u8>,
) -> Read {
    let Some(item) = partition.get(key, now) else {
        return Read::Miss;
    };
    let cas = with_cas.then_some(item.cas);
    reply::value(out, key.bytes(), item.flags, item.value, cas);
    Read::Hit
}

/// The same beside the owner. A hit lacks the end of its line.
#[inline]
fn answer_beside(
    reader: &Reader,
    key: Key<'_>,
    now: u32,
    with_cas: bool,
    out: &mut Vec<u8>,
) -> mica::Lookup {
    reader.get(key, now, out, |out, front| {
        let cas = with_cas.then_some(front.cas);
        reply::value_line(out, key.bytes(), front.flags, front.value_bytes, cas);
    })
}
