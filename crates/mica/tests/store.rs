//! Store mode: what fits is kept, what does not is refused, and what goes makes room.

use mica::{Config, Contents, Entry, Error, Hasher, Mode, Partition};

fn store(log_bytes: usize) -> (Hasher, Partition) {
    with_config(Config {
        mode: Mode::Store,
        ..Config::for_log_bytes(log_bytes)
    })
}

fn with_config(config: Config) -> (Hasher, Partition) {
    let hasher = Hasher::new(12);
    let partition = Partition::new(config, hasher.clone()).expect("enough memory");
    (hasher, partition)
}

/// Store `bytes` bytes under `number` at second `now`, expiring at `expires_at`.
fn put(
    (hasher, partition): &mut (Hasher, Partition),
    number: u32,
    bytes: usize,
    now: u32,
    expires_at: u32,
) -> Result<u64, Error> {
    let name = number.to_le_bytes();
    let value = vec![number as u8; bytes];
    let contents = Contents {
        expires_at,
        ..Contents::of(&value)
    };
    partition.set(hasher.key(&name), now, &contents)
}

fn has((hasher, partition): &mut (Hasher, Partition), number: u32, bytes: usize) -> bool {
    let name = number.to_le_bytes();
    let item = partition.get(hasher.key(&name), 1);
    item.is_some_and(|item| item.value == vec![number as u8; bytes])
}

fn remove((hasher, partition): &mut (Hasher, Partition), number: u32) {
    let name = number.to_le_bytes();
    match partition.entry(hasher.key(&name), 1) {
        Entry::Occupied(entry) => entry.remove(),
        Entry::Vacant(_) => panic!("{number} is missing"),
    }
}

fn free((_, partition): &(Hasher, Partition)) -> usize {
    partition.free_bytes().expect("a store")
}

/// Store values of `bytes` bytes under numbers from `first` on until one is refused; how many were stored.
fn fill(store: &mut (Hasher, Partition), first: u32, bytes: usize) -> u32 {
    (0..)
        .find(|&count| match put(store, first + count, bytes, 1, 0) {
            Ok(_) => false,
            Err(Error::Full { .. }) => true,
            Err(error) => panic!("{error}"),
        })
        .expect("memory ends")
}

#[test]
fn all_of_the_memory_is_used_and_nothing_is_lost() {
    let mut store = store(1 << 20);
    // 19 bytes of header, 4 of key and 9 of value.
    let stored = fill(&mut store, 0, 9);
    assert_eq!(stored, (1 << 20) / 32);
    assert_eq!(free(&store), 0);
    assert!((0..stored).all(|number| has(&mut store, number, 9)));
    let statistics = store.1.statistics();
    assert_eq!(statistics.items, u64::from(stored));
    assert_eq!(statistics.refused, 1);
    assert_eq!(statistics.evictions + statistics.bucket_evictions, 0);
    // What goes makes room for as much, wherever it was.
    for number in (0..stored).step_by(77) {
        remove(&mut store, number);
        assert_eq!(
            put(&mut store, stored + number, 10, 1, 0).err(),
            Some(Error::Full { bytes: 33 })
        );
        put(&mut store, stored + number, 9, 1, 0).expect("room");
        assert!(has(&mut store, stored + number, 9));
    }
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut store = store(1 << 16);
    let stored = fill(&mut store, 0, 100);
    let before = store.1.statistics();
    let name = 0_u32.to_le_bytes();
    let key = store.0.key(&name);
    let cas = store.1.get(key, 1).map(|item| item.cas);
    for bytes in [110, 1000, 30_000] {
        assert!(matches!(
            put(&mut store, 0, bytes, 1, 0),
            Err(Error::Full { .. })
        ));
        let Entry::Occupied(entry) = store.1.entry(key, 1) else {
            panic!("it is missing");
        };
        assert!(matches!(
            entry.join(&[1; 5], &vec![2; bytes], 0),
            Err(Error::Full { .. })
        ));
        assert!(has(&mut store, 0, 100));
    }
    assert_eq!(store.1.get(key, 1).map(|item| item.cas), cas);
    let after = store.1.statistics();
    assert_eq!((after.items, after.bytes), (before.items, before.bytes));
    assert_eq!(after.refused, before.refused + 6);
    assert!((0..stored).all(|number| has(&mut store, number, 100)));
}

