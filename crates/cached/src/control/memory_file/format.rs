//! The file's format, version 2. Numbers are little-endian, checksums are CRC-32 (IEEE 802.3).
//!
//! ```text
//! header:  magic 8 | version 4 | zero, in Unix time 8 | written at 4 | flush due 4 | last CAS 8 | hash seed 8 | checksum 4
//! block:   kind 4 | partition 4 | items 4 | bytes 4 | checksum of the bytes 4 | checksum of these 4, then the bytes
//! item:    key length 1 | marks 1 | flags 4 | expires at 4 | accessed at 4 | CAS 8 | value length 4 | key | value
//! ```
//!
//! Times are seconds of the clock whose zero the header gives. Items lie in blocks, those of one partition in the order
//! in which they were written. The last block is of a kind of its own: a file without it is not whole.

use mica::{Contents, Marks};

/// What every version begins with.
pub(super) const MAGIC: [u8; 8] = *b"RSCITEMS";

pub(super) const VERSION: u32 = 2;

pub(super) const HEADER_BYTES: usize = 48;

pub(super) const BLOCK_HEADER_BYTES: usize = 24;

const ITEM_HEADER_BYTES: usize = 26;

/// No server gets to such a CAS number: half of all are left for the items to come, as partitions count on.
const CAS_MAX: u64 = 1 << 63;

/// Why a file is of no use.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    #[error("it is not a file of items")]
    Foreign,
    #[error("it is of version {0} of the format, and this program reads version {VERSION}")]
    Version(u32),
    #[error("it ends in the middle: its writing was not finished, or it was cut")]
    Short,
    #[error("it goes on behind its end")]
    Long,
    /// By the part in question.
    #[error("its {0} is not what was written")]
    Altered(&'static str),
    /// It was written so long ago that no clock counts it.
    #[error("this host's clock is more than a lifetime from that of its writing")]
    Time,
    #[error("it cannot be read: {0}")]
    Read(#[from] std::io::Error),
}

/// What is said of all items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The Unix time of the clock's second 0.
    pub zero_unix: i64,
    /// The second at which it was written.
    pub written_at: u32,
    /// The second of a flush that was yet to happen.
    pub flush_due: Option<u32>,
    /// No CAS number was larger.
    pub last_cas: u64,
    /// What keys were hashed with. With the same, the same keys come into the same partitions.
    pub hash_seed: u64,
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut rest = &mut bytes[..];
        put(&mut rest, &MAGIC);
        put(&mut rest, &VERSION.to_le_bytes());
        put(&mut rest, &self.zero_unix.to_le_bytes());
        put(&mut rest, &self.written_at.to_le_bytes());
        put(&mut rest, &self.flush_due.unwrap_or(u32::MAX).to_le_bytes());
        put(&mut rest, &self.last_cas.to_le_bytes());
        put(&mut rest, &self.hash_seed.to_le_bytes());
        seal(&mut bytes);
        bytes
    }

    pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Damage> {
        let mut rest = Rest(bytes);
        if rest.take(MAGIC.len()) != Some(&MAGIC) {
            return Err(Damage::Foreign);
        }
        let altered = Damage::Altered("header");
        let version = rest.u32().ok_or(Damage::Short)?;
        if version != VERSION {
            return Err(Damage::Version(version));
        }
        if !is_sealed(bytes) {
            return Err(altered);
        }
        let mut fields = || {
            Some(Self {
                zero_unix: rest.u64()?.cast_signed(),
                written_at: rest.u32()?,
                flush_due: Some(rest.u32()?).filter(|&due| due != u32::MAX),
                last_cas: rest.u64()?,
                hash_seed: rest.u64()?,
            })
        };
        fields()
            .filter(|header| header.last_cas < CAS_MAX)
            .ok_or(altered)
    }
}

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Items,
    /// The last one; it has no bytes, and the number of all items in place of its own.
    End,
}

/// What precedes the bytes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockHeader {
    pub kind: Kind,
    pub partition: u32,
    pub items: u32,
    pub bytes: u32,
    pub checksum: u32,
}

impl BlockHeader {
    pub fn encode(&self) -> [u8; BLOCK_HEADER_BYTES] {
        let kind = match self.kind {
            Kind::Items => b"ITEM",
            Kind::End => b"END.",
        };
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        let mut rest = &mut bytes[..];
        put(&mut rest, kind);
        for number in [self.partition, self.items, self.bytes, self.checksum] {
            put(&mut rest, &number.to_le_bytes());
        }
        seal(&mut bytes);
        bytes
    }

