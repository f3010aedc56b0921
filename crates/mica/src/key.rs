use foldhash::quality::FixedState;
use std::hash::{BuildHasher, Hasher as _};

/// The longest key that is kept, in bytes: its length is stored in one byte.
pub const KEY_BYTES_MAX: usize = 255;

/// Hashes keys; the same seed gives the same hashes on every host. Every bit is used, so every bit must depend on the
/// whole key: foldhash's variant without the last step overfills buckets with similar keys for one seed in 200.
#[derive(Debug, Clone)]
pub struct Hasher(FixedState);

impl Hasher {
    /// A hasher whose hashes depend on `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(FixedState::with_seed(seed))
    }

    /// `bytes` with their hash.
    #[inline]
    #[must_use]
    pub fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        let mut hasher = self.0.build_hasher();
        hasher.write(bytes);
        Key {
            bytes,
            hash: hasher.finish(),
        }
    }
}

/// A key and its hash. The hash's bits have one use each, so that what one decides does not narrow another: the low
/// 8 are the tag, bits 16 to 31 choose the partition, the high 32 choose the bucket.
#[derive(Debug, Clone, Copy)]
pub struct Key<'k> {
    pub(crate) bytes: &'k [u8],
    pub(crate) hash: u64,
}

impl<'k> Key<'k> {
    /// The key itself.
    #[inline]
    pub fn bytes(&self) -> &'k [u8] {
        self.bytes
    }

    /// Which of `partitions` (1 to 65,536) the key belongs to.
    #[inline]
    #[must_use]
    pub fn partition(&self, partitions: usize) -> usize {
        (((self.hash >> 16) as usize & 0xffff) * partitions) >> 16
    }

    /// Never zero, which is an empty slot's.
    #[inline]
    pub(crate) fn tag(&self) -> u8 {
        (self.hash as u8).max(1)
    }

    /// What the bucket is chosen by.
    #[inline]
    pub(crate) fn bucket_bits(&self) -> usize {
        (self.hash >> 32) as usize
    }
}
