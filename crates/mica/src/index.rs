use crate::Error;
use crate::key::Key;
use crate::table::{BUCKET_BYTES, CHAIN_MAX, SLOTS, Slot, Table};
use crate::versions::Versions;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

/// Items for each bucket at which another bucket is made: 9 of 12 slots. Then an item's share of the index is about
/// 8 bytes, and few lookups look at a second cache line.
const ITEMS_PER_BUCKET: u64 = 9;

/// From so many buckets on (4 MiB of them) huge pages cost little memory and save much time.
const HUGE_BUCKETS: usize = (4 << 20) / BUCKET_BYTES;

/// What readers share with the writer.
pub(crate) struct Shared {
    pub table: Table,
    /// How many buckets there are, and above that the mask of [`bucket_of`], so that both change at once.
    size: AtomicU64,
    pub versions: Versions,
}

impl Shared {
    pub fn new(buckets: usize, buckets_max: usize, has_readers: bool) -> Result<Self, Error> {
        let buckets_max = buckets_max.clamp(1, 1 << 31);
        let buckets = buckets.clamp(1, buckets_max);
        let table = Table::new(buckets_max)?;
        if buckets > HUGE_BUCKETS {
            table.use_huge_pages();
        }
        Ok(Self {
            table,
            size: AtomicU64::new(size_of_buckets(buckets)),
            versions: if has_readers {
                Versions::new()
            } else {
                Versions::unread()
            },
        })
    }

    /// The bucket of a key.
    #[inline]
    pub fn bucket_of(&self, key: Key<'_>) -> usize {
        bucket_of(key, self.size.load(Relaxed))
    }

    /// How many buckets there are.
    #[inline]
    pub fn buckets(&self) -> usize {
        self.size.load(Relaxed) as u32 as usize
    }
}

/// `buckets`, and all bits below the largest power of two that is not above it.
fn size_of_buckets(buckets: usize) -> u64 {
    let mask = (1_u64 << buckets.ilog2()) - 1;
    mask << 32 | buckets as u64
}

/// By linear hashing (Litwin, VLDB 1980): as many bits of the hash as there are buckets for.
#[inline]
fn bucket_of(key: Key<'_>, size: u64) -> usize {
    let (buckets, mask) = (size as u32 as usize, (size >> 32) as usize);
    let bucket = key.bucket_bits() & (mask << 1 | 1);
    if bucket < buckets {
        bucket
    } else {
        bucket & mask
    }
}

/// What an index asks of the log.
pub(crate) trait Items {
    /// Whether the item at `position` is still there.
    fn is_alive(&self, position: u32) -> bool;
    /// Larger for what was written later, among those that are alive.
    fn recency(&self, position: u32) -> u64;
    /// The key of an item that is alive.
    fn key_at(&self, position: u32) -> Key<'_>;
    /// Have it fetched.
    fn prefetch(&self, position: u32);
}

/// The writer's side of a lossy set-associative index: a hash picks a bucket, a tag picks slots of it. A full bucket is
/// continued in a spare one, up to a point; beyond it, or without spares, the oldest entry goes.
///
/// It grows by linear hashing: buckets are split one at a time, in order, so that it is always as large as the items
/// in it need, and no insert waits for a rehash. Memory for all buckets that there may be is reserved at once; only
/// what is used is ever touched.
pub(crate) struct Index {
    /// Spare buckets that were never used begin here.
    fresh_spares: usize,
    /// The first of the spare buckets that are free again, linked by `next`.
    free_spare: Option<usize>,
    spares_in_use: usize,
    /// The bucket that [`sweep`](Self::sweep) looks at next.
    sweep_at: usize,
    /// Bytes written to the log for which buckets were not yet swept.
    sweep_credit: usize,
}

impl Index {
    pub fn new() -> Self {
        Self {
            fresh_spares: 0,
            free_spare: None,
            spares_in_use: 0,
            sweep_at: 0,
            sweep_credit: 0,
        }
    }

    /// Size at present.
    pub fn bytes(&self, shared: &Shared) -> usize {
        (shared.buckets() + self.spares_in_use) * BUCKET_BYTES
    }

