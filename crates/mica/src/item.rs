/// The most bytes in front of the key of an item; see [`Header`] for how few there may be.
pub const HEADER_BYTES: usize = PLAIN_BYTES + (LENGTH_BYTES_MAX - 1) + 4 + 4 + 8;

/// Key length, marks, edition, three bytes of a time, and the first byte of the value's length.
pub(crate) const PLAIN_BYTES: usize = 7;

/// A value's length takes as many bytes as it has groups of seven bits.
const LENGTH_BYTES_MAX: usize = 5;

/// As often as an item may be changed where it lies. One more tells a CAS number that was counted beside the log.
const EDITION_MAX: u8 = u8::MAX - 1;

/// Bytes that can be read from any place where an item may begin.
pub(crate) const WINDOW_BYTES: usize = 32;

const _: () = assert!(HEADER_BYTES <= WINDOW_BYTES);

/// An item as it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'p> {
    /// The value.
    pub value: &'p [u8],
    /// The client's flags.
    pub flags: u32,
    /// Changes with every change of the item; unique among those that its key ever had.
    pub cas: u64,
    /// The second at which it expires; 0 means never.
    pub expires_at: u32,
    /// The second of the last hit, or of storing it.
    pub accessed_at: u32,
    /// What is noted about it.
    pub marks: Marks,
}

/// What to store under a key.
#[derive(Debug, Clone, Copy, Default)]
pub struct Contents<'v> {
    /// The value.
    pub value: &'v [u8],
    /// The client's flags.
    pub flags: u32,
    /// The second at which it expires; 0 means never.
    pub expires_at: u32,
    /// What to note about it.
    pub marks: Marks,
    /// The CAS number it is to have; 0 for one of the partition's choice.
    pub cas: u64,
}

impl<'v> Contents<'v> {
    /// `value` with no flags, for ever.
    #[must_use]
    pub fn of(value: &'v [u8]) -> Self {
        Self {
            value,
            ..Self::default()
        }
    }
}

/// Notes about an item that its owner keeps with it; the partition itself sets [`Marks::FETCHED`] only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// It was read since it was stored.
    pub const FETCHED: Self = Self(1);
    /// Its owner declared it out of date but still of use.
    pub const STALE: Self = Self(2);
    /// Somebody was told to renew it.
    pub const RENEWING: Self = Self(4);
    /// Its key arrived encoded, because it is binary.
    pub const BINARY_KEY: Self = Self(8);

    /// Those above.
    const PUBLIC: u8 = 15;

    /// Whether all of `other` are set.
    #[inline]
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// With those of `other` as well.
    #[inline]
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Without those of `other`.
    #[inline]
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// Bits beside the public marks: which optional fields there are, and whether the item can no longer be reached.
const HAS_FLAGS: u8 = 16;
const HAS_EXPIRY: u8 = 32;
const HAS_CAS: u8 = 64;
const DEAD: u8 = 128;

/// What precedes the key in the log, little-endian:
///
/// | bytes | |
/// |---|---|
/// | 1 | length of the key |
/// | 1 | marks, and which of the optional fields there are |
/// | 1 | edition: how often it was changed where it lies |
/// | 3 | second of the last hit, modulo 2^24 (194 days) |
/// | 1 to 5 | length of the value, seven bits a byte, the highest bit set in all but the last |
/// | 0 or 4 | flags |
/// | 0 or 4 | second at which it expires |
/// | 0 or 8 | CAS number, where it does not follow from the position and the edition |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub key_bytes: u8,
    bits: u8,
    pub edition: u8,
    accessed_at: u32,
    pub value_bytes: u32,
    flags: u32,
    expires_at: u32,
    cas: u64,
}

impl Header {
    /// Of a new item.
    #[inline]
    pub fn new(key_bytes: usize, contents: &Contents<'_>, now: u32) -> Self {
        let bits = contents.marks.0 & Marks::PUBLIC
            | if contents.flags == 0 { 0 } else { HAS_FLAGS }
            | if contents.expires_at == 0 {
                0
            } else {
                HAS_EXPIRY
            }
            | if contents.cas == 0 { 0 } else { HAS_CAS };
        Self {
            key_bytes: key_bytes as u8,
            bits,
            edition: 0,
            accessed_at: now & ACCESSED_MASK,
            value_bytes: contents.value.len() as u32,
            flags: contents.flags,
            expires_at: contents.expires_at,
            cas: contents.cas,
        }
    }

