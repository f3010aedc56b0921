use crate::item::{ALIGNMENT, HEADER_BYTES, Header};
use crate::{Error, Item};

/// Bits of a [`Position`] that count units of [`ALIGNMENT`] bytes: 8 TiB.
const UNIT_BITS: u32 = 40;

/// The longest log, in bytes.
pub(crate) const LOG_BYTES_MAX: usize = ALIGNMENT << UNIT_BITS;

/// Where an item begins, and in which lap of the log it was written: 48 bits, a lap above the units.
///
/// The lap tells a living position from one that the tail has passed. It counts modulo 256; the index is swept at
/// least once in two laps, so no position in it is ever old enough to be mistaken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position(u64);

impl Position {
    pub const BITS: u32 = UNIT_BITS + 8;

    #[inline]
    fn new(offset: usize, lap: u8) -> Self {
        Self((offset / ALIGNMENT) as u64 | u64::from(lap) << UNIT_BITS)
    }

    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits & ((1 << Self::BITS) - 1))
    }

    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub fn offset(self) -> usize {
        (self.0 & ((1 << UNIT_BITS) - 1)) as usize * ALIGNMENT
    }

    #[inline]
    fn lap(self) -> u8 {
        (self.0 >> UNIT_BITS) as u8
    }
}

/// A circular log: items lie behind one another, whole, between `head` (the oldest) and `tail` (the next to write).
///
/// ```text
/// 0            tail        head                 end     capacity
/// | this lap   |   free    |   lap before       | unused |
/// ```
///
/// An item that does not fit behind `tail` leaves the rest unused (`end`) and goes to the front, in a new lap.
pub(crate) struct Log {
    memory: Vec<u8>,
    tail: usize,
    head: usize,
    end: usize,
    lap: u8,
}

impl Log {
    /// Room for `capacity` bytes. The system gives pages as they are first written, so unused room costs nothing.
    pub fn new(capacity: usize) -> Result<Self, Error> {
        if capacity > LOG_BYTES_MAX {
            return Err(Error::LogTooLarge {
                log_bytes: capacity,
                limit: LOG_BYTES_MAX,
            });
        }
        Ok(Self {
            memory: zeroed(capacity - capacity % ALIGNMENT)?,
            tail: 0,
            head: 0,
            end: 0,
            lap: 0,
        })
    }

    pub fn capacity(&self) -> usize {
        self.memory.len()
    }

    /// Whether the item written at `position` is still there.
    #[inline]
    pub fn is_alive(&self, position: Position) -> bool {
        position.lap() == self.lap
            || (position.lap() == self.lap.wrapping_sub(1)
                && position.offset() >= self.head
                && position.offset() < self.end)
    }

    /// Larger for what was written later; positions that are no longer alive are oldest.
    #[inline]
    pub fn recency(&self, position: Position) -> usize {
        if position.lap() == self.lap {
            self.capacity() + position.offset()
        } else if self.is_alive(position) {
            1 + position.offset()
        } else {
            0
        }
    }

    /// Whether the tail will pass `position`, which is alive, within the next quarter of the log.
    #[inline]
    pub fn is_near_its_end(&self, position: Position) -> bool {
        let ahead = if position.lap() == self.lap {
            self.capacity() - self.tail + position.offset()
        } else {
            position.offset().saturating_sub(self.tail)
        };
        ahead < self.capacity() / 4
    }

    /// The oldest item, where it must go before `bytes` can be claimed. The caller looks at it and calls
    /// [`drop_oldest`](Self::drop_oldest).
    #[inline]
    pub fn oldest_in_the_way(&mut self, bytes: usize) -> Option<usize> {
        if self.tail + bytes > self.capacity() {
            if self.head < self.end {
                return Some(self.head);
            }
            self.end = self.tail;
            self.head = 0;
            self.tail = 0;
            self.lap = self.lap.wrapping_add(1);
        }
        (self.head < self.end && self.head < self.tail + bytes).then_some(self.head)
    }

    #[inline]
    pub fn drop_oldest(&mut self, space_bytes: u32) {
        self.head += space_bytes as usize;
    }

    /// Take the next `bytes` (a multiple of [`ALIGNMENT`]); nothing may be in their way any more.
    #[inline]
    pub fn claim(&mut self, bytes: usize) -> Position {
        debug_assert!(bytes.is_multiple_of(ALIGNMENT) && self.tail + bytes <= self.capacity());
        debug_assert!(self.head >= self.end || self.head >= self.tail + bytes);
        let position = Position::new(self.tail, self.lap);
        self.tail += bytes;
        position
    }

    #[inline]
    pub fn header(&self, offset: usize) -> Header {
        let mut bytes = [0; HEADER_BYTES];
        bytes.copy_from_slice(&self.memory[offset..offset + HEADER_BYTES]);
        Header::decode(&bytes)
    }

    #[inline]
    pub fn set_header(&mut self, offset: usize, header: &Header) {
        self.memory[offset..offset + HEADER_BYTES].copy_from_slice(&header.encode());
    }

    #[inline]
    pub fn key(&self, offset: usize, header: &Header) -> &[u8] {
        let start = offset + HEADER_BYTES;
        &self.memory[start..start + header.key_bytes as usize]
    }

    #[inline]
    pub fn set_key(&mut self, offset: usize, key: &[u8]) {
        let start = offset + HEADER_BYTES;
        self.memory[start..start + key.len()].copy_from_slice(key);
    }

    #[inline]
    pub fn value(&self, offset: usize, header: &Header) -> &[u8] {
        let start = value_offset(offset, header);
        &self.memory[start..start + header.value_bytes as usize]
    }

    #[inline]
    pub fn value_mut(&mut self, offset: usize, header: &Header) -> &mut [u8] {
        let start = value_offset(offset, header);
        &mut self.memory[start..start + header.value_bytes as usize]
    }

    #[inline]
    pub fn item(&self, offset: usize, header: &Header) -> Item<'_> {
        Item {
            value: self.value(offset, header),
            flags: header.flags,
            cas: header.cas,
            expires_at: header.expires_at,
            accessed_at: header.accessed_at,
            marks: header.marks,
        }
    }

    /// Move bytes within the log; the two places may overlap.
    #[inline]
    pub fn copy_within(&mut self, from: usize, to: usize, bytes: usize) {
        self.memory.copy_within(from..from + bytes, to);
    }
}

#[inline]
pub(crate) fn value_offset(offset: usize, header: &Header) -> usize {
    offset + HEADER_BYTES + header.key_bytes as usize
}

/// `count` zeros in memory that the system fills in when it is first touched.
pub(crate) fn zeroed<T: Zero>(count: usize) -> Result<Vec<T>, Error> {
    let bytes = count.saturating_mul(size_of::<T>());
    let out_of_memory = Error::OutOfMemory { bytes };
    // `try_reserve` asks and gives back at once, so that a refusal is an error and not an abort; `vec!` of zeros is
    // the standard library's way to `calloc`, which does not touch fresh pages.
    Vec::<T>::new()
        .try_reserve_exact(count)
        .map_err(|_| out_of_memory)?;
    Ok(vec![T::ZERO; count])
}

pub(crate) trait Zero: Clone {
    const ZERO: Self;
}

impl Zero for u8 {
    const ZERO: Self = 0;
}

impl Zero for u64 {
    const ZERO: Self = 0;
}
