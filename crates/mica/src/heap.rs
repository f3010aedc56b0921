use crate::address::Address;
use crate::log::Log;
use crate::sync::{Ordering::Release, fence};

/// Blocks begin at multiples of so many bytes, and have multiples of them.
const GRANULE_BYTES: usize = 8;

/// A shorter block, in granules, is in no list: no item fits, and it waits for a neighbour to be free too.
const LISTED_MIN: u32 = 2;

/// Lists of free blocks for the lengths between two powers of two.
const PARTS_BITS: u32 = 5;
const PARTS: u32 = 1 << PARTS_BITS;

/// Up to a block of 2^28 granules.
const LISTS: usize = ((28 - PARTS_BITS + 1) * PARTS) as usize;

/// Blocks of its own list that are looked at for one that is long enough, before a longer one is split.
const OWN_LIST_LOOKED_AT: usize = 8;

/// No block.
const NONE: u32 = u32::MAX;

/// Hands out blocks of a memory and takes them back: segregated fits, as MICA's store mode (section 3.3.1), with
/// lists of free blocks by length in two levels (TLSF: Masmano et al., ECRTS 2004), so that each takes constant time.
/// Free neighbours are always one block.
///
/// Whoever has a block knows its length: there is nothing of the heap's in it. A free one lies in the memory as
///
/// ```text
/// granule 0          1                      last
/// | length | next    | previous |     ...   |     | length |
/// ```
///
/// in numbers of 32 bits, where what overlaps is the same (one of two granules) or not there (one of one). A bit for
/// each granule, beside the memory, says whether a free block begins or ends there.
pub(crate) struct Heap {
    granules: u32,
    free_granules: u32,
    /// Means nothing for granules in the middle of a block, free or not.
    is_end_of_free: Box<[u64]>,
    /// Which lists have a block.
    is_filled: [u64; LISTS / 64],
    first: [u32; LISTS],
}

/// A part of the memory, in granules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    start: u32,
    length: u32,
}

impl Block {
    fn of(address: Address, bytes: usize) -> Self {
        Self {
            start: (address.offset() / GRANULE_BYTES) as u32,
            length: granules(bytes),
        }
    }

    pub fn address(self) -> Address {
        Address::at(offset(self.start))
    }

    pub fn bytes(self) -> usize {
        offset(self.length)
    }

    fn end(self) -> u32 {
        self.start + self.length
    }

    fn last(self) -> u32 {
        self.end() - 1
    }

    /// The first granules of it, and the others.
    fn split(self, length: u32) -> (Self, Self) {
        let rest = Self {
            start: self.start + length,
            length: self.length - length,
        };
        (Self { length, ..self }, rest)
    }
}

fn granules(bytes: usize) -> u32 {
    bytes.div_ceil(GRANULE_BYTES) as u32
}

/// The list that blocks of so many granules are in. All that are in a later one are longer.
#[inline]
fn list_of(length: u32) -> usize {
    if length < PARTS {
        return length as usize;
    }
    let power = length.ilog2() - PARTS_BITS;
    (((power + 1) << PARTS_BITS) + (length >> power) - PARTS) as usize
}

impl Heap {
    /// All of the log's memory, free.
    pub fn new(log: &mut Log) -> Self {
        let granules = (log.capacity() / GRANULE_BYTES) as u32;
        let mut heap = Self {
            granules,
            free_granules: 0,
            is_end_of_free: vec![0; (granules as usize).div_ceil(64)].into(),
            is_filled: [0; LISTS / 64],
            first: [NONE; LISTS],
        };
        heap.free_all(log);
        heap
    }

    /// Take back every block.
    pub fn free_all(&mut self, log: &mut Log) {
        fence(Release);
        self.is_filled = [0; LISTS / 64];
        self.first = [NONE; LISTS];
        self.free_granules = self.granules;
        let all = Block {
            start: 0,
            length: self.granules,
        };
        self.add(log, all);
    }

    /// How many bytes are in free blocks.
    pub fn free_bytes(&self) -> usize {
        self.free_granules as usize * GRANULE_BYTES
    }

    /// The first block in use that begins at `offset` or behind it; there, some block begins, or the memory ends.
    pub fn used_from(&self, log: &Log, offset: usize) -> Option<Address> {
        let granule = granules(offset);
        let used = self.free_from(log, granule).map_or(granule, Block::end);
        (used < self.granules).then(|| Address::at(self::offset(used)))
    }