/// Whatever does not make an item longer does not need memory.
#[test]
fn a_full_store_takes_every_change_that_needs_no_room() {
    let mut store = store(1 << 16);
    let stored = fill(&mut store, 0, 100);
    for number in 0..stored {
        put(&mut store, number, 100, 1, 0).expect("it fits where the old one is");
        let name = number.to_le_bytes();
        let Entry::Occupied(mut entry) = store.1.entry(store.0.key(&name), 1) else {
            panic!("{number} is missing");
        };
        entry.set_expires_at(1000 + number);
        assert_eq!(entry.item().expires_at, 1000 + number);
        let before = entry.item().cas;
        let edited = entry.edit(|bytes| bytes[0] = 7);
        assert!(edited > before);
        assert!(entry.renew_cas(0) > edited);
        assert_eq!(entry.renew_cas(5), 5);
        entry.edit(|bytes| bytes[0] = number as u8);
    }
    // Shorter ones leave room where they lie.
    for number in 0..stored {
        put(&mut store, number, 50, 1, 0).expect("it fits where the old one is");
    }
    assert!(free(&store) >= 48 * stored as usize);
    assert!((0..stored).all(|number| has(&mut store, number, 50)));
    // And grow again where nobody took it.
    for number in 0..stored {
        put(&mut store, number, 100, 1, 0).expect("the room is still there");
    }
    assert!((0..stored).all(|number| has(&mut store, number, 100)));
}

#[test]
fn values_grow_where_they_lie_while_there_is_room_behind_them() {
    let mut store = store(1 << 20);
    put(&mut store, 1, 1000, 1, 0).expect("room");
    let name = 1_u32.to_le_bytes();
    let mut value = vec![1; 1000];
    // There would not be room for another of these beside the last ones.
    for number in 0..9_000_u32 {
        let more = [number as u8; 50];
        let Entry::Occupied(entry) = store.1.entry(store.0.key(&name), 1) else {
            panic!("it is missing");
        };
        entry.join(&[], &more, 0).expect("room");
        value.extend_from_slice(&more);
    }
    let item = store.1.get(store.0.key(&name), 1);
    assert!(item.is_some_and(|item| item.value == value));
    assert!(free(&store) >= (1 << 20) - value.len() - 64);
    // One was stored, and each that made it longer counts once.
    assert_eq!(store.1.statistics().items_stored, 9_001);
}

#[test]
fn what_has_expired_makes_room_before_anything_is_refused() {
    let mut store = store(1 << 18);
    let mut stored = 0;
    while put(
        &mut store,
        stored,
        100,
        1,
        if stored % 3 == 0 { 50 } else { 0 },
    )
    .is_ok()
    {
        stored += 1;
    }
    // Nobody asks for those that have expired, and still as many find room.
    let expired = stored.div_ceil(3);
    for number in 0..expired {
        put(&mut store, 1_000_000 + number, 100, 50, 0).expect("something has expired");
    }
    assert!(matches!(
        put(&mut store, 2_000_000, 100, 50, 0),
        Err(Error::Full { .. })
    ));
    assert_eq!(store.1.statistics().expired, u64::from(expired));
    for number in 0..stored {
        let name = number.to_le_bytes();
        let is_there = store.1.get(store.0.key(&name), 50).is_some();
        assert_eq!(is_there, number % 3 != 0);
    }
}

#[test]
fn what_has_expired_is_found_in_about_as_many_writes_as_there_are_items() {
    let mut store = store(16 << 20);
    let items = 20_000;
    for number in 0..items {
        put(&mut store, number, 100, 1, 20 + number % 2 * 1000).expect("room");
    }
    for round in 0..2 {
        // Replacing items that live does not meet those that have expired.
        for number in 0..items / 2 {
            put(&mut store, 2 * number + 1, 100, 30, 0).expect("room");
        }
        if round == 0 {
            assert!(store.1.statistics().expired > 0);
        }
    }
    let statistics = store.1.statistics();
    assert_eq!(statistics.expired, u64::from(items / 2));
    assert_eq!(statistics.items, u64::from(items / 2));
}

