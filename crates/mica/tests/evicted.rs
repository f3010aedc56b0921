//! What had to make room is told to whoever wants to know.

use mica::{Config, Contents, Error, Hasher, Marks, Mode, Partition};
use std::collections::BTreeSet;

fn fill(partition: &mut Partition, hasher: &Hasher, numbers: std::ops::Range<u32>, now: u32) {
    for number in numbers {
        let name = number.to_le_bytes();
        let contents = Contents {
            expires_at: now + 100,
            ..Contents::of(&[7; 20])
        };
        partition
            .set(hasher.key(&name), now, &contents)
            .expect("it fits");
    }
}

fn taken(partition: &mut Partition) -> Vec<mica::Evicted> {
    let mut taken = Vec::new();
    assert_eq!(partition.take_evicted(|one| taken.push(one)), 0);
    taken
}

#[test]
fn each_item_that_makes_room_is_told_once() {
    for buckets_max in [1, 1 << 10] {
        let hasher = Hasher::new(3);
        let config = Config {
            buckets_min: 1,
            buckets_max,
            ..Config::for_log_bytes(4096)
        };
        let mut partition = Partition::new(config, hasher.clone()).expect("small");
        // Nobody wants to know yet.
        fill(&mut partition, &hasher, 0..1000, 1);
        assert_eq!(taken(&mut partition), []);
        partition.record_evictions(true);
        let before = partition.statistics();
        partition.get(hasher.key(&999_u32.to_le_bytes()), 3);
        fill(&mut partition, &hasher, 1000..1500, 5);
        let since = partition.statistics().since(&before);
        let evicted = taken(&mut partition);
        assert_eq!(
            evicted.len() as u64,
            since.evictions + since.bucket_evictions
        );
        assert!(evicted.len() > 400);
        let names: BTreeSet<_> = evicted.iter().map(|one| one.key.clone()).collect();
        assert_eq!(names.len(), evicted.len());
        let read = evicted
            .iter()
            .find(|one| *one.key == 999_u32.to_le_bytes())
            .expect("it is old");
        assert_eq!((read.value_bytes, read.expires_at), (20, 101));
        assert_eq!((read.accessed_at, read.marks), (3, Marks::FETCHED));
        partition.record_evictions(false);
        fill(&mut partition, &hasher, 2000..2500, 5);
        assert_eq!(taken(&mut partition), []);
    }
}

#[test]
fn what_nobody_takes_is_counted() {
    let hasher = Hasher::new(3);
    let mut partition = Partition::new(Config::for_log_bytes(4096), hasher.clone()).expect("small");
    partition.record_evictions(true);
    fill(&mut partition, &hasher, 0..10_000, 1);
    let mut taken = 0;
    let missed = partition.take_evicted(|_| taken += 1);
    assert_eq!(taken + missed, partition.statistics().evictions);
    assert!(missed > 0);
}

#[test]
fn large_items_that_make_room_are_told_as_well() {
    const MIB: usize = 1 << 20;
    let hasher = Hasher::new(3);
    let config = Config::for_log_bytes(64 * MIB).with_items_of(8 * MIB);
    assert!(config.large_bytes > 0);
    let mut partition = Partition::new(config, hasher.clone()).expect("enough memory");
    partition.record_evictions(true);
    let value = vec![7; 5 * MIB];
    for number in 0..10_u32 {
        let contents = Contents {
            expires_at: 100,
            ..Contents::of(&value)
        };
        let name = number.to_le_bytes();
        partition
            .set(hasher.key(&name), 1 + number, &contents)
            .expect("room is made");
    }
    let evicted = taken(&mut partition);
    assert_eq!(evicted.len() as u64, partition.statistics().evictions);
    assert!(evicted.len() > 5);
    for (one, number) in evicted.iter().zip(0_u32..) {
        assert_eq!(*one.key, number.to_le_bytes());
        assert_eq!((one.value_bytes, one.expires_at), (5 * MIB, 100));
        assert_eq!((one.accessed_at, one.marks), (1 + number, Marks::default()));
    }
    partition.record_evictions(false);
    partition
        .set(hasher.key(b"another"), 20, &Contents::of(&value))
        .expect("room is made");
    assert_eq!(taken(&mut partition), []);
}

#[test]
fn nothing_makes_room_in_store_mode() {
    let hasher = Hasher::new(3);
    let config = Config {
        mode: Mode::Store,
        ..Config::for_log_bytes(1 << 16)
    };
    let mut partition = Partition::new(config, hasher.clone()).expect("small");
    partition.record_evictions(true);
    let refusal = (0..10_000_u32).find_map(|number| {
        let name = number.to_le_bytes();
        let stored = partition.set(hasher.key(&name), 1, &Contents::of(&[7; 20]));
        stored.err()
    });
    assert!(matches!(refusal, Some(Error::Full { .. })), "{refusal:?}");
    assert_eq!(taken(&mut partition), []);
}
