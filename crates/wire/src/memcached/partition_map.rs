//! Which worker of a server a key belongs to, where each has keys of its own (EREW and CREW, in MICA's words).
//!
//! A server tells its map by `stats partitions`: how many workers there are, and the port or the socket at which each
//! of them is reached by itself. A client that sends a key to its worker saves the server a detour; one that does not
//! gets the same answer.

/// The worker, of `workers`, that the item under `key` belongs to: the CRC-32 of the key (that of zlib, which every
/// language has) scaled to `workers`, so that worker 0 has the lowest checksums.
#[inline]
#[must_use]
pub fn owner(key: &[u8], workers: usize) -> usize {
    ((u64::from(crc32fast::hash(key)) * workers as u64) >> 32) as usize
}

#[cfg(test)]
mod tests;
