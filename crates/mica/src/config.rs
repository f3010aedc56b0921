use crate::address::LOG_BYTES_MAX;

/// How large a partition is. Memory is taken from the system as it is first written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// What becomes of items when there is no room for another.
    pub mode: Mode,
    /// Room for items, in bytes; of any size up to [`Config::LOG_BYTES_MAX`].
    pub log_bytes: usize,
    /// Of `log_bytes`, what is kept for large items, and for nothing else; 0 where they lie in the log as all do. See
    /// [`with_items_of`](Self::with_items_of). In store mode it means nothing.
    pub large_bytes: usize,
    /// Buckets that the index starts with, of 64 bytes and 12 slots each.
    pub buckets_min: usize,
    /// Buckets that it may grow to (1 to 2^31), one for every nine items.
    pub buckets_max: usize,
    /// The largest item that is kept: [`HEADER_BYTES`](crate::HEADER_BYTES), key and value; at most half of the memory that it
    /// lies in, but all of `large_bytes`.
    pub item_bytes_max: usize,
    /// Which item makes room, in cache mode.
    pub eviction: Eviction,
    /// Whether there may be [`Reader`](crate::Reader)s beside the owner.
    pub has_readers: bool,
}

/// What becomes of items when there is no room for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Others go. Items lie in a circular log, one behind the other.
    #[default]
    Cache,
    /// All stay, and the new one is [refused](crate::Error::Full). Items lie in blocks of a heap, and in front of each
    /// are 12 bytes more than in cache mode (its CAS number, and room for a second at which it expires), behind it up
    /// to 7 bytes that fill its block.
    Store,
}

/// Which item makes room for a new one when the log is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Eviction {
    /// The one that was written first.
    FirstWritten,
    /// The one that was written first, except that one that is read shortly before its turn is written again.
    #[default]
    LeastRecentlyUsed,
}

impl Config {
    /// The longest log, in bytes.
    pub const LOG_BYTES_MAX: usize = LOG_BYTES_MAX;

    /// A cache with a log of `log_bytes`, an index that may grow to as many items as fit, and items of up to 1 MiB where the log
    /// can take them.
    #[must_use]
    pub fn for_log_bytes(log_bytes: usize) -> Self {
        Self {
            mode: Mode::default(),
            log_bytes,
            large_bytes: 0,
            buckets_min: 16,
            // Nine items of the smallest size, nearly.
            buckets_max: (log_bytes / 128).max(16),
            item_bytes_max: (log_bytes / 2).min(1 << 20),
            eviction: Eviction::default(),
            has_readers: false,
        }
    }
}
