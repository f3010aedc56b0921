//! Items that are too large to lie in the log beside small ones: neither kind pushes out the other.

use mica::{Config, Contents, Entry, Error, Hasher, Lookup, Mode, Partition};

const MIB: usize = 1 << 20;

struct Cache {
    hasher: Hasher,
    partition: Partition,
}

impl Cache {
    fn new(log_bytes: usize, item_bytes_max: usize) -> Self {
        let config = Config::for_log_bytes(log_bytes).with_items_of(item_bytes_max);
        assert!(config.large_bytes > 0);
        let hasher = Hasher::new(5);
        let partition = Partition::new(config, hasher.clone()).expect("enough memory");
        Self { hasher, partition }
    }

    fn set(&mut self, name: &str, bytes: usize, now: u32) -> Result<u64, Error> {
        let value = vec![name.len() as u8; bytes];
        let key = self.hasher.key(name.as_bytes());
        self.partition.set(key, now, &Contents::of(&value))
    }

    /// The length of the value under a key.
    fn get(&mut self, name: &str, now: u32) -> Option<usize> {
        let item = self.partition.get(self.hasher.key(name.as_bytes()), now)?;
        assert!(item.value.iter().all(|&byte| byte == name.len() as u8));
        Some(item.value.len())
    }

    fn cas(&mut self, name: &str) -> u64 {
        let key = self.hasher.key(name.as_bytes());
        self.partition.get(key, 1).expect("it is there").cas
    }

    fn entry<'c>(&'c mut self, name: &'c str) -> Entry<'c, 'c> {
        let key = self.hasher.key(name.as_bytes());
        self.partition.entry(key, 1)
    }
}

#[test]
fn small_items_survive_any_number_of_large_ones() {
    let mut cache = Cache::new(64 * MIB, 32 * MIB + 100);
    for number in 0..10_000 {
        cache
            .set(&format!("small{number}"), 500, 1)
            .expect("it fits");
    }
    for number in 0..20 {
        let name = format!("large{number}");
        cache.set(&name, 32 * MIB, 1).expect("room is made");
        assert_eq!(cache.get(&name, 1), Some(32 * MIB));
        cache.set("middle", 3 * MIB, 1).expect("room is made");
    }
    for number in 0..10_000 {
        assert_eq!(cache.get(&format!("small{number}"), 1), Some(500));
    }
    let statistics = cache.partition.statistics();
    assert!(statistics.evictions > 0);
    assert!(statistics.bytes <= 64 << 20);
    assert_eq!(cache.partition.log_bytes(), 64 * MIB);
}

#[test]
fn large_items_survive_any_number_of_small_ones() {
    let mut cache = Cache::new(64 * MIB, 32 * MIB + 100);
    cache.set("large", 32 * MIB, 1).expect("it fits");
    for number in 0..200_000 {
        cache
            .set(&format!("small{number}"), 500, 1)
            .expect("it fits");
    }
    assert_eq!(cache.get("large", 1), Some(32 * MIB));
    assert_eq!(cache.get("small0", 1), None);
    assert_eq!(cache.get("small199999", 1), Some(500));
    cache.set("other", 32 * MIB, 1).expect("room is made");
    assert_eq!(cache.get("large", 1), None);
}

#[test]
fn the_large_item_goes_that_was_not_used_for_longest() {
    let mut cache = Cache::new(64 * MIB, 8 * MIB);
    // Sixteen MiB are theirs.
    for number in 0..5 {
        cache
            .set(&format!("{number}"), 3 * MIB, 1 + number)
            .expect("it fits");
    }
    assert_eq!(cache.get("0", 10), Some(3 * MIB));
    assert_eq!(cache.get("2", 11), Some(3 * MIB));
    cache.set("new", 5 * MIB, 12).expect("room is made");
    let held: Vec<_> = (0..5)
        .filter(|number| cache.get(&format!("{number}"), 12).is_some())
        .collect();
    assert_eq!(held, [0, 2, 4]);
}