    pub fn decode(bytes: &[u8; BLOCK_HEADER_BYTES]) -> Result<Self, Damage> {
        let altered = || Damage::Altered("block header");
        if !is_sealed(bytes) {
            return Err(altered());
        }
        let mut rest = Rest(bytes);
        let kind = match rest.take(4) {
            Some(b"ITEM") => Kind::Items,
            Some(b"END.") => Kind::End,
            _ => return Err(altered()),
        };
        let mut number = || rest.u32().ok_or_else(altered);
        Ok(Self {
            kind,
            partition: number()?,
            items: number()?,
            bytes: number()?,
            checksum: number()?,
        })
    }
}

/// An item as it lies in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'b> {
    pub key: &'b [u8],
    pub value: &'b [u8],
    pub flags: u32,
    pub expires_at: u32,
    pub accessed_at: u32,
    /// The CAS number that the item carries with it; 0 for none.
    pub cas: u64,
    pub marks: Marks,
}

/// The marks that are kept, each in a bit of its own.
const MARKS: [Marks; 4] = [
    Marks::FETCHED,
    Marks::STALE,
    Marks::RENEWING,
    Marks::BINARY_KEY,
];

impl<'b> Record<'b> {
    pub fn append_to(&self, block: &mut Vec<u8>) {
        let marks = (0..)
            .zip(MARKS)
            .filter(|&(_, mark)| self.marks.has(mark))
            .fold(0_u8, |bits, (bit, _)| bits | 1 << bit);
        block.extend_from_slice(&[self.key.len() as u8, marks]);
        for number in [self.flags, self.expires_at, self.accessed_at] {
            block.extend_from_slice(&number.to_le_bytes());
        }
        block.extend_from_slice(&self.cas.to_le_bytes());
        block.extend_from_slice(&(self.value.len() as u32).to_le_bytes());
        block.extend_from_slice(self.key);
        block.extend_from_slice(self.value);
    }

    /// How many bytes it takes in a block.
    pub fn bytes(&self) -> usize {
        ITEM_HEADER_BYTES + self.key.len() + self.value.len()
    }

    /// The record that `block` begins with, which then begins behind it. No client can store an item without a key.
    pub fn take_from(block: &mut Rest<'b>) -> Option<Self> {
        let key_bytes = usize::from(block.take(1)?[0]);
        let bits = block.take(1)?[0];
        let marks = (0..)
            .zip(MARKS)
            .filter(|&(bit, _)| bits & 1 << bit != 0)
            .fold(Marks::default(), |marks, (_, mark)| marks.with(mark));
        let (flags, expires_at, accessed_at) = (block.u32()?, block.u32()?, block.u32()?);
        let cas = block.u64()?;
        let value_bytes = block.u32()? as usize;
        Some(Self {
            key: block.take(key_bytes).filter(|key| !key.is_empty())?,
            value: block.take(value_bytes)?,
            flags,
            expires_at,
            accessed_at,
            cas,
            marks,
        })
    }

    pub fn contents(&self) -> Contents<'b> {
        Contents {
            value: self.value,
            flags: self.flags,
            expires_at: self.expires_at,
            marks: self.marks,
            cas: self.cas,
        }
    }
}

/// Bytes that were not looked at yet.
pub(super) struct Rest<'b>(pub &'b [u8]);

impl<'b> Rest<'b> {
    fn take(&mut self, bytes: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?
            .first_chunk()
            .map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?
            .first_chunk()
            .map(|bytes| u64::from_le_bytes(*bytes))
    }
}

fn put(rest: &mut &mut [u8], bytes: &[u8]) {
    let (front, back) = std::mem::take(rest).split_at_mut(bytes.len());
    front.copy_from_slice(bytes);
    *rest = back;
}

/// Make the last four bytes the checksum of those before them.
fn seal(bytes: &mut [u8]) {
    let (body, checksum) = bytes.split_at_mut(bytes.len() - 4);
    checksum.copy_from_slice(&crc32fast::hash(body).to_le_bytes());
}

fn is_sealed(bytes: &[u8]) -> bool {
    let (body, checksum) = bytes.split_at(bytes.len() - 4);
    checksum == crc32fast::hash(body).to_le_bytes()
}

#[cfg(test)]
mod tests;
