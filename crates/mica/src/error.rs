/// Why an item was not stored, or a partition not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Header, key and value together are longer than the partition takes.
    #[error("an item of {bytes} bytes is larger than the largest that is kept, {limit} bytes")]
    ItemTooLarge {
        /// Header, key and value, in bytes.
        bytes: usize,
        /// The largest item kept, in bytes.
        limit: usize,
    },
    /// There is no room, in [`Mode::Store`](crate::Mode::Store). There may be when items were removed, or expired.
    #[error("no room for an item of {bytes} bytes")]
    Full {
        /// Header, key and value, in bytes.
        bytes: usize,
    },
    /// The key is longer than [`KEY_BYTES_MAX`](crate::KEY_BYTES_MAX).
    #[error("a key of {bytes} bytes is longer than the longest that is kept, 255 bytes")]
    KeyTooLong {
        /// Length of the key in bytes.
        bytes: usize,
    },
    /// There is no room for two items of the largest size.
    #[error(
        "a log of {log_bytes} bytes cannot keep items of {item_bytes_max} bytes: it takes at most half of itself"
    )]
    LogTooSmall {
        /// Capacity asked for, in bytes.
        log_bytes: usize,
        /// Largest item asked for, in bytes.
        item_bytes_max: usize,
    },
    /// The log is larger than a slot of the index can address.
    #[error("a log of {log_bytes} bytes is larger than a partition can address, {limit} bytes")]
    LogTooLarge {
        /// Capacity asked for, in bytes.
        log_bytes: usize,
        /// What can be addressed, in bytes.
        limit: usize,
    },
    /// The system would not give the memory.
    #[error("cannot reserve {bytes} bytes of memory")]
    OutOfMemory {
        /// How much was asked for, in bytes.
        bytes: usize,
    },
}