    /// The header that begins at the first of these bytes, and its length.
    #[inline]
    pub fn decode(bytes: &[u8; WINDOW_BYTES]) -> (Self, usize) {
        let first = u64::from_le_bytes([
            bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
        ]);
        let bits = (first >> 8) as u8;
        let mut value_bytes = u32::from(bytes[6] & 0x7f);
        let mut at = PLAIN_BYTES;
        while bytes[at - 1] & 0x80 != 0 && at < PLAIN_BYTES + LENGTH_BYTES_MAX - 1 {
            value_bytes |= u32::from(bytes[at] & 0x7f) << (7 * (at + 1 - PLAIN_BYTES));
            at += 1;
        }
        let mut header = Self {
            key_bytes: first as u8,
            bits,
            edition: (first >> 16) as u8,
            accessed_at: (first >> 24) as u32 & ACCESSED_MASK,
            value_bytes,
            flags: 0,
            expires_at: 0,
            cas: 0,
        };
        if bits & (HAS_FLAGS | HAS_EXPIRY | HAS_CAS) != 0 {
            at = header.decode_options(bytes, at);
        }
        (header, at)
    }

    #[inline]
    fn decode_options(&mut self, bytes: &[u8; WINDOW_BYTES], mut at: usize) -> usize {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if self.bits & HAS_FLAGS != 0 {
            self.flags = word(at);
            at += 4;
        }
        if self.bits & HAS_EXPIRY != 0 {
            self.expires_at = word(at);
            at += 4;
        }
        if self.bits & HAS_CAS != 0 {
            self.cas = u64::from(word(at)) | u64::from(word(at + 4)) << 32;
            at += 8;
        }
        at
    }

