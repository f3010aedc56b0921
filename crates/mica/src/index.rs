use crate::key::Key;
use crate::sync::{AtomicU64, Ordering::Relaxed, Ordering::Release};
use crate::table::{BUCKET_BYTES, CHAIN_MAX, SLOTS, Slot, Table};
use crate::versions::Versions;
use crate::{Error, Mode};

/// Items for each bucket at which another bucket is made: 9 of 12 slots. Then an item's share of the index is about
/// 8 bytes, and few lookups look at a second cache line.
const ITEMS_PER_BUCKET: u64 = 9;

/// Buckets that a lossy index lets one be continued over, itself included; the last is then full for good.
const LOSSY_CHAIN_MAX: usize = 4;

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

/// The writer's side of a set-associative index: a hash picks a bucket, a tag picks slots of it. A full bucket is
/// continued in a spare one. In cache mode that has an end, where the oldest entry goes (a lossy index); in store mode
/// it goes on as long as there are spares (bulk chaining), and entries [come out](Self::remove) one by one so that all
/// buckets of a chain but the last stay full.
///
/// It grows by linear hashing: buckets are split one at a time, in order, so that it is always as large as the items
/// in it need, and no insert waits for a rehash. Memory for all buckets that there may be is reserved at once; only
/// what is used is ever touched.
pub(crate) struct Index {
    mode: Mode,
    buckets_min: usize,
    /// Spare buckets that were never used begin here.
    fresh_spares: usize,
    /// The first of the spare buckets that are free again, linked by `next`.
    free_spare: Option<usize>,
    spares_in_use: usize,
    /// The bucket that [`sweep`](Self::sweep) looks at next.
    sweep_at: usize,
    /// Bytes written to the log for which buckets were not yet swept.
    sweep_credit: usize,
    /// Entries of a bucket that is being redistributed.
    moving: Vec<(u8, u32)>,
}

impl Index {
    /// Of what was just made.
    pub fn new(mode: Mode, shared: &Shared) -> Self {
        Self {
            mode,
            buckets_min: shared.buckets(),
            fresh_spares: 0,
            free_spare: None,
            spares_in_use: 0,
            sweep_at: 0,
            sweep_credit: 0,
            moving: Vec::with_capacity(LOSSY_CHAIN_MAX * SLOTS),
        }
    }

    /// Size at present.
    pub fn bytes(&self, shared: &Shared) -> usize {
        (shared.buckets() + self.spares_in_use) * BUCKET_BYTES
    }

    /// The slot for a new key of `bucket`: an empty one, one whose item is gone, one of a spare bucket, or at last the
    /// one whose item is oldest. In store mode there may be none.
    #[inline]
    pub fn slot_to_fill(
        &mut self,
        shared: &Shared,
        items: &impl Items,
        bucket: usize,
    ) -> Option<Slot> {
        let mut last = bucket;
        loop {
            let (empty, next) = shared.table.empty_slots(last);
            if empty != 0 {
                return Some(Slot::new(last, empty.trailing_zeros() as usize));
            }
            match next {
                Some(next) => last = next,
                None => break,
            }
        }
        self.crowded(shared, items, bucket, last)
    }

    #[cold]
    fn crowded(
        &mut self,
        shared: &Shared,
        items: &impl Items,
        bucket: usize,
        last: usize,
    ) -> Option<Slot> {
        let table = &shared.table;
        if let Some(gone) = table
            .filled(bucket)
            .find(|&slot| !items.is_alive(table.position(slot)))
        {
            return Some(gone);
        }
        let chain = table.filled(bucket).count() / SLOTS;
        let chain_max = match self.mode {
            Mode::Cache => LOSSY_CHAIN_MAX,
            Mode::Store => CHAIN_MAX,
        };
        if chain < chain_max
            && let Some(spare) = self.take_spare(table)
        {
            table.set_next(last, Some(spare));
            return Some(Slot::new(spare, 0));
        }
        if self.mode == Mode::Store {
            return None;
        }
        let oldest = table
            .filled(bucket)
            .min_by_key(|&slot| items.recency(table.position(slot)));
        Some(oldest.unwrap_or(Slot::new(bucket, 0)))
    }

    fn take_spare(&mut self, table: &Table) -> Option<usize> {
        let spare = match self.free_spare {
            Some(spare) => {
                self.free_spare = table.empty_slots(spare).1;
                table.set_next(spare, None);
                spare
            }
            None if self.fresh_spares < table.spares() => {
                let spare = table.buckets_max() + self.fresh_spares;
                self.fresh_spares += 1;
                table.reset(spare);
                spare
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
            self.free_spare(table, spare);
        }
    }

    fn free_spare(&mut self, table: &Table, spare: usize) {
        table.set_next(spare, self.free_spare);
        self.free_spare = Some(spare);
        self.spares_in_use -= 1;
    }

    /// Take an entry of `bucket` out, in store mode: one of the chain's last bucket takes its slot, and a spare bucket
    /// that is empty then is free again.
    pub fn remove(&mut self, shared: &Shared, bucket: usize, slot: Slot) {
        let table = &shared.table;
        let _writing = shared.versions.write(bucket);
        table.clear(slot);
        let (mut before, mut last) = (None, bucket);
        while let Some(next) = table.empty_slots(last).1 {
            (before, last) = (Some(last), next);
        }
        let others = table.filled_slots(last);
        if last != slot.bucket() && others != 0 {
            let other = Slot::new(last, others.trailing_zeros() as usize);
            table.set(slot, table.tag(other), table.position(other));
            table.clear(other);
        }
        if let Some(before) = before
            && table.filled_slots(last) == 0
        {
            table.set_next(before, None);
            self.free_spare(table, last);
        }
    }

    /// Forget every entry and be as small as at first. Buckets that are made later are made empty.
    pub fn reset(&mut self, shared: &Shared) {
        shared
            .size
            .store(size_of_buckets(self.buckets_min), Release);
        for bucket in 0..self.buckets_min {
            shared.table.reset(bucket);
        }
        self.fresh_spares = 0;
        self.free_spare = None;
        self.spares_in_use = 0;
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
        table.reset(to);
        shared.size.store(size_of_buckets(buckets + 1), Release);
        self.redistribute(shared, items, from);
    }

    /// Take every entry out of `bucket` and put those whose items are alive into the bucket they now belong to.
    fn redistribute(&mut self, shared: &Shared, items: &impl Items, bucket: usize) {
        let table = &shared.table;
        let mut entries = std::mem::take(&mut self.moving);
        for slot in table.filled(bucket) {
            let position = table.position(slot);
            if items.is_alive(position) {
                entries.push((table.tag(slot), position));
            }
            table.clear(slot);
        }
        self.free_spares(table, bucket);
        for (tag, position) in entries.drain(..) {
            let home = shared.bucket_of(items.key_at(position));
            // Spares that were enough before still are, as a split makes another bucket.
            if let Some(slot) = self.slot_to_fill(shared, items, home) {
                table.set(slot, tag, position);
            }
        }
        self.moving = entries;
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
mod tests;
