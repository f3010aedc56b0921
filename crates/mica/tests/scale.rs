//! Behaviour that shows only over many items or many laps of the log.

use mica::{Config, Contents, Entry, Hasher, Partition};

#[test]
fn with_room_for_all_items_next_to_none_are_lost() {
    let hasher = Hasher::new(3);
    let mut partition =
        Partition::new(Config::for_log_bytes(64 << 20), hasher.clone()).expect("64 MiB");
    let items = 300_000_u32;
    for number in 0..items {
        let name = number.to_le_bytes();
        let entry = partition.entry(hasher.key(&name), 1);
        entry.set(Contents::of(&name)).expect("a small item");
    }
    let statistics = partition.statistics();
    assert_eq!(statistics.evictions, 0);
    assert!(
        statistics.bucket_evictions < u64::from(items) / 10_000,
        "{statistics:?}"
    );
    assert_eq!(
        statistics.items,
        u64::from(items) - statistics.bucket_evictions
    );
    let held = (0..items).filter(|number| {
        let name = number.to_le_bytes();
        partition
            .get(hasher.key(&name), 1)
            .is_some_and(|item| item.value == name)
    });
    assert_eq!(held.count() as u64, statistics.items);
}

/// Whatever the seed: with a hash of less quality, each of these seeds but the last eight overfilled buckets.
#[test]
fn keys_that_differ_in_a_number_are_spread_evenly() {
    let names: Vec<_> = (0..200_000)
        .map(|number| format!("a-key-that-is-not-short:{number}"))
        .collect();
    for seed in [107, 235, 325, 786, 807, 1089, 1145, 1479]
        .into_iter()
        .chain(0..8_u64)
    {
        let hasher = Hasher::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let config = Config::for_log_bytes(8 << 20);
        let mut partition = Partition::new(config, hasher.clone()).expect("8 MiB");
        // As if it were one of eight.
        let keys = names.iter().map(|name| hasher.key(name.as_bytes()));
        for key in keys.filter(|key| key.partition(8) == 3) {
            partition.set(key, 1, &Contents::of(b"x")).expect("small");
        }
        assert_eq!(partition.statistics().bucket_evictions, 0, "seed {seed}");
    }
}

#[test]
fn thousands_of_laps_later_the_newest_items_are_there_and_no_others() {
    let hasher = Hasher::new(4);
    let config = Config {
        log_bytes: 10_000,
        buckets_min: 64,
        buckets_max: 64,
        item_bytes_max: 4000,
        ..Config::for_log_bytes(10_000)
    };
    let mut partition = Partition::new(config, hasher.clone()).expect("10 kB");
    for number in 0..500_000_u32 {
        let name = number.to_le_bytes();
        let value = vec![number as u8; number as usize % 150];
        let entry = partition.entry(hasher.key(&name), 1);
        entry.set(Contents::of(&value)).expect("a small item");
        let back = number.saturating_sub(1 + number % 300);
        if let Some(item) = partition.get(hasher.key(&back.to_le_bytes()), 1) {
            assert_eq!(item.value, vec![back as u8; back as usize % 150]);
        }
        let item = partition
            .get(hasher.key(&name), 1)
            .map(|item| item.value.to_vec());
        assert_eq!(item, Some(value));
    }
    let statistics = partition.statistics();
    assert!(
        statistics.evictions > 300_000 && statistics.reinserted > 1000,
        "{statistics:?}"
    );
    assert!((20..200).contains(&statistics.items), "{statistics:?}");
}

#[test]
fn an_item_that_is_read_outlives_those_that_are_not() {
    let hasher = Hasher::new(5);
    let mut partition =
        Partition::new(Config::for_log_bytes(1 << 20), hasher.clone()).expect("1 MiB");
    let loved = hasher.key(b"loved");
    partition
        .entry(loved, 1)
        .set(Contents::of(b"value"))
        .expect("a small item");
    for number in 0..100_000_u32 {
        let name = number.to_le_bytes();
        let entry = partition.entry(hasher.key(&name), 1);
        entry.set(Contents::of(&[0; 100])).expect("a small item");
        if number % 500 == 0 {
            assert_eq!(
                partition.get(loved, 1).map(|item| item.value),
                Some(&b"value"[..])
            );
        }
    }
    assert!(partition.get(hasher.key(&0_u32.to_le_bytes()), 1).is_none());
}

#[test]
fn no_change_of_a_key_gives_it_a_cas_number_that_it_had_before() {
    let hasher = Hasher::new(6);
    let mut partition =
        Partition::new(Config::for_log_bytes(1 << 16), hasher.clone()).expect("64 KiB");
    let key = hasher.key(b"key");
    let mut seen = std::collections::BTreeSet::new();
    for number in 0..5000_u32 {
        let (value, longer) = (number.to_le_bytes(), [0; 9]);
        let cas = match (partition.entry(key, 1), number % 1000) {
            (Entry::Occupied(mut entry), 0..400) => entry.edit(|bytes| bytes[0] ^= 1),
            (Entry::Occupied(mut entry), 400..410) => entry.renew_cas(0),
            (Entry::Occupied(entry), 410..420) => entry.join(b"<", b">", 0).expect("a small item"),
            (Entry::Occupied(mut entry), 420) => {
                let (before, expires_at) = (entry.item().cas, entry.item().expires_at);
                entry.set_expires_at(expires_at + 1000);
                assert_eq!(entry.item().cas, before);
                continue;
            }
            (entry, 421) => entry.set(Contents::of(&longer)).expect("a small item"),
            (entry, _) => entry.set(Contents::of(&value)).expect("a small item"),
        };
        assert_eq!(partition.get(key, 1).map(|item| item.cas), Some(cas));
        assert!(seen.insert(cas), "{cas:#x} again, at {number}");
    }
}
