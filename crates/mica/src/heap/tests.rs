use super::*;
use crate::Hasher;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A heap, and what is known of it: blocks in use by where they begin, with their lengths in bytes.
struct Known {
    log: Log,
    heap: Heap,
    blocks: BTreeMap<usize, usize>,
}

impl Known {
    fn new(capacity: usize) -> Self {
        let mut log = Log::standing(capacity, Hasher::new(1)).expect("a little memory");
        let heap = Heap::new(&mut log);
        Self {
            log,
            heap,
            blocks: BTreeMap::new(),
        }
    }

    fn allocate(&mut self, bytes: usize) -> Option<usize> {
        let address = self.heap.allocate(&mut self.log, bytes)?;
        self.fill(address.offset(), bytes);
        Some(address.offset())
    }

    /// Write over all of a block: whatever else is kept there is then wrong.
    fn fill(&mut self, offset: usize, bytes: usize) {
        let end = offset + bytes.next_multiple_of(GRANULE_BYTES);
        for word in (offset..end).step_by(8) {
            self.log.set_word(word, u64::MAX);
        }
        self.blocks.insert(offset, bytes);
    }

    fn free(&mut self, offset: usize) {
        let bytes = self.blocks.remove(&offset).expect("it is in use");
        self.heap.free(&mut self.log, Address::at(offset), bytes);
    }

    /// Extend a free block to `bytes` by moving what is in use, at most so often.
    fn extend(&mut self, skipped: usize, bytes: usize, mut moves: usize) -> Option<usize> {
        let mut block = self.heap.begin_extending(&mut self.log, skipped)?;
        while block.bytes() < bytes && moves > 0 {
            let behind = self.heap.extend(&mut self.log, &mut block);
            let Some(behind) = behind.filter(|_| block.bytes() < bytes) else {
                break;
            };
            let moved = self.blocks.remove(&behind.offset()).expect("it is in use");
            if self.allocate(moved).is_some() {
                self.heap.absorb(&mut block, moved);
            } else {
                let to = block.address().offset();
                self.heap.pass(&mut block, moved);
                self.fill(to, moved);
            }
            moves -= 1;
        }
        let address = self.heap.end_extending(&mut self.log, block, bytes)?;
        self.fill(address.offset(), bytes);
        Some(address.offset())
    }

    /// Lengths in bytes of what lies between the blocks in use.
    fn gaps(&self) -> Vec<usize> {
        let mut gaps = Vec::new();
        let mut end = 0;
        for (&start, &bytes) in &self.blocks {
            assert!(start >= end, "{start} is within the block before it");
            gaps.push(start - end);
            end = start + bytes.next_multiple_of(GRANULE_BYTES);
        }
        let capacity = self.log.capacity() / GRANULE_BYTES * GRANULE_BYTES;
        assert!(end <= capacity);
        gaps.push(capacity - end);
        gaps.retain(|&bytes| bytes > 0);
        gaps
    }

    /// Each gap is one free block, and each that is long enough is in its list.
    fn check(&self) {
        let mut gaps = self.gaps();
        assert_eq!(self.heap.free_bytes(), gaps.iter().sum::<usize>());
        let mut listed = Vec::new();
        for (list, &first) in self.heap.first.iter().enumerate() {
            let is_filled = self.heap.is_list_filled(list);
            assert_eq!(first != NONE, is_filled);
            let (mut start, mut previous) = (first, NONE);
            while start != NONE {
                let (length, next) = halves(self.log.word(offset(start)));
                assert_eq!(list_of(length), list);
                assert_eq!(halves(self.log.word(offset(start + 1))).0, previous);
                let block = Block { start, length };
                assert_eq!(self.heap.free_from(&self.log, start), Some(block));
                assert_eq!(self.heap.free_until(&self.log, block.end()), Some(block));
                listed.push(offset(length));
                (previous, start) = (start, next);
            }
        }
        gaps.retain(|&bytes| bytes >= offset(LISTED_MIN));
        gaps.sort_unstable();
        listed.sort_unstable();
        assert_eq!(gaps, listed);
    }
}

