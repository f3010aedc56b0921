//! Structures by others, asked for the same as the partitions: a hash table and a trie of B+-trees, which all cores read and
//! write. They hold what they are given and nothing else: no item is evicted, none ends, and no read is noted.

use crate::draw::{Request, value_of};
use std::hint::black_box;
use std::sync::Arc;

/// As one core works on it.
pub(crate) struct Shared<S>(pub(crate) Arc<S>);

/// What can be compared with partitions.
pub(crate) trait Structure {
    /// Do what is asked under one guard, and check what is read. Returns how many lookups found nothing.
    fn carry_out(&self, burst: &[Request]) -> u64;

    /// Items that it holds.
    fn len(&self) -> u64;
}

impl<S: Structure> Shared<S> {
    /// Holding `items` items, for so many cores.
    pub(crate) fn filled(structure: S, items: u64, cores: usize) -> Vec<Self> {
        // Not in the order of their keys, which would leave the leaves of a tree half full.
        let stride = (items / 8 * 5..).find(|&step| greatest_common_divisor(step, items) == 1);
        for number in 0..items {
            let id = number * stride.unwrap_or(1) % items;
            structure.carry_out(&[Request { id, is_set: true }]);
        }
        let structure = Arc::new(structure);
        (0..cores).map(|_| Self(Arc::clone(&structure))).collect()
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Do what is asked, and check what is read. Returns how many lookups found nothing.
#[inline]
fn each(
    burst: &[Request],
    get: impl Fn([u8; 8]) -> Option<[u8; 8]>,
    set: impl Fn([u8; 8], [u8; 8]),
) -> u64 {
    let mut missed = 0;
    for &Request { id, is_set } in burst {
        let key = id.to_le_bytes();
        if is_set {
            set(key, value_of(id));
        } else if let Some(value) = get(key) {
            assert!(black_box(value) == value_of(id), "the value of another key");
        } else {
            missed += 1;
        }
    }
    missed
}

/// A hash table by open addressing: readers take no lock, every item is an allocation of its own.
pub(crate) struct Papaya(papaya::HashMap<[u8; 8], [u8; 8], foldhash::fast::FixedState>);

impl Papaya {
    /// With a place for each of `items`, so that it need not grow.
    pub(crate) fn new(items: u64) -> Self {
        let hasher = foldhash::fast::FixedState::with_seed(1);
        Self(papaya::HashMap::with_capacity_and_hasher(
            items as usize,
            hasher,
        ))
    }
}

impl Structure for Papaya {
    fn carry_out(&self, burst: &[Request]) -> u64 {
        let map = self.0.pin();
        let set = |key, value| _ = map.insert(key, value);
        each(burst, |key| map.get(&key).copied(), set)
    }

    fn len(&self) -> u64 {
        self.0.len() as u64
    }
}

/// An independent implementation of Masstree (EuroSys'12): readers take no lock, values lie in the leaves.
pub(crate) struct Masstree(masstree::MassTree15Inline<u64>);

impl Masstree {
    pub(crate) fn new() -> Self {
        Self(masstree::MassTree15Inline::new())
    }
}

impl Structure for Masstree {
    fn carry_out(&self, burst: &[Request]) -> u64 {
        let guard = self.0.guard();
        let get = |key: [u8; 8]| self.0.get_with_guard(&key, &guard).map(u64::to_le_bytes);
        each(burst, get, |key, value| {
            self.0
                .insert_with_guard(&key, u64::from_le_bytes(value), &guard);
        })
    }

    fn len(&self) -> u64 {
        self.0.len() as u64
    }
}

#[cfg(test)]
mod tests;
