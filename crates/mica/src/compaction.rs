//! Free blocks joined by moving the items between them, where none is long enough for a new item.
//!
//! A long free block is extended: what lies behind it is moved into another free block or, where none will do, to the
//! front of this one, which so comes to lie behind it. How much is moved for one write is bounded; what was gained
//! stays when it was not enough.
//!
//! To readers, an item that moves is one whose bucket is being written: see [`store`](crate::store).

use crate::address::Address;
use crate::heap::Block;
use crate::index::Items;
use crate::partition::Partition;
use crate::store::Store;

/// Free blocks that are tried, one after the other: behind one, items may lie close together for a long way.
const BLOCKS_MAX: usize = 16;

/// Items that are moved for one write.
const ITEMS_MAX: usize = 1 << 14;

/// Bytes that are moved for each that is wanted, behind one free block and at all, with bounds.
const BYTES_FOR_A_BYTE_BEHIND_ONE: usize = 16;
const BYTES_BEHIND_ONE_LEAST: usize = 4 << 10;
const BYTES_FOR_A_BYTE: usize = 32;
const BYTES_LEAST: usize = 64 << 10;
const BYTES_MAX: usize = 64 << 20;

impl Partition {
    /// A block for a new item of `bytes`. Items move, with their entries.
    pub(crate) fn allocate_by_moving(&mut self, bytes: usize) -> Option<Address> {
        let mut items_left = ITEMS_MAX;
        let mut bytes_left = (bytes * BYTES_FOR_A_BYTE).clamp(BYTES_LEAST, BYTES_MAX);
        let bytes_behind_one = (bytes * BYTES_FOR_A_BYTE_BEHIND_ONE).max(BYTES_BEHIND_ONE_LEAST);
        for skipped in 0..BLOCKS_MAX {
            let heap = &mut self.store.as_mut()?.heap;
            if heap.free_bytes() < bytes {
                return None;
            }
            let mut block = heap.begin_extending(&mut self.log, skipped)?;
            let mut left_behind_one = bytes_behind_one.min(bytes_left);
            while block.bytes() < bytes && items_left > 0 {
                let Some(moved) = self.extend(&mut block, bytes) else {
                    break;
                };
                bytes_left = bytes_left.saturating_sub(moved);
                items_left -= 1;
                match left_behind_one.checked_sub(moved) {
                    Some(left) => left_behind_one = left,
                    None => break,
                }
            }
            let heap = &mut self.store.as_mut()?.heap;
            let address = heap.end_extending(&mut self.log, block, bytes);
            if address.is_some() {
                return address;
            }
        }
        None
    }

    /// Add what is free behind a block that is to be of `bytes`. If that is not enough, move the item behind it, and
    /// return how long that is; `None` where there is none.
    fn extend(&mut self, block: &mut Block, bytes: usize) -> Option<usize> {
        let Store { heap, .. } = self.store.as_deref_mut()?;
        let from = heap.extend(&mut self.log, block);
        if block.bytes() >= bytes {
            return Some(0);
        }
        let from = from?;
        let item_bytes = self.log.header(from).0.item_bytes();
        if let Some(to) = heap.allocate(&mut self.log, item_bytes) {
            self.move_item(from, to, item_bytes);
            self.store.as_mut()?.heap.absorb(block, item_bytes);
        } else {
            self.move_item(from, block.address(), item_bytes);
            self.store.as_mut()?.heap.pass(block, item_bytes);
        }
        Some(item_bytes)
    }

    /// Move an item to memory that is free, and may overlap with its own if it lies before that.
    fn move_item(&mut self, from: Address, to: Address, bytes: usize) {
        let index = &self.shared.index;
        let key = self.log.key_at(from.position());
        let (home, tag) = (index.bucket_of(key), key.tag());
        // Every block in use is some entry's item.
        let slot = index.table.slot_of(home, tag, from.position());
        let _writing = index.versions.write(home);
        self.log.copy_item(from, to, bytes);
        if let Some(slot) = slot {
            index.table.set(slot, tag, to.position());
        }
    }
}
