//! Items that were evicted, as far as they are recorded.

use crate::Marks;

/// So many are kept until they are taken.
pub(crate) const KEPT_MAX: usize = 4096;

/// An item that had to make room, as it was then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evicted {
    /// Its key.
    pub key: Box<[u8]>,
    /// How long its value was.
    pub value_bytes: usize,
    /// When it would have expired; 0 for never.
    pub expires_at: u32,
    /// When it was last read or written.
    pub accessed_at: u32,
    /// Its marks.
    pub marks: Marks,
}

/// Those that were not taken yet.
#[derive(Default)]
pub(crate) struct Record {
    pub evicted: Vec<Evicted>,
    /// Those that there was no room for.
    pub missed: u64,
}