/// A key has one item, wherever that is.
#[test]
fn an_item_grows_and_shrinks_across_the_border() {
    let mut cache = Cache::new(64 * MIB, 16 * MIB);
    let mut last = 0;
    for bytes in [10, 2 * MIB, 20, 30, 5 * MIB, 6 * MIB, 100, MIB - 30, MIB, 0] {
        let cas = cache.set("key", bytes, 1).expect("it fits");
        assert!(cas > last, "of {bytes} bytes");
        last = cas;
        assert_eq!((cache.get("key", 1), cache.cas("key")), (Some(bytes), cas));
        assert_eq!(cache.partition.statistics().items, 1);
    }
    let Entry::Occupied(entry) = cache.entry("key") else {
        panic!("it is missing");
    };
    let cas = entry.join(&[3; 10], &vec![3; 2 * MIB], 0).expect("it fits");
    assert!(cas > last);
    let Entry::Occupied(entry) = cache.entry("key") else {
        panic!("it is missing");
    };
    assert_eq!(entry.item().cas, cas);
    // All of what is there, and more, is longer than the memory for large items.
    assert!(entry.join(&vec![3; 5 * MIB], &vec![3; 5 * MIB], 0).is_ok());
    assert_eq!(cache.get("key", 1), Some(10 + 12 * MIB));
    assert!(cache.cas("key") > cas);
    let Entry::Occupied(entry) = cache.entry("key") else {
        panic!("it is missing");
    };
    let refused = entry.join(&[], &vec![3; 5 * MIB], 0);
    assert!(matches!(refused, Err(Error::ItemTooLarge { .. })));
    assert_eq!(cache.get("key", 1), Some(10 + 12 * MIB));
    let Entry::Occupied(entry) = cache.entry("key") else {
        panic!("it is missing");
    };
    entry.remove();
    assert_eq!(cache.get("key", 1), None);
    let Entry::Vacant(entry) = cache.entry("key") else {
        panic!("it is there");
    };
    entry
        .insert(Contents::of(&vec![3; 4 * MIB]))
        .expect("it fits");
    assert_eq!(cache.get("key", 1), Some(4 * MIB));
    cache.partition.flush();
    assert_eq!(cache.get("key", 1), None);
    let statistics = cache.partition.statistics();
    assert_eq!((statistics.items, statistics.bytes), (0, 0));
}

#[test]
fn a_flush_to_come_takes_large_items_of_before_and_no_others() {
    let mut cache = Cache::new(64 * MIB, 16 * MIB);
    cache.set("before", 2 * MIB, 1).expect("it fits");
    cache.partition.flush_at(5, 1);
    assert_eq!(cache.get("before", 4), Some(2 * MIB));
    cache.set("behind", 2 * MIB, 5).expect("it fits");
    assert_eq!(cache.get("before", 5), None);
    assert_eq!(cache.get("behind", 5), Some(2 * MIB));
}

/// Large items that became small where they are do not pile up.
#[test]
fn what_shrinks_where_it_is_goes_too() {
    let mut cache = Cache::new(64 * MIB, 16 * MIB);
    for number in 0..200 {
        let name = format!("{number:03}");
        cache.set(&name, 2 * MIB, 1).expect("room is made");
        match cache.entry(&name) {
            Entry::Occupied(entry) => entry.replace(Contents::of(&[3; 9])).expect("it fits"),
            Entry::Vacant(_) => panic!("{name} is missing"),
        };
        assert_eq!(cache.get(&name, 1), Some(9));
    }
    assert!(cache.partition.statistics().items < 50);
}