    /// A block of `bytes`; `None` where no free one is known to be that long.
    pub fn allocate(&mut self, log: &mut Log, bytes: usize) -> Option<Address> {
        // Whoever sees what is written to the block sees that the index gave up what was there: perhaps another
        // thread cleared the entry, when it had the partition's lock.
        fence(Release);
        let wanted = granules(bytes);
        let found = self.find(log, wanted)?;
        self.remove(log, found);
        let (block, rest) = found.split(wanted);
        self.take(log, block, rest);
        Some(block.address())
    }

    /// Take back a block that was allocated as, or resized to, `bytes`. Nothing may point to it any more.
    pub fn free(&mut self, log: &mut Log, address: Address, bytes: usize) {
        // As in `allocate`: the neighbours' ends are about to be written.
        fence(Release);
        self.give(log, Block::of(address, bytes));
    }

    /// Change a block of `old_bytes` to `bytes` where it lies, and say whether that is done: a shorter one always
    /// fits. Bytes behind the shorter of the two may be written over.
    pub fn resize(
        &mut self,
        log: &mut Log,
        address: Address,
        old_bytes: usize,
        bytes: usize,
    ) -> bool {
        fence(Release);
        let (old, wanted) = (Block::of(address, old_bytes), granules(bytes));
        if wanted <= old.length {
            let (block, rest) = old.split(wanted);
            self.mark(block, false);
            if rest.length > 0 {
                self.give(log, rest);
            }
            return true;
        }
        let missing = wanted - old.length;
        let Some(next) = self
            .free_from(log, old.end())
            .filter(|next| next.length >= missing)
        else {
            return false;
        };
        self.remove(log, next);
        let (more, rest) = next.split(missing);
        self.take(log, more, rest);
        true
    }

    /// Take one of the longest free blocks, to [extend](Self::extend) it: the first of the longest list but `skipped`
    /// others that have a block.
    pub fn begin_extending(&mut self, log: &mut Log, skipped: usize) -> Option<Block> {
        fence(Release);
        let mut filled = (0..LISTS).rev().filter(|&list| self.is_list_filled(list));
        let block = self.first_of(log, filled.nth(skipped)?);
        self.remove(log, block);
        self.free_granules -= block.length;
        self.mark(block, false);
        Some(block)
    }

    /// Add what is free behind `block`, and return what is in use behind that, unless the memory ends there.
    pub fn extend(&mut self, log: &mut Log, block: &mut Block) -> Option<Address> {
        if let Some(next) = self.free_from(log, block.end()) {
            self.remove(log, next);
            self.free_granules -= next.length;
            block.length += next.length;
            self.mark(*block, false);
        }
        (block.end() < self.granules).then(|| Address::at(offset(block.end())))
    }

    /// Add the block of `bytes` behind `block`, which nothing points to any more.
    pub fn absorb(&mut self, block: &mut Block, bytes: usize) {
        block.length += granules(bytes);
    }

    /// What was in the block of `bytes` behind `block` is now in front of it.
    pub fn pass(&mut self, block: &mut Block, bytes: usize) {
        let length = granules(bytes);
        let in_front = Block { length, ..*block };
        block.start += length;
        self.mark(in_front, false);
        self.mark(*block, false);
    }

    /// Make `block` one of `bytes` and free the rest, or free all of it where it is shorter.
    pub fn end_extending(&mut self, log: &mut Log, block: Block, bytes: usize) -> Option<Address> {
        let wanted = granules(bytes);
        if block.length < wanted {
            self.give(log, block);
            return None;
        }
        let (wanted, rest) = block.split(wanted);
        self.mark(wanted, false);
        if rest.length > 0 {
            self.give(log, rest);
        }
        Some(wanted.address())
    }

    /// A free block of at least `wanted` granules.
    fn find(&self, log: &Log, wanted: u32) -> Option<Block> {
        let own = list_of(wanted);
        let mut start = self.first[own];
        for _ in 0..OWN_LIST_LOOKED_AT {
            if start == NONE {
                break;
            }
            let (length, next) = halves(log.word(offset(start)));
            if length >= wanted {
                return Some(Block { start, length });
            }
            start = next;
        }
        Some(self.first_of(log, self.filled_after(own)?))
    }

    /// The first block of a list that has one.
    fn first_of(&self, log: &Log, list: usize) -> Block {
        let start = self.first[list];
        let (length, _) = halves(log.word(offset(start)));
        Block { start, length }
    }