    /// The slot for a new key of `bucket`: an empty one, one whose item is gone, one of a spare bucket, or at last the
    /// one whose item is oldest.
    #[inline]
    pub fn slot_to_fill(&mut self, shared: &Shared, items: &impl Items, bucket: usize) -> Slot {
        let mut last = bucket;
        for _ in 0..CHAIN_MAX {
            let (empty, next) = shared.table.empty_slots(last);
            if empty != 0 {
                return Slot::new(last, empty.trailing_zeros() as usize);
            }
            match next {
                Some(next) => last = next,
                None => break,
            }
        }
        self.crowded(shared, items, bucket, last)
    }

    #[cold]
    fn crowded(&mut self, shared: &Shared, items: &impl Items, bucket: usize, last: usize) -> Slot {
        let table = &shared.table;
        if let Some(gone) = table
            .filled(bucket)
            .find(|&slot| !items.is_alive(table.position(slot)))
        {
            return gone;
        }
        let chain = table.filled(bucket).count() / SLOTS;
        if chain < CHAIN_MAX
            && let Some(spare) = self.take_spare(table)
        {
            table.set_next(last, Some(spare));
            return Slot::new(spare, 0);
        }
        let oldest = table
            .filled(bucket)
            .min_by_key(|&slot| items.recency(table.position(slot)));
        oldest.unwrap_or(Slot::new(bucket, 0))
    }

    fn take_spare(&mut self, table: &Table) -> Option<usize> {
        let spare = match self.free_spare {
            Some(spare) => {
                self.free_spare = table.empty_slots(spare).1;
                table.set_next(spare, None);
                spare
            }
            None if self.fresh_spares < table.spares() => {
                self.fresh_spares += 1;
                table.buckets_max() + self.fresh_spares - 1
            }
            None => return None,
        };
        self.spares_in_use += 1;
        Some(spare)
    }

    /// Take the spare buckets out of the chain of `bucket`; they must be empty.
    fn free_spares(&mut self, table: &Table, bucket: usize) {
        let mut next = table.empty_slots(bucket).1;
        table.set_next(bucket, None);
        while let Some(spare) = next {
            next = table.empty_slots(spare).1;
            table.set_next(spare, self.free_spare);
            self.free_spare = Some(spare);
            self.spares_in_use -= 1;
        }
    }

    /// Split one bucket if there are so many items that many buckets are full.
    #[inline]
    pub fn grow_for(&mut self, shared: &Shared, items: u64, log: &impl Items) {
        let buckets = shared.buckets();
        if items > buckets as u64 * ITEMS_PER_BUCKET && buckets < shared.table.buckets_max() {
            self.split(shared, log);
        }
    }

    fn split(&mut self, shared: &Shared, items: &impl Items) {
        let buckets = shared.buckets();
        if buckets == HUGE_BUCKETS {
            shared.table.use_huge_pages();
        }
        let base = 1 << buckets.ilog2();
        let (from, to) = (buckets - base, buckets);
        let table = &shared.table;
        // All of these lie anywhere: have them fetched together.
        for slot in table.filled(from) {
            items.prefetch(table.position(slot));
        }
        let _writing = shared.versions.write_two(from, to);
        shared.size.store(size_of_buckets(buckets + 1), Release);
        self.redistribute(shared, items, from);
    }

    /// Take every entry out of `bucket` and put those whose items are alive into the bucket they now belong to.
    fn redistribute(&mut self, shared: &Shared, items: &impl Items, bucket: usize) {
        let table = &shared.table;
        let mut entries = [(0_u8, 0_u32); CHAIN_MAX * SLOTS];
        let mut count = 0;
        for slot in table.filled(bucket) {
            let position = table.position(slot);
            if items.is_alive(position) && count < entries.len() {
                entries[count] = (table.tag(slot), position);
                count += 1;
            }
            table.clear(slot);
        }
        self.free_spares(table, bucket);
        for &(tag, position) in &entries[..count] {
            let home = shared.bucket_of(items.key_at(position));
            let slot = self.slot_to_fill(shared, items, home);
            table.set(slot, tag, position);
        }
    }

    /// Empty slots whose items are gone, a bucket at a time, so that about all were looked at when the log has taken
    /// `lap_bytes`. `written_bytes` is what it took since the last call.
    #[inline]
    pub fn sweep(
        &mut self,
        shared: &Shared,
        items: &impl Items,
        written_bytes: usize,
        lap_bytes: usize,
    ) {
        let buckets = shared.buckets();
        self.sweep_credit += written_bytes * buckets;
        while self.sweep_credit >= lap_bytes && self.sweep_at < buckets {
            self.sweep_credit -= lap_bytes;
            self.sweep_bucket(shared, items, self.sweep_at);
            self.sweep_at += 1;
        }
    }