#[test]
fn items_of_at_most_a_64th_lie_in_the_log_as_ever() {
    for (log_bytes, item_bytes) in [(64 * MIB, MIB), (1 << 29, 8 * MIB), (4 * MIB, MIB)] {
        let config = Config::for_log_bytes(log_bytes).with_items_of(item_bytes);
        assert_eq!(config.large_bytes, 0);
    }
    let config = Config::for_log_bytes(64 * MIB);
    let store = Config {
        mode: Mode::Store,
        ..config
    };
    assert_eq!(store.with_items_of(32 * MIB).large_bytes, 0);
    assert!(config.item_bytes_limit() > 47 * MIB);
    let largest = config.with_items_of(config.item_bytes_limit());
    assert!(Partition::new(largest, Hasher::new(1)).is_ok());
    let longer = config.with_items_of(65 * MIB);
    assert!(matches!(
        Partition::new(longer, Hasher::new(1)),
        Err(Error::LogTooSmall { .. })
    ));
}

/// Readers ask the owner about what they miss only while there may be a large item.
#[test]
fn readers_know_that_the_last_large_item_is_gone() {
    let mut config = Config::for_log_bytes(64 * MIB).with_items_of(32 * MIB);
    config.has_readers = true;
    let hasher = Hasher::new(5);
    let partition = Partition::new(config, hasher.clone()).expect("enough memory");
    let reader = partition.reader().expect("it has readers");
    let mut cache = Cache { hasher, partition };
    let none = cache.hasher.key(b"none");
    let hasher = cache.hasher.clone();
    let ask =
        |key: &str, now| reader.get(hasher.key(key.as_bytes()), now, &mut Vec::new(), |_, _| ());
    assert_eq!(ask("none", 1), Lookup::Miss);
    type End = fn(&mut Cache);
    let ends: [(&str, End); 5] = [
        ("removed", |cache| match cache.entry("large") {
            Entry::Occupied(entry) => entry.remove(),
            Entry::Vacant(_) => panic!("it is there"),
        }),
        ("replaced", |cache| {
            cache.set("large", 100, 1).expect("it fits");
        }),
        ("flushed", |cache| cache.partition.flush()),
        ("to be flushed", |cache| cache.partition.flush_at(9, 1)),
        ("to expire", |cache| match cache.entry("large") {
            Entry::Occupied(mut entry) => entry.set_expires_at(9),
            Entry::Vacant(_) => panic!("it is there"),
        }),
    ];
    for (what, end) in ends {
        for name in ["large", "other"] {
            cache.set(name, 2 * MIB, 1).expect("it fits");
        }
        assert_eq!(ask("none", 1), Lookup::Ask);
        assert_eq!(ask("large", 1), Lookup::Ask);
        assert!(cache.partition.get(none, 1).is_none());
        assert_eq!(ask("none", 1), Lookup::Ask, "{what}");
        let other = cache.hasher.key(b"other");
        match cache.partition.entry(other, 1) {
            Entry::Occupied(entry) => entry.remove(),
            Entry::Vacant(_) => panic!("it is there"),
        }
        end(&mut cache);
        // Asked about some, the owner finds that there is none any more.
        for _ in 0..1000 {
            assert!(cache.partition.get(none, 10).is_none());
        }
        assert_eq!(ask("none", 10), Lookup::Miss, "{what}");
        assert!(cache.partition.statistics().items <= 1);
        cache.partition.flush();
    }
}

#[test]
fn no_two_items_of_a_key_have_the_same_cas_number_however_large_they_are() {
    let mut cache = Cache::new(8 * MIB, 2 * MIB);
    let mut numbers = std::collections::HashSet::new();
    for round in 0..12 {
        // As many large ones as would count past where the log's next items lie.
        for _ in 0..round * 200 {
            let number = cache.set("key", 200 << 10, 1).expect("it fits");
            assert!(numbers.insert(number), "{number} in round {round}");
        }
        if let Entry::Occupied(entry) = cache.entry("key") {
            entry.remove();
        }
        for edition in 0..300 {
            let number = cache.set("key", 10, 1).expect("it fits");
            assert!(numbers.insert(number), "{number}, edition {edition}");
        }
    }
}