    fn is_list_filled(&self, list: usize) -> bool {
        self.is_filled[list / 64] & 1 << (list % 64) != 0
    }

    /// The first list behind `list` that has a block.
    fn filled_after(&self, list: usize) -> Option<usize> {
        let (word, bit) = ((list + 1) / 64, (list + 1) % 64);
        let mut bits = self.is_filled.get(word)? & (u64::MAX << bit);
        for number in word.. {
            if bits != 0 {
                return Some(number * 64 + bits.trailing_zeros() as usize);
            }
            bits = *self.is_filled.get(number + 1)?;
        }
        None
    }

    /// `block` of what was a free block is in use from now on; `rest` is what is left of that.
    fn take(&mut self, log: &mut Log, block: Block, rest: Block) {
        self.free_granules -= block.length;
        self.mark(block, false);
        if rest.length > 0 {
            self.add(log, rest);
        }
    }

    /// `block` is free from now on, and one with its neighbours if they are.
    fn give(&mut self, log: &mut Log, block: Block) {
        self.free_granules += block.length;
        let mut all = block;
        if let Some(previous) = self.free_until(log, block.start) {
            self.remove(log, previous);
            all.start = previous.start;
            all.length += previous.length;
        }
        if let Some(next) = self.free_from(log, block.end()) {
            self.remove(log, next);
            all.length += next.length;
        }
        self.add(log, all);
    }

    /// The free block that ends where `granule` begins.
    fn free_until(&self, log: &Log, granule: u32) -> Option<Block> {
        let last = granule
            .checked_sub(1)
            .filter(|&last| self.is_marked(last))?;
        let (_, length) = halves(log.word(offset(last)));
        Some(Block {
            start: granule - length,
            length,
        })
    }

    /// The free block that begins with `granule`.
    fn free_from(&self, log: &Log, granule: u32) -> Option<Block> {
        if granule >= self.granules || !self.is_marked(granule) {
            return None;
        }
        let (length, _) = halves(log.word(offset(granule)));
        Some(Block {
            start: granule,
            length,
        })
    }

    /// Make it a free block, in its list.
    fn add(&mut self, log: &mut Log, block: Block) {
        self.mark(block, true);
        let Block { start, length } = block;
        if length < LISTED_MIN {
            log.set_word(offset(start), of_halves(length, length));
            return;
        }
        let list = list_of(length);
        let next = std::mem::replace(&mut self.first[list], start);
        self.is_filled[list / 64] |= 1 << (list % 64);
        // The last granule may be the second, whose other half is of the previous block.
        log.set_word(offset(block.last()), of_halves(NONE, length));
        log.set_word(offset(start), of_halves(length, next));
        set_previous(log, start, NONE);
        if next != NONE {
            set_previous(log, next, start);
        }
    }

    /// Take a free block out of its list. Its marks stay.
    fn remove(&mut self, log: &mut Log, block: Block) {
        if block.length < LISTED_MIN {
            return;
        }
        let (_, next) = halves(log.word(offset(block.start)));
        let (previous, _) = halves(log.word(offset(block.start + 1)));
        if next != NONE {
            set_previous(log, next, previous);
        }
        if previous != NONE {
            let (length, _) = halves(log.word(offset(previous)));
            log.set_word(offset(previous), of_halves(length, next));
            return;
        }
        let list = list_of(block.length);
        self.first[list] = next;
        if next == NONE {
            self.is_filled[list / 64] &= !(1 << (list % 64));
        }
    }

    /// Note at both ends of a block whether it is free.
    fn mark(&mut self, block: Block, is_free: bool) {
        for granule in [block.start, block.last()] {
            let (word, bit) = (granule as usize / 64, 1 << (granule % 64));
            if is_free {
                self.is_end_of_free[word] |= bit;
            } else {
                self.is_end_of_free[word] &= !bit;
            }
        }
    }

    fn is_marked(&self, granule: u32) -> bool {
        self.is_end_of_free[granule as usize / 64] & 1 << (granule % 64) != 0
    }
}

fn set_previous(log: &mut Log, start: u32, previous: u32) {
    let (_, other) = halves(log.word(offset(start + 1)));
    log.set_word(offset(start + 1), of_halves(previous, other));
}

fn offset(granule: u32) -> usize {
    granule as usize * GRANULE_BYTES
}

fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

fn of_halves(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[cfg(test)]
mod tests;
