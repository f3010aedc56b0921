use crate::Error;
use crate::key::Key;
use crate::log::{Log, Position, zeroed};

/// Slots of a bucket: one cache line.
pub(crate) const SLOTS: usize = 8;

const CACHE_LINE_BYTES: usize = SLOTS * size_of::<u64>();

/// A slot: tag above position, or [`Slot::EMPTY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(u64);

impl Slot {
    pub const EMPTY: Self = Self(0);

    #[inline]
    pub fn new(tag: u16, position: Position) -> Self {
        Self(u64::from(tag) << Position::BITS | position.bits())
    }

    #[inline]
    pub fn tag(self) -> u16 {
        (self.0 >> Position::BITS) as u16
    }

    #[inline]
    pub fn position(self) -> Position {
        Position::from_bits(self.0)
    }
}

/// A lossy set-associative index: a hash picks a bucket, a tag picks slots of it, and there is nowhere else to look.
///
/// It grows by linear hashing (Litwin, VLDB 1980): buckets are split one at a time, in order, so that it is always
/// as large as the items in it need, and no insert waits for a rehash. Memory for all buckets that there may be is
/// reserved at once; only what is used is ever touched.
pub(crate) struct Index {
    words: Vec<u64>,
    /// Words in front of the first cache line that `words` holds whole.
    skip: usize,
    buckets: usize,
    buckets_max: usize,
    /// The largest power of two that is not above `buckets`: those below `buckets - base` are split.
    base: usize,
    /// The bucket that [`sweep`](Self::sweep) looks at next.
    sweep_at: usize,
    /// Bytes written to the log for which buckets were not yet swept.
    sweep_credit: usize,
}

impl Index {
    /// An index that starts with `buckets` and may grow to `buckets_max`.
    pub fn new(buckets: usize, buckets_max: usize) -> Result<Self, Error> {
        let buckets_max = buckets_max.clamp(1, 1 << 32);
        let buckets = buckets.clamp(1, buckets_max);
        let words: Vec<u64> = zeroed((buckets_max + 1) * SLOTS)?;
        let skip = words.as_ptr().align_offset(CACHE_LINE_BYTES);
        debug_assert!(skip < SLOTS);
        Ok(Self {
            words,
            skip,
            buckets,
            buckets_max,
            base: 1 << buckets.ilog2(),
            sweep_at: 0,
            sweep_credit: 0,
        })
    }

    pub fn buckets(&self) -> usize {
        self.buckets
    }

    /// The bucket of a key.
    #[inline]
    pub fn bucket_of(&self, key: Key<'_>) -> usize {
        let bits = key.bucket_bits();
        let bucket = bits & (2 * self.base - 1);
        if bucket < self.buckets {
            bucket
        } else {
            bits & (self.base - 1)
        }
    }

    #[inline]
    fn bucket(&self, bucket: usize) -> &[u64; SLOTS] {
        let start = self.skip + bucket * SLOTS;
        self.words[start..]
            .first_chunk()
            .unwrap_or(const { &[0; SLOTS] })
    }

    #[inline]
    pub fn slot(&self, bucket: usize, slot: usize) -> Slot {
        Slot(self.bucket(bucket)[slot])
    }

    #[inline]
    pub fn set_slot(&mut self, bucket: usize, slot: usize, to: Slot) {
        self.words[self.skip + bucket * SLOTS + slot] = to.0;
    }

    /// The bucket, slot and position for which `is_it` holds, among the slots of `key`'s bucket with the tag of `key`.
    #[inline]
    pub fn find(
        &self,
        key: Key<'_>,
        mut is_it: impl FnMut(Position) -> bool,
    ) -> Option<(usize, usize, Position)> {
        let bucket = self.bucket_of(key);
        let tag = key.tag();
        for (slot, &word) in self.bucket(bucket).iter().enumerate() {
            let word = Slot(word);
            if word.tag() == tag && is_it(word.position()) {
                return Some((bucket, slot, word.position()));
            }
        }
        None
    }

    /// The slot of `bucket` to write to: an empty one, one whose item is gone, or the one whose item is oldest.
    #[inline]
    pub fn slot_to_fill(&self, bucket: usize, log: &Log) -> usize {
        let mut oldest = 0;
        let mut oldest_recency = usize::MAX;
        for (slot, &word) in self.bucket(bucket).iter().enumerate() {
            if Slot(word) == Slot::EMPTY {
                return slot;
            }
            let recency = log.recency(Slot(word).position());
            if recency < oldest_recency {
                oldest = slot;
                oldest_recency = recency;
            }
        }
        oldest
    }

