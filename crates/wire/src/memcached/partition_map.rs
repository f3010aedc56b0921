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
mod tests {
    use super::owner;

    #[test]
    fn any_client_can_tell_the_owner() {
        // zlib.crc32(b"123456789") is 0xcbf43926 in every language.
        assert_eq!(owner(b"123456789", 256), 0xcb);
        assert_eq!(owner(b"", 7), 0);
        assert_eq!(owner(b"anything", 1), 0);
    }

    #[test]
    fn workers_get_equal_shares() {
        let mut keys = [0_u32; 3];
        for number in 0..30_000 {
            keys[owner(format!("key:{number:016}").as_bytes(), 3)] += 1;
        }
        assert!(
            keys.iter().all(|&keys| keys.abs_diff(10_000) < 500),
            "{keys:?}"
        );
    }
}
