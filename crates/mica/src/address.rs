//! Where an item begins.

use crate::item::{Header, WINDOW_BYTES};

/// Bits of a [`Address`] that count bytes within a lap.
pub(crate) const OFFSET_BITS: u32 = 30;

/// Bits of a CAS number that count changes of an item where it lies.
pub(crate) const EDITION_BITS: u32 = u8::BITS;

/// These bits, all set, tell a CAS number that was [counted](cas_beside_log) from one that follows from a place.
const COUNTED: u64 = u8::MAX as u64;

const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;

/// The longest log, in bytes: a little less than a lap counts, so that the tail's offset is one too.
pub(crate) const LOG_BYTES_MAX: usize = OFFSET_MASK as usize - WINDOW_BYTES;

/// Where an item begins, for ever: the lap in which it was written above the offset in the log. Those written later
/// are larger. The index keeps the low 32 bits, a [`position`](Self::position): the offset and two bits of the lap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Address(u64);

impl Address {
    #[inline]
    pub fn new(lap: u64, offset: usize) -> Self {
        Self(lap << OFFSET_BITS | offset as u64)
    }

    /// A place of a memory that is not written round and round.
    #[inline]
    pub fn at(offset: usize) -> Self {
        Self::new(0, offset)
    }

    #[inline]
    pub fn offset(self) -> usize {
        (self.0 & OFFSET_MASK) as usize
    }

    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub fn lap(self) -> u64 {
        self.0 >> OFFSET_BITS
    }

    #[inline]
    pub fn position(self) -> u32 {
        self.0 as u32
    }

    /// The last place before `tail` that has this position.
    #[inline]
    pub fn before(tail: Self, position: u32) -> Self {
        let last = tail.0.wrapping_sub(1);
        let behind = (last as u32).wrapping_sub(position);
        Self(last.wrapping_sub(u64::from(behind)))
    }

    /// The CAS number of an item that begins here, after it was changed here `edition` times: no other item of this
    /// log ever has it.
    #[inline]
    pub fn cas(self, edition: u8) -> u64 {
        self.0 << EDITION_BITS | u64::from(edition)
    }
}

/// The CAS number after `last` for what lies beside a log: no item of that log ever has it.
#[inline]
pub(crate) fn cas_beside_log(last: u64) -> u64 {
    (last + 1) | COUNTED
}

#[inline]
pub(crate) fn cas(address: Address, header: &Header) -> u64 {
    header
        .explicit_cas()
        .unwrap_or_else(|| address.cas(header.edition))
}

/// The first place that `tail` will not pass within the next quarter of a log of `capacity` bytes.
#[inline]
pub(crate) fn near_end(tail: Address, capacity: usize) -> Address {
    let quarter_ahead = tail.offset() + capacity / 4;
    if quarter_ahead < capacity {
        Address::new(tail.lap() - 1, quarter_ahead)
    } else {
        Address::new(tail.lap(), quarter_ahead - capacity)
    }
}
