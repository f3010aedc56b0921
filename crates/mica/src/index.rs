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
pub(crate) struct Index {
    words: Vec<u64>,
    /// Words in front of the first cache line that `words` holds whole.
    skip: usize,
    buckets: usize,
    /// The bucket that [`sweep`](Self::sweep) looks at next.
    sweep_at: usize,
    /// Bytes written to the log for which buckets were not yet swept.
    sweep_credit: usize,
}

impl Index {
    pub fn new(buckets: usize) -> Result<Self, Error> {
        let buckets = buckets.clamp(1, 1 << 32);
        let words: Vec<u64> = zeroed((buckets + 1) * SLOTS)?;
        let skip = words.as_ptr().align_offset(CACHE_LINE_BYTES);
        debug_assert!(skip < SLOTS);
        Ok(Self {
            words,
            skip,
            buckets,
            sweep_at: 0,
            sweep_credit: 0,
        })
    }

    pub fn buckets(&self) -> usize {
        self.buckets
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

    /// The slot for which `is_it` holds, among those of `key`'s bucket whose tag is that of `key`.
    #[inline]
    pub fn find(
        &self,
        key: Key<'_>,
        mut is_it: impl FnMut(Position) -> bool,
    ) -> Option<(usize, usize, Position)> {
        let bucket = key.bucket(self.buckets);
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

    /// Empty slots whose items are gone, so that over one capacity of the log every bucket is looked at. `written_bytes`
    /// is what the log took since the last call.
    #[inline]
    pub fn sweep(&mut self, log: &Log, written_bytes: usize) {
        let bytes_per_bucket = (log.capacity() / self.buckets).max(1);
        let rounds_per_step = self.buckets.div_ceil(log.capacity());
        self.sweep_credit += written_bytes;
        while self.sweep_credit >= bytes_per_bucket {
            self.sweep_credit -= bytes_per_bucket;
            for _ in 0..rounds_per_step {
                for slot in 0..SLOTS {
                    let found = self.slot(self.sweep_at, slot);
                    if found != Slot::EMPTY && !log.is_alive(found.position()) {
                        self.set_slot(self.sweep_at, slot, Slot::EMPTY);
                    }
                }
                self.sweep_at += 1;
                if self.sweep_at == self.buckets {
                    self.sweep_at = 0;
                }
            }
        }
    }
}