#[test]
fn a_flush_gives_everything_back_at_once() {
    let mut store = store(1 << 20);
    for round in 0..3 {
        let stored = fill(&mut store, round * 7, 100);
        let (index, cas) = (
            store.1.index_bytes(),
            put(&mut store, round * 7, 100, 1, 0).ok(),
        );
        assert!(index > 16 * 64);
        store.1.flush();
        assert_eq!(free(&store), 1 << 20);
        assert_eq!(store.1.statistics().items, 0);
        assert_eq!(store.1.index_bytes(), 16 * 64);
        assert!((0..stored + 14).all(|number| !has(&mut store, number, 100)));
        assert!(put(&mut store, round * 7, 100, 1, 0).ok() > cas);
        remove(&mut store, round * 7);
    }
    store.1.flush_at(5, 1);
    put(&mut store, 1, 100, 4, 0).expect("room");
    assert!(has(&mut store, 1, 100));
    put(&mut store, 2, 100, 5, 0).expect("room");
    assert!(!has(&mut store, 1, 100) && has(&mut store, 2, 100));
}

/// Buckets are continued as far as there are spares, and an entry that goes makes room for another.
#[test]
fn a_full_index_refuses_and_recovers() {
    let mut store = with_config(Config {
        mode: Mode::Store,
        buckets_min: 1,
        buckets_max: 8,
        ..Config::for_log_bytes(1 << 20)
    });
    // Which keys are refused depends on how they fall into the buckets.
    let stored: Vec<u32> = (0..1000)
        .filter(|&number| put(&mut store, number, 9, 1, 0).is_ok())
        .collect();
    assert!((8 * 12..=10 * 12).contains(&stored.len()));
    assert!(stored.iter().all(|&number| has(&mut store, number, 9)));
    assert_eq!(free(&store), (1 << 20) - 32 * stored.len());
    for &number in &stored {
        remove(&mut store, number);
        put(&mut store, number, 9, 1, 0).expect("its slot is free again");
    }
    for &number in &stored {
        remove(&mut store, number);
    }
    assert_eq!(free(&store), 1 << 20);
}

#[test]
fn a_key_s_cas_numbers_only_rise() {
    let mut store = store(1 << 16);
    let mut last = [0; 20];
    for number in 0..20_000_u32 {
        let which = number.wrapping_mul(2_654_435_761) >> 8;
        let (key, bytes) = (which % 20, which as usize % 3000);
        let name = key.to_le_bytes();
        let cas = match (store.1.entry(store.0.key(&name), 1), number % 5) {
            (Entry::Occupied(entry), 0) => {
                entry.remove();
                continue;
            }
            (Entry::Occupied(mut entry), 1) => Ok(entry.edit(<[u8]>::reverse)),
            (Entry::Occupied(entry), 2) => entry.join(b"<", b">", 0),
            (entry, _) => entry.set(Contents::of(&vec![0; bytes])),
        };
        if let Ok(cas) = cas {
            assert!(cas > last[key as usize], "at {number}");
            last[key as usize] = cas;
        }
    }
    assert!(last.iter().all(|&cas| cas > 0));
}

