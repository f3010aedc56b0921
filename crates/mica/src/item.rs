/// Bytes in front of the key of every item.
pub const HEADER_BYTES: usize = 32;

/// Items begin at multiples of this, so that a position counts in these units.
pub(crate) const ALIGNMENT: usize = 8;

/// An item as it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'p> {
    /// The value.
    pub value: &'p [u8],
    /// The client's flags.
    pub flags: u32,
    /// Changes with every change of the item; unique within its partition.
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
    /// No longer reachable; internal to the partition.
    pub(crate) const DEAD: Self = Self(128);

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

/// The first [`HEADER_BYTES`] of an item in the log, little-endian, fields at fixed places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    pub cas: u64,
    pub value_bytes: u32,
    /// From this item's first byte to the next one's; a multiple of [`ALIGNMENT`].
    pub space_bytes: u32,
    pub flags: u32,
    pub expires_at: u32,
    pub accessed_at: u32,
    pub key_bytes: u8,
    pub marks: Marks,
}

impl Header {
    #[inline]
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Self {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Self {
            cas: u64::from(word(0)) | u64::from(word(4)) << 32,
            value_bytes: word(8),
            space_bytes: word(12),
            flags: word(16),
            expires_at: word(20),
            accessed_at: word(24),
            key_bytes: bytes[28],
            marks: Marks(bytes[29]),
        }
    }

    #[inline]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&self.cas.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.value_bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.space_bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.flags.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.expires_at.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.accessed_at.to_le_bytes());
        bytes[28] = self.key_bytes;
        bytes[29] = self.marks.0;
        bytes
    }

    /// Header, key and value, without what alignment or an earlier, longer value left behind them.
    #[inline]
    pub fn item_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.key_bytes) + u64::from(self.value_bytes)
    }

    #[inline]
    pub fn is_expired(&self, now: u32) -> bool {
        self.expires_at != 0 && self.expires_at <= now
    }
}