    /// Split one bucket if there are so many items that full buckets become likely: more items than buckets. Then a
    /// bucket has one to two items on average, and about 1 item in 20,000 meets one that has eight. `key_at` gives
    /// the key of an item that is alive.
    #[inline]
    pub fn grow_for<'l>(&mut self, items: u64, log: &Log, key_at: impl Fn(usize) -> Key<'l>) {
        if items > self.buckets as u64 && self.buckets < self.buckets_max {
            self.split(log, key_at);
        }
    }

    fn split<'l>(&mut self, log: &Log, key_at: impl Fn(usize) -> Key<'l>) {
        let from = self.buckets - self.base;
        let to = self.buckets;
        self.buckets += 1;
        if self.buckets == 2 * self.base {
            self.base = self.buckets;
        }
        for slot in 0..SLOTS {
            let word = self.slot(from, slot);
            if word == Slot::EMPTY {
                continue;
            }
            let alive = log.is_alive(word.position());
            if !alive {
                self.set_slot(from, slot, Slot::EMPTY);
            } else if self.bucket_of(key_at(word.position().offset())) == to {
                self.set_slot(to, slot, word);
                self.set_slot(from, slot, Slot::EMPTY);
            }
        }
    }

    /// Empty slots whose items are gone, so that over one capacity of the log every bucket is looked at.
    /// `written_bytes` is what the log took since the last call.
    #[inline]
    pub fn sweep(&mut self, log: &Log, written_bytes: usize) {
        self.sweep_credit += written_bytes * self.buckets;
        while self.sweep_credit >= log.capacity() {
            self.sweep_credit -= log.capacity();
            if self.sweep_at >= self.buckets {
                self.sweep_at = 0;
            }
            for slot in 0..SLOTS {
                let found = self.slot(self.sweep_at, slot);
                if found != Slot::EMPTY && !log.is_alive(found.position()) {
                    self.set_slot(self.sweep_at, slot, Slot::EMPTY);
                }
            }
            self.sweep_at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hasher;
    use crate::item::Header;

    #[test]
    fn a_key_s_bucket_is_there_at_every_size_and_a_split_moves_it_at_most_once() {
        let hasher = Hasher::new(1);
        let log = Log::new(1 << 12).expect("a small log");
        for start in [1, 3, 8] {
            let mut index = Index::new(start, 100).expect("a small index");
            let names: Vec<_> = (0..200_u32).map(u32::to_le_bytes).collect();
            while index.buckets() < 100 {
                let before: Vec<_> = names
                    .iter()
                    .map(|name| index.bucket_of(hasher.key(name)))
                    .collect();
                let split = index.buckets() - index.base;
                index.split(&log, |_| hasher.key(b""));
                for (name, before) in names.iter().zip(before) {
                    let after = index.bucket_of(hasher.key(name));
                    assert!(after == before || (before == split && after == index.buckets() - 1));
                }
            }
            index.grow_for(u64::MAX, &log, |_| hasher.key(b""));
            assert_eq!(index.buckets(), 100);
        }
    }
    /// Else it would look alive again once the laps, counted modulo 256, came round.
    #[test]
    fn a_slot_whose_item_is_gone_is_empty_two_laps_later() {
        let hasher = Hasher::new(1);
        let mut log = Log::new(1 << 12).expect("a small log");
        let mut index = Index::new(50, 50).expect("a small index");
        let key = hasher.key(b"key");
        let bucket = index.bucket_of(key);
        let first = log.claim(64);
        log.set_header(first.offset(), &ITEM);
        index.set_slot(bucket, 3, Slot::new(key.tag(), first));
        for _ in 0..2 * (1 << 12) / 64 {
            while let Some(offset) = log.oldest_in_the_way(64) {
                log.drop_oldest(log.header(offset).space_bytes);
            }
            let position = log.claim(64);
            log.set_header(position.offset(), &ITEM);
            index.sweep(&log, 64);
            assert!(!log.is_alive(first) || index.slot(bucket, 3).position() == first);
        }
        assert_eq!(index.slot(bucket, 3), Slot::EMPTY);
    }

    const ITEM: Header = Header {
        cas: 1,
        value_bytes: 0,
        space_bytes: 64,
        flags: 0,
        expires_at: 0,
        accessed_at: 0,
        key_bytes: 0,
        marks: crate::Marks::BINARY_KEY,
    };
}