#[test]
fn lists_are_in_order_and_narrow() {
    let mut before = 0;
    for length in (1..5000).chain([1 << 20, (1 << 20) + 1, (1 << 27) - 1, 1 << 27]) {
        let list = list_of(length);
        assert!(list >= before && list < LISTS, "{length}");
        before = list;
        // What is in the next list is longer, by at most a thirty-second part.
        let longest = (length..).find(|&longer| list_of(longer + 1) != list);
        assert!(longest.expect("lists end") - length <= length / PARTS);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Allocate(usize),
    Free(prop::sample::Index),
    Resize(prop::sample::Index, usize),
    Extend(usize, usize, usize),
    FreeAll,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = || prop_oneof![8 => 1..200_usize, 2 => 1..3000_usize, 1 => 1..40_000_usize];
    let one = prop_oneof![
        40 => bytes().prop_map(Step::Allocate),
        30 => any::<prop::sample::Index>().prop_map(Step::Free),
        20 => (any::<prop::sample::Index>(), bytes()).prop_map(|(which, bytes)| Step::Resize(which, bytes)),
        10 => (0..4_usize, bytes(), 0..20_usize).prop_map(|(skipped, bytes, moves)| Step::Extend(skipped, bytes, moves)),
        1 => Just(Step::FreeAll),
    ];
    prop::collection::vec(one, 1..400)
}

proptest! {
    /// Blocks never overlap, every byte is in a block or in a gap that is known whole, what is refused would not
    /// have fitted, and in the end all comes back in one piece.
    #[test]
    fn a_heap_against_a_map(capacity in 1000..60_000_usize, steps in steps()) {
        let mut known = Known::new(capacity);
        for step in steps {
            match step {
                Step::Allocate(bytes) => {
                    let gaps = known.gaps();
                    if known.allocate(bytes).is_none() {
                        // One list is looked into only so far.
                        let sure = bytes.next_multiple_of(GRANULE_BYTES) * 33 / 32 + GRANULE_BYTES;
                        prop_assert!(gaps.iter().all(|&gap| gap < sure), "{bytes} of {gaps:?}");
                    }
                }
                Step::Free(which) if !known.blocks.is_empty() => {
                    let offsets: Vec<usize> = known.blocks.keys().copied().collect();
                    known.free(*which.get(&offsets));
                }
                Step::Resize(which, bytes) if !known.blocks.is_empty() => {
                    let offsets: Vec<usize> = known.blocks.keys().copied().collect();
                    let offset = *which.get(&offsets);
                    let old = known.blocks[&offset];
                    let behind = offset + old.next_multiple_of(GRANULE_BYTES);
                    let gap = known.blocks.range(behind..).next().map_or(capacity / 8 * 8, |(&next, _)| next) - behind;
                    let fits = bytes.next_multiple_of(8) <= old.next_multiple_of(8) + gap;
                    let Known { heap, log, .. } = &mut known;
                    prop_assert_eq!(heap.resize(log, Address::at(offset), old, bytes), fits);
                    if fits {
                        known.fill(offset, bytes);
                    }
                }
                Step::Extend(skipped, bytes, moves) => {
                    let before = known.heap.free_bytes();
                    let taken = known.extend(skipped, bytes, moves).map_or(0, |_| bytes.next_multiple_of(8));
                    prop_assert_eq!(known.heap.free_bytes(), before - taken);
                }
                Step::FreeAll => {
                    known.blocks.clear();
                    known.heap.free_all(&mut known.log);
                }
                Step::Free(_) | Step::Resize(..) => {}
            }
            known.check();
        }
        for offset in known.blocks.keys().copied().collect::<Vec<_>>() {
            known.free(offset);
            known.check();
        }
        prop_assert_eq!(known.gaps(), vec![capacity / GRANULE_BYTES * GRANULE_BYTES]);
        prop_assert!(known.allocate(capacity / GRANULE_BYTES * GRANULE_BYTES).is_some());
    }
}

#[test]
fn what_was_given_back_is_found_again_whatever_its_length() {
    let mut known = Known::new(1 << 20);
    // All lengths of one list, and nothing else that is free.
    let mut places: Vec<usize> = (0..16)
        .map(|more| known.allocate(8 * (1024 + more)).expect("room"))
        .collect();
    while known.allocate(8 * 100).is_some() {}
    while known.allocate(8).is_some() {}
    places.rotate_left(5);
    for offset in places {
        let bytes = known.blocks[&offset];
        known.free(offset);
        assert_eq!(known.allocate(bytes), Some(offset));
    }
    known.check();
}

#[test]
fn a_block_that_is_just_long_enough_is_extended_to_and_one_granule_less_is_not() {
    for (missing, given) in [(0, true), (1, false)] {
        let mut known = Known::new(1000);
        let length = known.heap.free_bytes();
        let block = known.heap.begin_extending(&mut known.log, 0).expect("all");
        assert_eq!(block.bytes(), length);
        let wanted = length + missing;
        let address = known.heap.end_extending(&mut known.log, block, wanted);
        assert_eq!(address.map(Address::offset), given.then_some(0));
        assert_eq!(known.heap.free_bytes(), if given { 0 } else { length });
    }
}