/// Items of many lengths come and go while nine tenths of the memory are full: all find room, and none is harmed by
/// being moved to make it.
#[test]
fn nine_tenths_of_the_memory_can_be_filled_with_items_of_any_length() {
    type Length = fn(u32, u32) -> usize;
    let lengths: [(&str, Length); 4] = [
        ("of 1 to 1000 bytes", |random, _| 1 + random as usize % 1000),
        (
            "of 1 byte to 16 KiB, each power of two as often",
            |random, _| 1 + ((random >> 4) as usize % (1 << (random % 15))),
        ),
        ("small, and now and then of 50 KiB", |random, _| {
            match random % 30 {
                0 => 50 << 10,
                _ => 10 + random as usize % 200,
            }
        }),
        ("longer and longer", |random, step| {
            let least = 40 << (step / 10_000);
            least + random as usize % least
        }),
    ];
    for ((what, length), seed) in lengths
        .into_iter()
        .flat_map(|one| (7..10_u32).map(move |seed| (one, seed)))
    {
        let mut store = store(8 << 20);
        let mut random = seed;
        let mut draw = move || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            random >> 8
        };
        // Numbers and lengths of what is there.
        let mut held: Vec<(u32, usize)> = Vec::new();
        for number in 0..60_000 {
            let bytes = length(draw(), number);
            while free(&store) < (8 << 20) / 10 + bytes + 40 {
                let which = draw() as usize % held.len();
                let (old, old_bytes) = held.swap_remove(which);
                assert!(has(&mut store, old, old_bytes), "{what}");
                remove(&mut store, old);
            }
            put(&mut store, number, bytes, 1, 0).unwrap_or_else(|error| {
                panic!("items {what}, {} bytes free: {error}", free(&store))
            });
            held.push((number, bytes));
        }
        assert!(
            held.iter()
                .all(|&(number, bytes)| has(&mut store, number, bytes)),
            "{what}"
        );
    }
}

/// Items of 32 MiB and of some bytes beside each other; each goes and comes back.
#[test]
fn the_largest_items_and_the_smallest_share_the_memory() {
    const LARGE: usize = 32 << 20;
    let mut store = with_config(Config {
        mode: Mode::Store,
        item_bytes_max: LARGE + 1000,
        ..Config::for_log_bytes(200 << 20)
    });
    for number in 0..1000 {
        put(&mut store, number, 10, 1, 0).expect("room");
        if number % 200 == 0 {
            put(&mut store, 10_000 + number, LARGE, 1, 0).expect("room");
        }
    }
    assert!((0..1000).all(|number| has(&mut store, number, 10)));
    assert!(
        (0..1000)
            .step_by(200)
            .all(|number| has(&mut store, 10_000 + number, LARGE))
    );
    assert!(matches!(
        put(&mut store, 1, LARGE + 1001, 1, 0),
        Err(Error::ItemTooLarge { .. })
    ));
    remove(&mut store, 10_400);
    put(&mut store, 10_001, LARGE, 1, 0).expect("the room of another");
    assert!(has(&mut store, 10_001, LARGE));
    assert!((0..1000).all(|number| has(&mut store, number, 10)));
}

/// A clock that goes back and far ahead: nothing is lost before its time, and nothing outlives it.
#[test]
fn a_clock_that_jumps_expires_what_is_due_and_nothing_else() {
    const NEVER: &[u8] = b"never";
    for mode in [Mode::Cache, Mode::Store] {
        let config = Config {
            mode,
            ..Config::for_log_bytes(1 << 20)
        };
        let hasher = Hasher::new(3);
        let mut partition = Partition::new(config, hasher.clone()).expect("enough memory");
        let due = hasher.key(b"due");
        let never = hasher.key(NEVER);
        for set_at in [1000, 5, u32::MAX - 10, 1000] {
            let contents = |expires_at| Contents {
                expires_at,
                ..Contents::of(NEVER)
            };
            partition.set(due, set_at, &contents(2000)).expect("room");
            partition.set(never, set_at, &contents(0)).expect("room");
            for now in [1999, 3, 1000, 0, 1999] {
                let item = partition.get(due, now).expect("its time has not come");
                assert_eq!((item.value, item.expires_at), (NEVER, 2000));
            }
            for now in [u32::MAX - 1, 0, 1 << 31, 7] {
                assert_eq!(partition.get(never, now).expect("for ever").value, NEVER);
            }
            for now in [2000, u32::MAX - 1, 2001] {
                assert!(partition.get(due, now).is_none(), "{mode:?} {set_at} {now}");
            }
            // It is gone, whatever the clock says next.
            assert!(partition.get(due, 1000).is_none());
        }
        assert_eq!(partition.statistics().items, 1);
    }
}
