//! Walking over all items, share by share.

use mica::{Config, Contents, Entry, Hasher, Partition};
use proptest::prelude::*;
use std::collections::HashMap;

const NOW: u32 = 10;

fn name_of(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

fn store(partition: &mut Partition, hasher: &Hasher, number: u32, contents: Contents<'_>) {
    let name = name_of(number);
    let entry = partition.entry(hasher.key(&name), NOW);
    entry.set(contents).expect("it is small");
}

/// How often each key is met in all shares. Between two of them `meanwhile` may do something.
fn walk(
    partition: &mut Partition,
    shares: u32,
    now: u32,
    mut meanwhile: impl FnMut(&mut Partition),
) -> HashMap<u32, u32> {
    let mut met = HashMap::new();
    for share in 0..shares {
        partition.for_each_of_share((share, shares), now, |key, item| {
            let number = u32::from_le_bytes(key.bytes().try_into().expect("four bytes"));
            assert_eq!(item.value, number.to_be_bytes(), "another key's value");
            *met.entry(number).or_default() += 1;
        });
        meanwhile(partition);
    }
    met
}

proptest! {
    /// However many buckets there are for however many shares, and however the index grows on the way, each item that
    /// is there from beginning to end is met once.
    #[test]
    fn what_stays_is_met_once(
        before in 0..600_u32,
        more in 0..40_u32,
        shares in (0..11_u32).prop_map(|power| 1 << power),
    ) {
        let hasher = Hasher::new(3);
        let mut partition = Partition::new(Config::for_log_bytes(1 << 20), hasher.clone()).expect("room");
        for number in 0..before {
            store(&mut partition, &hasher, number, Contents::of(&number.to_be_bytes()));
        }
        let mut next = before;
        let met = walk(&mut partition, shares, NOW, |partition| {
            for number in next..next + more {
                store(partition, &hasher, number, Contents::of(&number.to_be_bytes()));
            }
            next += more;
        });
        for number in 0..before {
            prop_assert_eq!(met.get(&number), Some(&1), "{} of {}", number, before);
        }
        prop_assert!(met.values().all(|&times| times == 1));
    }

    /// What the log overwrote, what was removed and what has expired is not met; all else is.
    #[test]
    fn what_a_lookup_finds_is_what_is_met(
        numbers in prop::collection::vec((0..400_u32, 0..4_u8), 0..2000),
        shares in (0..11_u32).prop_map(|power| 1 << power),
    ) {
        let hasher = Hasher::new(3);
        let mut partition = Partition::new(Config::for_log_bytes(4096), hasher.clone()).expect("room");
        for (number, kind) in numbers {
            let value = number.to_be_bytes();
            let contents = Contents { expires_at: if kind == 1 { NOW + 5 } else { 0 }, ..Contents::of(&value) };
            if kind > 0 {
                store(&mut partition, &hasher, number, contents);
            } else if let Entry::Occupied(entry) = partition.entry(hasher.key(&name_of(number)), NOW) {
                entry.remove();
            }
        }
        let later = NOW + 5;
        let met = walk(&mut partition, shares, later, |_| {});
        for number in 0..400 {
            let name = name_of(number);
            // Which, unlike a hit, moves nothing.
            let found = matches!(partition.entry(hasher.key(&name), later), Entry::Occupied(_));
            prop_assert_eq!(met.get(&number).copied(), found.then_some(1), "{}", number);
        }
    }
}

#[test]
fn nothing_is_met_after_a_flush() {
    let hasher = Hasher::new(3);
    let mut partition =
        Partition::new(Config::for_log_bytes(1 << 20), hasher.clone()).expect("room");
    store(&mut partition, &hasher, 1, Contents::of(&[0, 0, 0, 1]));
    partition.flush_at(NOW + 1, NOW);
    assert_eq!(walk(&mut partition, 16, NOW, |_| {}).len(), 1);
    assert_eq!(walk(&mut partition, 16, NOW + 1, |_| {}).len(), 0);
    store(&mut partition, &hasher, 2, Contents::of(&[0, 0, 0, 2]));
    assert_eq!(walk(&mut partition, 16, NOW + 1, |_| {}).len(), 1);
}

#[test]
fn the_oldest_item_tells_its_age() {
    let hasher = Hasher::new(3);
    let mut partition =
        Partition::new(Config::for_log_bytes(1 << 20), hasher.clone()).expect("room");
    assert_eq!(partition.oldest_age_seconds(NOW), None);
    store(&mut partition, &hasher, 1, Contents::of(b"x"));
    assert_eq!(partition.oldest_age_seconds(NOW), Some(0));
    assert_eq!(partition.oldest_age_seconds(NOW + 7), Some(7));
    partition.get(hasher.key(&name_of(1)), NOW + 7);
    assert_eq!(partition.oldest_age_seconds(NOW + 9), Some(2));
}
