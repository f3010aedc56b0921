//! Buckets of the index as they lie in memory. Every access is atomic, so that others may look while one writes.

use crate::Error;
use crate::memory::Memory;
use crate::sync::{AtomicU64, Ordering::Relaxed};

/// Slots of a bucket.
pub(crate) const SLOTS: usize = 12;

/// A bucket is one cache line.
type Words = [AtomicU64; 8];
pub(crate) const BUCKET_BYTES: usize = 64;

/// Buckets that full ones may be continued in, for each bucket that there may be at most.
const SPARES_SHARE: usize = 4;

/// The slots of a bucket as bits of a mask.
const ALL_SLOTS: u32 = (1 << SLOTS) - 1;

/// Where an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    bucket: u32,
    number: u32,
}

impl Slot {
    #[inline]
    pub fn new(bucket: usize, number: usize) -> Self {
        Self {
            bucket: bucket as u32,
            number: number as u32,
        }
    }

    #[inline]
    pub fn bucket(self) -> usize {
        self.bucket as usize
    }

    #[inline]
    fn number(self) -> usize {
        self.number as usize
    }
}

/// Buckets of twelve slots: a tag of 8 bits (0 where the slot is empty) and a position of 32 in the log.
///
/// ```text
/// byte 0            12      16                                64
/// | 12 tags          | next  | 12 positions                    |
/// ```
///
/// `next` is the spare bucket, counted from 1, in which a full one is continued. The spares lie behind the buckets.
pub(crate) struct Table {
    memory: Memory,
    buckets_max: usize,
    spares: usize,
}

impl Table {
    /// Room for `buckets_max` buckets and their spares. Only what is used is ever touched.
    pub fn new(buckets_max: usize) -> Result<Self, Error> {
        let spares = buckets_max / SPARES_SHARE;
        Ok(Self {
            memory: Memory::zeroed((buckets_max + spares).saturating_mul(BUCKET_BYTES))?,
            buckets_max,
            spares,
        })
    }

    pub fn buckets_max(&self) -> usize {
        self.buckets_max
    }

    /// Have huge pages from now on.
    pub fn use_huge_pages(&self) {
        self.memory.use_huge_pages();
    }

    pub fn spares(&self) -> usize {
        self.spares
    }

    #[inline]
    fn words(&self, bucket: usize) -> &Words {
        &self.memory.lines()[bucket]
    }

    #[inline]
    pub fn prefetch(&self, bucket: usize) {
        self.memory.prefetch(bucket * BUCKET_BYTES);
    }

    /// The filled slots of `bucket`, as bits.
    pub fn filled_slots(&self, bucket: usize) -> u32 {
        ALL_SLOTS & !self.empty_slots(bucket).0
    }

    /// The slots of `bucket` with `tag`, as bits, and the bucket that continues it.
    #[inline]
    pub fn matches(&self, bucket: usize, tag: u8) -> (u32, Option<usize>) {
        self.matches_in(self.words(bucket), tag)
    }

    #[inline(always)]
    fn matches_in(&self, words: &Words, tag: u8) -> (u32, Option<usize>) {
        let (low, high) = (words[0].load(Relaxed), words[1].load(Relaxed));
        let next = (high >> 32) as usize;
        let next = (next != 0).then(|| self.buckets_max + next - 1);
        (same_bytes(low, high, tag) & ALL_SLOTS, next)
    }

    #[inline]
    pub fn empty_slots(&self, bucket: usize) -> (u32, Option<usize>) {
        self.matches(bucket, 0)
    }

    #[inline]
    pub fn position(&self, slot: Slot) -> u32 {
        position_in(self.words(slot.bucket()), slot.number())
    }

    /// The first slot of `bucket` with `tag`, and its position.
    #[inline(always)]
    pub fn first_candidate(&self, bucket: usize, tag: u8) -> Option<(Slot, u32)> {
        let words = self.words(bucket);
        let (slots, _) = self.matches_in(words, tag);
        let number = slots.trailing_zeros() as usize;
        (slots != 0).then(|| (Slot::new(bucket, number), position_in(words, number)))
    }

    /// The bucket that continues `bucket`.
    #[inline]
    pub fn next(&self, bucket: usize) -> Option<usize> {
        self.matches(bucket, 0).1
    }

    #[inline]
    pub fn tag(&self, slot: Slot) -> u8 {
        let word = self.words(slot.bucket())[slot.number() / 8].load(Relaxed);
        (word >> (8 * (slot.number() % 8))) as u8
    }

    /// Fill a slot. One thread at a time may write to a bucket.
    #[inline]
    pub fn set(&self, slot: Slot, tag: u8, position: u32) {
        let words = self.words(slot.bucket());
        put(
            &words[2 + slot.number() / 2],
            32 * (slot.number() % 2),
            u64::from(u32::MAX),
            u64::from(position),
        );
        put(
            &words[slot.number() / 8],
            8 * (slot.number() % 8),
            0xff,
            u64::from(tag),
        );
    }