    /// The log begins another lap: sweep what is left, which is little unless the index grew fast. So no slot is ever
    /// two laps older than its item, and two bits of the lap tell them apart.
    #[cold]
    pub fn finish_sweep(&mut self, shared: &Shared, items: &impl Items) {
        for bucket in self.sweep_at..shared.buckets() {
            self.sweep_bucket(shared, items, bucket);
        }
        self.sweep_at = 0;
        self.sweep_credit = 0;
    }

    fn sweep_bucket(&mut self, shared: &Shared, items: &impl Items, bucket: usize) {
        let table = &shared.table;
        let (mut gone, mut kept) = (0, 0);
        for slot in table.filled(bucket) {
            if items.is_alive(table.position(slot)) {
                kept += 1;
            } else {
                gone += 1;
                table.clear(slot);
            }
        }
        if gone > 0 && kept <= SLOTS && table.empty_slots(bucket).1.is_some() {
            let _writing = shared.versions.write(bucket);
            self.redistribute(shared, items, bucket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hasher;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A log whose items' positions are their keys' numbers.
    struct Numbers {
        hasher: Hasher,
        names: Vec<[u8; 4]>,
        oldest: u32,
    }

    impl Numbers {
        fn new(count: u32) -> Self {
            Self {
                hasher: Hasher::new(1),
                names: (0..count).map(u32::to_le_bytes).collect(),
                oldest: 0,
            }
        }
    }

    impl Items for Numbers {
        fn is_alive(&self, position: u32) -> bool {
            position >= self.oldest
        }
        fn recency(&self, position: u32) -> u64 {
            u64::from(position)
        }
        fn key_at(&self, position: u32) -> Key<'_> {
            self.hasher.key(&self.names[position as usize])
        }
        fn prefetch(&self, _position: u32) {}
    }

    #[test]
    fn a_key_s_bucket_is_there_at_every_size_and_a_split_moves_it_at_most_once() {
        let items = Numbers::new(300);
        let keys = || (0..300).map(|number| items.key_at(number));
        for buckets in 1..200_usize {
            let split = buckets - (1 << buckets.ilog2());
            for key in keys() {
                let of = |buckets| bucket_of(key, size_of_buckets(buckets));
                let (before, after) = (of(buckets), of(buckets + 1));
                assert!(before < buckets);
                assert!(after == before || (before == split && after == buckets));
            }
        }
    }

    proptest! {
        /// Whatever is inserted is found until the log drops it or a full chain does, and spare buckets come back.
        #[test]
        fn an_index_against_a_map(
            steps in prop::collection::vec((0..4_u8, 1..60_u32), 1..60),
            start in 1..4_usize,
            buckets_max in 1..24_usize,
        ) {
            let mut items = Numbers::new(4000);
            let shared = Shared::new(start, buckets_max, true).expect("a small index");
            let mut index = Index::new();
            let mut model = BTreeMap::new();
            let mut next = 0_u32;
            for (kind, amount) in steps {
                if kind == 0 {
                    items.oldest = next.min(items.oldest + amount);
                    model.retain(|&position, ()| position >= items.oldest);
                    index.sweep(&shared, &items, amount as usize, 100);
                    continue;
                }
                for _ in 0..amount {
                    index.grow_for(&shared, model.len() as u64, &items);
                    let key = items.key_at(next);
                    let bucket = shared.bucket_of(key);
                    let slot = index.slot_to_fill(&shared, &items, bucket);
                    if shared.table.tag(slot) != 0 {
                        model.remove(&shared.table.position(slot));
                    }
                    shared.table.set(slot, key.tag(), next);
                    model.insert(next, ());
                    next += 1;
                }
            }
            for (&position, ()) in &model {
                let key = items.key_at(position);
                let mut candidates = shared.table.candidates(shared.bucket_of(key), key.tag());
                let found = candidates.find(|&(_, at)| at == position);
                prop_assert!(found.is_some(), "{} of {:?}", position, model.len());
            }
            items.oldest = next;
            // The first ends a sweep that began while they were alive.
            index.finish_sweep(&shared, &items);
            index.finish_sweep(&shared, &items);
            prop_assert_eq!(index.spares_in_use, 0);
            for bucket in 0..shared.buckets() {
                prop_assert_eq!(shared.table.filled(bucket).count(), 0);
            }
        }
    }
}