    /// Write it to the front of `to`, and return its length.
    #[inline]
    pub fn encode(&self, to: &mut [u8; WINDOW_BYTES]) -> usize {
        let first = u64::from(self.key_bytes)
            | u64::from(self.bits) << 8
            | u64::from(self.edition) << 16
            | u64::from(self.accessed_at) << 24;
        to[..8].copy_from_slice(&first.to_le_bytes());
        let mut rest = self.value_bytes;
        let mut at = PLAIN_BYTES - 1;
        while rest > 0x7f {
            to[at] = rest as u8 | 0x80;
            rest >>= 7;
            at += 1;
        }
        to[at] = rest as u8;
        at += 1;
        let mut put = |bytes: &[u8]| {
            to[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        if self.bits & HAS_FLAGS != 0 {
            put(&self.flags.to_le_bytes());
        }
        if self.bits & HAS_EXPIRY != 0 {
            put(&self.expires_at.to_le_bytes());
        }
        if self.bits & HAS_CAS != 0 {
            put(&self.cas.to_le_bytes());
        }
        at
    }

    /// Its own length.
    #[inline]
    pub fn bytes(&self) -> usize {
        let length_bytes = (38 - (self.value_bytes | 1).leading_zeros()) as usize / 7;
        PLAIN_BYTES - 1
            + length_bytes
            + usize::from(self.bits & HAS_FLAGS != 0) * 4
            + usize::from(self.bits & HAS_EXPIRY != 0) * 4
            + usize::from(self.bits & HAS_CAS != 0) * 8
    }

    /// Header, key and value.
    #[inline]
    pub fn item_bytes(&self) -> usize {
        self.bytes() + usize::from(self.key_bytes) + self.value_bytes as usize
    }

    #[inline]
    pub fn is_dead(&self) -> bool {
        self.bits & DEAD != 0
    }

    #[inline]
    pub fn is_expired(&self, now: u32) -> bool {
        is_past(self.expires_at, now)
    }

    #[inline]
    pub fn flags(&self) -> u32 {
        self.flags
    }

    #[inline]
    pub fn expires_at(&self) -> u32 {
        self.expires_at
    }

    #[inline]
    pub fn marks(&self) -> Marks {
        Marks(self.bits & Marks::PUBLIC)
    }

    #[inline]
    pub fn explicit_cas(&self) -> Option<u64> {
        (self.bits & HAS_CAS != 0).then_some(self.cas)
    }

    /// The second of the last hit, as it is seen at second `now`.
    #[inline]
    pub fn accessed_at(&self, now: u32) -> u32 {
        now.wrapping_sub(now.wrapping_sub(self.accessed_at) & ACCESSED_MASK)
    }

    #[inline]
    #[must_use]
    pub fn accessed(self, now: u32) -> Self {
        Self {
            accessed_at: now & ACCESSED_MASK,
            ..self
        }
    }

    #[must_use]
    pub fn dead(self) -> Self {
        Self {
            bits: self.bits | DEAD,
            ..self
        }
    }

    #[inline]
    #[must_use]
    pub fn marked(self, marks: Marks) -> Self {
        Self {
            bits: self.bits & !Marks::PUBLIC | marks.0 & Marks::PUBLIC,
            ..self
        }
    }

    /// With a field for the second at which it expires, which may be never.
    #[must_use]
    pub fn with_expiry(self) -> Self {
        Self {
            bits: self.bits | HAS_EXPIRY,
            ..self
        }
    }

    /// Expiring at another second; a field that is there stays, whatever is in it.
    #[must_use]
    pub fn expiring_at(self, expires_at: u32) -> Self {
        let bits = if expires_at == 0 {
            self.bits
        } else {
            self.bits | HAS_EXPIRY
        };
        Self {
            bits,
            expires_at,
            ..self
        }
    }

    /// As one more edition of an item that has `old` as its header and lies where it lay, or `None` where the CAS
    /// number of that could not be told from those before it.
    #[inline]
    #[must_use]
    pub fn next_edition(self, old: &Self) -> Option<Self> {
        if self.bits & HAS_CAS != 0 && self.cas != old.cas {
            return Some(self);
        }
        if (self.bits | old.bits) & HAS_CAS != 0 {
            return None;
        }
        if old.edition >= EDITION_MAX {
            return None;
        }
        let edition = old.edition + 1;
        Some(Self { edition, ..self })
    }

    /// With a CAS number of its own, or with the one that follows from where it lies.
    #[must_use]
    pub fn with_cas(self, cas: Option<u64>) -> Self {
        let bits = if cas.is_some() {
            self.bits | HAS_CAS
        } else {
            self.bits & !HAS_CAS
        };
        Self {
            bits,
            edition: 0,
            cas: cas.unwrap_or(0),
            ..self
        }
    }

    #[must_use]
    pub fn sized(self, value_bytes: usize) -> Self {
        Self {
            value_bytes: value_bytes as u32,
            ..self
        }
    }
}

/// The first eight bytes of an item. Most often they are the whole header and a byte of the key: then what is done most
/// takes no more than these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct First(u64);

impl First {
    /// The byte behind a plain header, which is not its own.
    const BEHIND: u64 = 0xff << 56;
    /// Bits of headers that are longer.
    const LONGER: u64 = ((HAS_FLAGS | HAS_EXPIRY | HAS_CAS) as u64) << 8 | 0x80 << 48;

    #[inline]
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(u64::from_le_bytes(bytes))
    }

    #[inline]
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    #[inline]
    pub fn key_bytes(self) -> usize {
        usize::from(self.0 as u8)
    }

    /// Whether the header has [`PLAIN_BYTES`]: no optional field, and a value of less than 128 bytes.
    #[inline]
    pub fn is_plain(self) -> bool {
        self.0 & Self::LONGER == 0
    }

    /// Whether there is nothing between the value's length and the key but flags and expiry, as there may be.
    #[inline]
    pub fn is_short(self) -> bool {
        self.0 & (u64::from(HAS_CAS) << 8 | 0x80 << 48) == 0
    }

    /// Where it is short, the bytes of flags and expiry.
    #[inline]
    pub fn option_bytes(self) -> usize {
        let has = |bit: u8| usize::from((self.0 >> 8) as u8 & bit != 0);
        4 * (has(HAS_FLAGS) + has(HAS_EXPIRY))
    }

    /// Flags and the second of expiry, where it is short and these are the bytes behind it.
    #[inline]
    pub fn options(self, behind: u64) -> (u32, u32) {
        let bits = (self.0 >> 8) as u8;
        match (bits & HAS_FLAGS != 0, bits & HAS_EXPIRY != 0) {
            (true, true) => (behind as u32, (behind >> 32) as u32),
            (true, false) => (behind as u32, 0),
            (false, true) => (0, behind as u32),
            (false, false) => (0, 0),
        }
    }

    /// Where it is short, the length of the value.
    #[inline]
    pub fn value_bytes(self) -> usize {
        (self.0 >> 48) as usize & 0x7f
    }

    #[inline]
    pub fn edition(self) -> u8 {
        (self.0 >> 16) as u8
    }

    #[inline]
    pub fn marks(self) -> Marks {
        Marks((self.0 >> 8) as u8 & Marks::PUBLIC)
    }

    /// As [`Header::accessed_at`].
    #[inline]
    pub fn accessed_at(self, now: u32) -> u32 {
        now.wrapping_sub(now.wrapping_sub((self.0 >> 24) as u32) & ACCESSED_MASK)
    }

    /// After a hit at second `now`.
    #[inline]
    pub fn noted(self, now: u32) -> Self {
        let others = self.0 & !(u64::from(ACCESSED_MASK) << 24);
        Self(others | u64::from(Marks::FETCHED.0) << 8 | u64::from(now & ACCESSED_MASK) << 24)
    }

    /// As [`Header::new`] and [`Header::next_edition`] have it for `contents` at second `now`, where both the old item
    /// and the new one are plain and of the same length.
    #[inline]
    pub fn replaced_by(self, contents: &Contents<'_>, now: u32) -> Option<Self> {
        let plain = contents.flags == 0 && contents.expires_at == 0 && self.is_plain();
        self.next(contents, now).filter(|_| plain)
    }

    /// The same where both are short and have the same fields, with the bytes of these.
    #[inline]
    pub fn renewed_by(self, contents: &Contents<'_>, now: u32) -> Option<(Self, u64)> {
        let fields = (self.0 >> 8) as u8 & (HAS_FLAGS | HAS_EXPIRY);
        let (flags, expires_at) = (u64::from(contents.flags), u64::from(contents.expires_at));
        let (wanted, behind) = match (flags != 0, expires_at != 0) {
            (true, true) => (HAS_FLAGS | HAS_EXPIRY, flags | expires_at << 32),
            (true, false) => (HAS_FLAGS, flags),
            (false, true) => (HAS_EXPIRY, expires_at),
            (false, false) => (0, 0),
        };
        let next = self.next(contents, now)?;
        (self.is_short() && wanted == fields).then_some((next, behind))
    }

    #[inline]
    fn next(self, contents: &Contents<'_>, now: u32) -> Option<Self> {
        let is_same = contents.cas == 0 && contents.value.len() == self.value_bytes();
        if !is_same || self.edition() >= EDITION_MAX {
            return None;
        }
        let fields = u64::from(HAS_FLAGS | HAS_EXPIRY) << 8;
        let kept = self.0 & (0xff | fields | 0xff << 48 | Self::BEHIND);
        Some(Self(
            kept | u64::from(contents.marks.0 & Marks::PUBLIC) << 8
                | u64::from(self.edition() + 1) << 16
                | u64::from(now & ACCESSED_MASK) << 24,
        ))
    }
}

/// Whether the second at which an item expires, 0 for never, has come.
#[inline]
pub(crate) fn is_past(expires_at: u32, now: u32) -> bool {
    expires_at != 0 && expires_at <= now
}

const ACCESSED_MASK: u32 = (1 << 24) - 1;

#[cfg(test)]
mod tests;
