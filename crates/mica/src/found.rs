//! What a lookup in a partition found.

use crate::address::Address;
use crate::item::{First, Header};
use crate::table::Slot;

/// Where an item is that may have expired or been flushed.
#[derive(Clone, Copy)]
pub(crate) struct Sought {
    /// The key's own bucket.
    pub home: usize,
    /// The slot that points to the item.
    pub slot: Slot,
    pub address: Address,
    /// The item's first bytes.
    pub first: First,
}

/// Where a live item is.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    /// The key's own bucket, by which versions go.
    pub home: usize,
    pub slot: Slot,
    pub address: Address,
    pub header: Header,
}
