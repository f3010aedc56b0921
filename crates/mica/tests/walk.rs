//! A walk meets what lookups find, and nothing else; in cache mode in the order in which it was written.

use mica::{Config, Contents, Entry, Error, Hasher, Marks, Mode, Partition};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
enum Step {
    Set {
        key: u16,
        bytes: usize,
        expires_in: u32,
        flags: u32,
        cas: u64,
    },
    Get(u16),
    Touch(u16, u32),
    Join(u16, usize),
    Edit(u16),
    Delete(u16),
    Flush,
    FlushIn(u32),
    Wait,
}

fn modes() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Cache), Just(Mode::Store)]
}

fn steps(keys: u16) -> impl Strategy<Value = Vec<Step>> {
    let key = move || 0..keys;
    let seconds = || prop_oneof![3 => Just(0_u32), 1 => 1..5_u32];
    let rare = || prop_oneof![4 => Just(0_u32), 1 => any::<u32>()];
    let set = (key(), 0..200_usize, seconds(), rare(), rare());
    let one = prop_oneof![
        8 => set.prop_map(|(key, bytes, expires_in, flags, cas)| Step::Set {
            key, bytes, expires_in, flags, cas: cas.into(),
        }),
        6 => key().prop_map(Step::Get),
        1 => (key(), seconds()).prop_map(|(key, seconds)| Step::Touch(key, seconds)),
        1 => (key(), 0..40_usize).prop_map(|(key, bytes)| Step::Join(key, bytes)),
        1 => key().prop_map(Step::Edit),
        2 => key().prop_map(Step::Delete),
        1 => Just(Step::Wait),
    ];
    let one =
        prop_oneof![200 => one, 1 => Just(Step::Flush), 1 => (1..4_u32).prop_map(Step::FlushIn)];
    prop::collection::vec(one, 1..500)
}

/// What is known of an item: value, flags, second of expiry, CAS number, marks, and second of the last hit.
type Known = (Vec<u8>, u32, u32, u64, Marks, u32);

fn met(partition: &Partition, now: u32) -> Vec<(Vec<u8>, Known, u64)> {
    let mut met = Vec::new();
    partition.for_each_live(now, |live| {
        let item = live.item;
        let known = (
            item.value.to_vec(),
            item.flags,
            item.expires_at,
            item.cas,
            item.marks,
            item.accessed_at,
        );
        met.push((live.key.to_vec(), known, live.own_cas));
    });
    met
}