    #[inline]
    pub fn clear(&self, slot: Slot) {
        put(
            &self.words(slot.bucket())[slot.number() / 8],
            8 * (slot.number() % 8),
            0xff,
            0,
        );
    }

    /// Continue `bucket` in another, which is a spare one, or nowhere.
    pub fn set_next(&self, bucket: usize, next: Option<usize>) {
        let next = next.map_or(0, |next| next - self.buckets_max + 1);
        put(&self.words(bucket)[1], 32, u64::from(u32::MAX), next as u64);
    }

    /// Make `bucket` empty and the last of its chain, whatever it was.
    pub fn reset(&self, bucket: usize) {
        for word in self.words(bucket) {
            word.store(0, Relaxed);
        }
    }

    /// The slots with `tag` in `bucket` and those that continue it, with their positions.
    #[inline(always)]
    pub fn candidates(&self, bucket: usize, tag: u8) -> Candidates<'_> {
        let words = self.words(bucket);
        let (slots, next) = self.matches_in(words, tag);
        Candidates {
            table: self,
            tag,
            bucket,
            words,
            slots,
            next,
            buckets_left: CHAIN_MAX - 1,
        }
    }

    /// The slot with `tag` in `bucket` and those that continue it that has this position.
    pub fn slot_of(&self, bucket: usize, tag: u8, position: u32) -> Option<Slot> {
        let mut candidates = self.candidates(bucket, tag);
        let found = candidates.find(|&(_, candidate)| candidate == position);
        found.map(|(slot, _)| slot)
    }

    /// Every filled slot of `bucket` and of those that continue it.
    pub fn filled(&self, bucket: usize) -> impl Iterator<Item = Slot> {
        let mut at = Some(bucket);
        std::iter::from_fn(move || {
            let bucket = at?;
            let (empty, next) = self.empty_slots(bucket);
            at = next;
            Some(
                (0..SLOTS)
                    .filter(move |number| empty & (1 << number) == 0)
                    .map(move |number| Slot::new(bucket, number)),
            )
        })
        .flatten()
    }
}

/// See [`Table::candidates`].
pub(crate) struct Candidates<'t> {
    table: &'t Table,
    tag: u8,
    bucket: usize,
    words: &'t Words,
    slots: u32,
    next: Option<usize>,
    buckets_left: usize,
}

impl Iterator for Candidates<'_> {
    type Item = (Slot, u32);

    #[inline(always)]
    fn next(&mut self) -> Option<(Slot, u32)> {
        let table = self.table;
        while self.slots == 0 {
            self.buckets_left = self.buckets_left.checked_sub(1)?;
            self.bucket = self
                .next
                .filter(|&next| next < table.buckets_max + table.spares)?;
            self.words = table.words(self.bucket);
            (self.slots, self.next) = table.matches_in(self.words, self.tag);
        }
        let slot = Slot::new(self.bucket, self.slots.trailing_zeros() as usize);
        self.slots &= self.slots - 1;
        Some((slot, position_in(self.words, slot.number())))
    }
}

/// Buckets that one may be continued over, itself included: more than ever are where hashes are spread. Somebody who
/// reads while a chain changes must not go round in it for ever.
pub(crate) const CHAIN_MAX: usize = 4096;

#[inline(always)]
fn position_in(words: &Words, number: usize) -> u32 {
    (words[2 + number / 2].load(Relaxed) >> (32 * (number % 2))) as u32
}

#[inline]
fn put(word: &AtomicU64, shift: usize, mask: u64, value: u64) {
    let others = word.load(Relaxed) & !(mask << shift);
    word.store(others | value << shift, Relaxed);
}

/// Which of the 16 bytes are `byte`, as bits.
#[cfg(target_arch = "x86_64")]
#[inline]
fn same_bytes(low: u64, high: u64, byte: u8) -> u32 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    // SAFETY: SSE2 is part of every x86-64.
    unsafe {
        let bytes = _mm_set_epi64x(high.cast_signed(), low.cast_signed());
        let wanted = _mm_set1_epi8(byte.cast_signed());
        _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, wanted)).cast_unsigned()
    }
}

/// Which of the 16 bytes are `byte`, as bits.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn same_bytes(low: u64, high: u64, byte: u8) -> u32 {
    let bytes = [low.to_le_bytes(), high.to_le_bytes()];
    bytes
        .as_flattened()
        .iter()
        .rev()
        .fold(0, |mask, &found| mask << 1 | u32::from(found == byte))
}

#[cfg(test)]
mod tests;
