//! Memory that is read and that no cache holds.

use antagonist::cache::last_level_cache_bytes;
use ceiling::memory;
use mapping::Words;
use std::hint::black_box;
use std::path::Path;

/// Where the kernel does not tell the size of the last-level cache.
const PRESUMED_CACHE_BYTES: usize = 64 << 20;
/// By how much the memory is larger than the cache, within bounds.
const TIMES_CACHE: usize = 4;
const BYTES_MIN: usize = 128 << 20;
const BYTES_MAX: usize = 1 << 30;

/// A buffer that all threads read, each from a place of its own.
#[derive(Debug)]
pub(super) struct Stream {
    buffer: Words,
}

impl Stream {
    pub fn new() -> Result<Self, ceiling::Error> {
        let cache = last_level_cache_bytes(Path::new("/")).unwrap_or(PRESUMED_CACHE_BYTES);
        let bytes = cache
            .saturating_mul(TIMES_CACHE)
            .clamp(BYTES_MIN, BYTES_MAX);
        let mut buffer = memory::zeroed(bytes / size_of::<u64>())?;
        // Untouched pages would all be the one page of zeros, which every cache holds.
        buffer.fill(1);
        Ok(Self { buffer })
    }

    pub fn words(&self) -> usize {
        self.buffer.len()
    }

    /// Read `bytes` (rounded up to words) from `position` on, around the end; returns where to go on.
    pub fn read(&self, position: usize, bytes: u64) -> usize {
        let mut position = position;
        let mut left = bytes.div_ceil(size_of::<u64>() as u64) as usize;
        while left > 0 {
            let end = self.words().min(position + left);
            black_box(ceiling::bandwidth::read_words(&self.buffer[position..end]));
            left -= end - position;
            position = end % self.words();
        }
        position
    }
}