proptest! {
    #[test]
    fn a_walk_meets_what_lookups_find(
        log_bytes in 600..6000_usize,
        mode in modes(),
        has_readers: bool,
        buckets_max in prop_oneof![Just(1_usize), Just(64_usize)],
        steps in steps(60),
    ) {
        let hasher = Hasher::new(3);
        let config = Config { mode, buckets_max, buckets_min: 1, has_readers, ..Config::for_log_bytes(log_bytes) };
        let mut partition = Partition::new(config, hasher.clone()).expect("a small partition");
        let mut now = 5;
        for step in steps {
            let with_key = |key: u16| key.to_le_bytes();
            match step {
                Step::Set { key, bytes, expires_in, flags, cas } => {
                    let expires_at = if expires_in == 0 { 0 } else { now + expires_in };
                    let contents = Contents { value: &vec![key as u8; bytes], flags, expires_at, cas, ..Contents::default() };
                    // Some are too large, or there is no room.
                    _ = partition.set(hasher.key(&with_key(key)), now, &contents);
                }
                Step::Get(key) => _ = partition.get(hasher.key(&with_key(key)), now),
                Step::Touch(key, seconds) => {
                    if let Entry::Occupied(mut entry) = partition.entry(hasher.key(&with_key(key)), now) {
                        entry.set_expires_at(if seconds == 0 { 0 } else { now + seconds });
                    }
                }
                Step::Join(key, bytes) => {
                    if let Entry::Occupied(entry) = partition.entry(hasher.key(&with_key(key)), now) {
                        _ = entry.join(&vec![1; bytes], &[2], 0);
                    }
                }
                Step::Edit(key) => {
                    if let Entry::Occupied(mut entry) = partition.entry(hasher.key(&with_key(key)), now) {
                        entry.edit(|value| value.fill(9));
                    }
                }
                Step::Delete(key) => {
                    if let Entry::Occupied(entry) = partition.entry(hasher.key(&with_key(key)), now) {
                        entry.remove();
                    }
                }
                Step::Flush => partition.flush(),
                Step::FlushIn(seconds) => partition.flush_at(now + seconds, now),
                Step::Wait => now += 1,
            }
        }
        let before = partition.statistics();
        let met = met(&partition, now);
        prop_assert_eq!(partition.statistics(), before);
        let by_place: Vec<u64> = met.iter().filter(|(_, _, own)| *own == 0).map(|(_, known, _)| known.3).collect();
        prop_assert!(by_place.is_sorted_by(|one, next| one < next), "{by_place:?}");
        prop_assert!(by_place.iter().all(|&cas| cas <= partition.last_cas()));
        prop_assert!(met.iter().all(|(_, known, own)| *own == 0 || *own == known.3));
        let count = met.len();
        let mut met: BTreeMap<_, _> = met.into_iter().map(|(key, known, _)| (key, known)).collect();
        prop_assert_eq!(met.len(), count, "a key was met twice");
        for key in 0..60_u16 {
            let key = key.to_le_bytes();
            let found = match partition.entry(hasher.key(&key), now) {
                Entry::Occupied(entry) => {
                    let item = entry.item();
                    Some((item.value.to_vec(), item.flags, item.expires_at, item.cas, item.marks, item.accessed_at))
                }
                Entry::Vacant(_) => None,
            };
            prop_assert_eq!(met.remove(&key[..]), found);
        }
        prop_assert!(met.is_empty());
    }

    /// Numbers given by a partition that follows another are larger than all that the other gave.
    #[test]
    fn numbers_go_on(mode in modes(), log_bytes in 600..3000_usize, sets in 0..400_u32, more in 1..400_u32) {
        let hasher = Hasher::new(3);
        let mut last = 0;
        let mut known = 0;
        for sets in [sets, more, more] {
            let config = Config { mode, ..Config::for_log_bytes(log_bytes) };
            let mut partition = Partition::new(config, hasher.clone()).expect("small");
            partition.number_after(last);
            for number in 0..sets {
                let name = (number % 40).to_le_bytes();
                let key = hasher.key(&name);
                let cas = match partition.set(key, 1, &Contents::of(&vec![0; number as usize % 90])) {
                    Ok(cas) => cas,
                    Err(Error::Full { .. }) if mode == Mode::Store => continue,
                    Err(error) => panic!("{error}"),
                };
                prop_assert!(cas > last);
                prop_assert_eq!(partition.get(key, 1).map(|item| item.cas), Some(cas));
                known = known.max(cas);
            }
            prop_assert!(known <= partition.last_cas().max(last));
            last = partition.last_cas();
            if sets > 0 {
                // Too late.
                partition.number_after(u64::MAX);
                prop_assert_eq!(partition.last_cas(), last);
            }
        }
    }
}

#[test]
fn a_flush_to_come_is_told() {
    let hasher = Hasher::new(1);
    let mut partition = Partition::new(Config::for_log_bytes(4096), hasher.clone()).expect("small");
    assert_eq!(partition.flush_due(), None);
    partition
        .set(hasher.key(b"a"), 1, &Contents::of(b"1"))
        .expect("it fits");
    partition.flush_at(9, 1);
    assert_eq!(partition.flush_due(), Some(9));
    assert_eq!(met(&partition, 8).len(), 1);
    assert_eq!(met(&partition, 9).len(), 0);
}
