//! What values hold, so that a wrong one is recognised from its bytes alone.
//!
//! A value of at least 16 bytes begins with the id of its key and its version, both little-endian 64-bit numbers; the
//! rest is a slice of a fixed pool of random bytes at an offset that depends on both. So building a value is a copy,
//! checking it a comparison, and bytes of two versions mixed are noticed. A shorter value is a slice of the pool that
//! depends on the key alone.
use crate::random::mix;
use crate::sizes::Sizes;

const HEADER_BYTES: usize = 16;
/// How many offsets into the pool there are; a power of two, and few enough that the pool of small values stays in
/// the second-level cache.
const OFFSETS: usize = 1 << 14;

/// Builds and checks values.
#[derive(Debug)]
pub(crate) struct Values {
    sizes: Sizes,
    pool: Box<[u8]>,
}

/// How a value differs from all that it could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WrongBytes {
    #[error("has {found} bytes where {expected} were written")]
    Length { expected: usize, found: usize },
    #[error("is the value of the key with id {found}")]
    Key { found: u64 },
    /// It is not the whole of any one version, first at this byte.
    #[error("is torn: from byte {at} on it is not what was written as version {version}")]
    Torn { version: u64, at: usize },
    /// It is short, and differs from the one value that the key can have, first at this byte.
    #[error("differs from what was written at byte {at}")]
    Differs { at: usize },
}

impl Values {
    pub(crate) fn new(sizes: Sizes, seed: u64) -> Self {
        let mut state = mix(seed ^ 3);
        let words = (sizes.most() + OFFSETS).div_ceil(8);
        let pool = (0..words)
            .flat_map(|_| {
                state = mix(state);
                state.to_le_bytes()
            })
            .collect();
        Self { sizes, pool }
    }

    /// The size of the values of key `id`, in bytes.
    #[inline]
    pub(crate) fn size(&self, id: u64) -> usize {
        self.sizes.of(id)
    }

    /// The longest value of any key, in bytes.
    pub(crate) fn most(&self) -> usize {
        self.sizes.most()
    }

    /// Whether the values of key `id` carry their version.
    #[inline]
    pub(crate) fn has_version(&self, id: u64) -> bool {
        self.size(id) >= HEADER_BYTES
    }

    /// Append the value of key `id` in `version`.
    #[inline]
    pub(crate) fn push(&self, out: &mut Vec<u8>, id: u64, version: u64) {
        let size = self.size(id);
        if size < HEADER_BYTES {
            out.extend_from_slice(self.body(id, 0, size));
        } else {
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&version.to_le_bytes());
            out.extend_from_slice(self.body(id, version, size - HEADER_BYTES));
        }
    }

    /// Check that `value` is a whole value of key `id`, of whichever version: its version, 0 where it is too short to
    /// have one.
    #[inline]
    pub(crate) fn check(&self, id: u64, value: &[u8]) -> Result<u64, WrongBytes> {
        let size = self.size(id);
        if value.len() != size {
            return Err(WrongBytes::Length {
                expected: size,
                found: value.len(),
            });
        }
        let Some((found, rest)) = value.split_first_chunk::<8>() else {
            return self.check_short(id, value);
        };
        let Some((version, body)) = rest.split_first_chunk::<8>() else {
            return self.check_short(id, value);
        };
        let (found, version) = (u64::from_le_bytes(*found), u64::from_le_bytes(*version));
        if found != id {
            return Err(WrongBytes::Key { found });
        }
        let expected = self.body(id, version, body.len());
        if body == expected {
            Ok(version)
        } else {
            let at = HEADER_BYTES + first_difference(body, expected);
            Err(WrongBytes::Torn { version, at })
        }
    }

    fn check_short(&self, id: u64, value: &[u8]) -> Result<u64, WrongBytes> {
        let expected = self.body(id, 0, value.len());
        if value == expected {
            Ok(0)
        } else {
            let at = first_difference(value, expected);
            Err(WrongBytes::Differs { at })
        }
    }

    #[inline]
    fn body(&self, id: u64, version: u64, bytes: usize) -> &[u8] {
        let offset = mix(id ^ version.rotate_left(32)) as usize & (OFFSETS - 1);
        &self.pool[offset..offset + bytes]
    }
}

fn first_difference(left: &[u8], right: &[u8]) -> usize {
    let pairs = left.iter().zip(right);
    pairs.take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests;
