use super::*;
use crate::Hasher;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

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

/// Where the entry of the item at `position` is.
fn slot_of(shared: &Shared, items: &Numbers, position: u32) -> Option<Slot> {
    let key = items.key_at(position);
    shared
        .table
        .slot_of(shared.bucket_of(key), key.tag(), position)
}

proptest! {
    /// Nothing that is inserted is lost, nothing is refused while there is a spare bucket, and all of those come
    /// back.
    #[test]
    fn a_lossless_index_against_a_set(
        steps in prop::collection::vec((0..6_u8, 1..120_u32, any::<u32>()), 1..60),
        start in 1..4_usize,
        buckets_max in 1..24_usize,
    ) {
        let items = Numbers::new(8000);
        let shared = Shared::new(start, buckets_max, true).expect("a small index");
        let mut index = Index::new(Mode::Store, &shared);
        let mut model = BTreeSet::new();
        let mut next = 0_u32;
        for (kind, amount, from) in steps {
            match kind {
                0..3 => for _ in 0..amount {
                    index.grow_for(&shared, model.len() as u64, &items);
                    let key = items.key_at(next);
                    match index.slot_to_fill(&shared, &items, shared.bucket_of(key)) {
                        Some(slot) => {
                            prop_assert_eq!(shared.table.tag(slot), 0);
                            shared.table.set(slot, key.tag(), next);
                            model.insert(next);
                        }
                        None => prop_assert_eq!(index.spares_in_use, shared.table.spares()),
                    }
                    next += 1;
                },
                3..5 => for _ in 0..amount {
                    let chosen = model.range(from % next.max(1)..).next().copied();
                    if let Some(position) = chosen {
                        let slot = slot_of(&shared, &items, position).expect("it was inserted");
                        let bucket = shared.bucket_of(items.key_at(position));
                        index.remove(&shared, bucket, slot);
                        model.remove(&position);
                    }
                },
                _ if from % 8 == 0 => {
                    index.reset(&shared);
                    model.clear();
                }
                _ => {}
            }
            let chains = (0..shared.buckets()).map(|bucket| shared.table.filled(bucket).count());
            let (mut entries, mut spares) = (0, 0);
            for count in chains {
                entries += count;
                spares += count.saturating_sub(1) / SLOTS;
            }
            prop_assert_eq!(entries, model.len());
            prop_assert_eq!(spares, index.spares_in_use);
            for &position in &model {
                prop_assert!(slot_of(&shared, &items, position).is_some(), "{} of {:?}", position, model.len());
            }
        }
    }

    /// Whatever is inserted is found until the log drops it or a full chain does, and spare buckets come back.
    #[test]
    fn an_index_against_a_map(
        steps in prop::collection::vec((0..4_u8, 1..60_u32), 1..60),
        start in 1..4_usize,
        buckets_max in 1..24_usize,
    ) {
        let mut items = Numbers::new(4000);
        let shared = Shared::new(start, buckets_max, true).expect("a small index");
        let mut index = Index::new(Mode::Cache, &shared);
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
                let slot = index.slot_to_fill(&shared, &items, bucket).expect("the oldest, at worst");
                if shared.table.tag(slot) != 0 {
                    model.remove(&shared.table.position(slot));
                }
                shared.table.set(slot, key.tag(), next);
                model.insert(next, ());
                next += 1;
            }
        }
        for (&position, ()) in &model {
            prop_assert!(slot_of(&shared, &items, position).is_some(), "{} of {:?}", position, model.len());
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
