//! Readers beside a writer, on real threads: a hit is whole, of the key that was asked for, and never older than what
//! the same reader saw before.

use mica::{Config, Contents, Entry, Error, Hasher, Key, Lookup, Mode, Partition, Reader};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const KEYS: u32 = 200;
const WRITES: u32 = 60_000;

/// The key and a number, over and over: torn or foreign bytes cannot go unseen.
fn value_of(key: u32, number: u32, words: usize) -> Vec<u8> {
    let word = u64::from(key) << 32 | u64::from(number);
    word.to_le_bytes().repeat(words.max(1))
}

fn words_of(number: u32) -> usize {
    (number as usize).wrapping_mul(7919) % 90 + 1
}

fn name_of(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

/// Lookups that a reader makes at least, however soon the writer ends.
const READS_MIN: u64 = 1000;

/// Reads keys until told to stop. Returns hits, misses and how often the writer had to be asked.
fn read(reader: &Reader, hasher: &Hasher, is_over: &AtomicBool, seed: u32) -> [u64; 3] {
    let mut newest = vec![0; KEYS as usize];
    let mut counts = [0; 3];
    let mut out = Vec::new();
    let mut random = seed;
    while !is_over.load(Relaxed) || counts.iter().sum::<u64>() < READS_MIN {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let number = (random >> 8) % KEYS;
        let name = name_of(number);
        out.clear();
        let found = reader.get(hasher.key(&name), 1, &mut out, |out, front| {
            out.extend_from_slice(&(front.value_bytes as u64).to_le_bytes());
            out.extend_from_slice(&front.flags.to_le_bytes());
        });
        match found {
            Lookup::Hit { .. } => {
                let (front, value) = out.split_at(12);
                let length = u64::from_le_bytes(front[..8].try_into().expect("eight bytes"));
                let flags = u32::from_le_bytes(front[8..].try_into().expect("four bytes"));
                assert_eq!(value.len() as u64, length);
                assert_eq!(flags, number);
                let word = u64::from_le_bytes(value[..8].try_into().expect("eight bytes"));
                assert_eq!(word >> 32, u64::from(number), "another key's value");
                let version = word as u32;
                assert_eq!(
                    value,
                    value_of(number, version, value.len() / 8),
                    "a torn value"
                );
                assert!(
                    version >= newest[number as usize],
                    "an older value than before"
                );
                newest[number as usize] = version;
                counts[0] += 1;
            }
            Lookup::Miss => {
                assert!(out.is_empty());
                counts[1] += 1;
            }
            Lookup::Ask => {
                assert!(out.is_empty());
                counts[2] += 1;
            }
        }
    }
    counts
}

fn with_readers(
    mut partition: Partition,
    hasher: &Hasher,
    write: impl FnOnce(&mut Partition),
) -> Vec<[u64; 3]> {
    let reader = partition.reader().expect("made for readers");
    let is_over = AtomicBool::new(false);
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (1..4)
            .map(|seed| {
                let (reader, is_over, start) = (reader.clone(), &is_over, &start);
                scope.spawn(move || {
                    start.wait();
                    read(&reader, hasher, is_over, seed)
                })
            })
            .collect();
        start.wait();
        // However writing ends, readers must not wait for ever.
        let ended =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| write(&mut partition)));
        is_over.store(true, Relaxed);
        let counts = readers
            .into_iter()
            .map(|reader| reader.join().expect("a reader failed"))
            .collect();
        ended.expect("the writer failed");
        counts
    })
}

/// Nothing was missed, and most was found without the owner: who always asks misses nothing either.
fn assert_found(counts: &[[u64; 3]]) {
    for [hits, misses, asked] in counts {
        assert!(*misses == 0 && hits > asked, "{counts:?}");
    }
}

fn entry<'p>(partition: &'p mut Partition, key: Key<'p>) -> Entry<'p, 'p> {
    partition.entry(key, 1)
}

/// The log wraps all the time; items move, change in place, grow, go, and come back.
#[test]
fn no_reader_sees_a_torn_an_old_or_another_key_s_value() {
    read_what_changes(Config::for_log_bytes(40_000));
}

/// The same where memory is given back, split, joined and used again all the time.
#[test]
fn no_reader_sees_what_is_written_to_memory_that_was_given_back() {
    read_what_changes(Config {
        mode: Mode::Store,
        ..Config::for_log_bytes(40_000)
    });
}

/// The same where the longer values are too large for the log.
#[test]
fn no_reader_sees_less_where_large_items_lie_apart() {
    read_what_changes(Config {
        large_bytes: 10_000,
        item_bytes_max: 5_000,
        ..Config::for_log_bytes(40_000)
    });
}

fn read_what_changes(config: Config) {
    let hasher = Hasher::new(9);
    let config = Config {
        buckets_min: 1,
        has_readers: true,
        ..config
    };
    let partition = Partition::new(config, hasher.clone()).expect("a small partition");
    let counts = with_readers(partition, &hasher, |partition| {
        for number in 1..WRITES {
            let id = number.wrapping_mul(2_654_435_761) % KEYS;
            let name = name_of(id);
            let words = if number % 3 == 0 { 8 } else { words_of(number) };
            let value = value_of(id, number, words);
            let contents = Contents {
                flags: id,
                ..Contents::of(&value)
            };
            match (entry(partition, hasher.key(&name)), number % 16) {
                (Entry::Occupied(entry), 0) => entry.remove(),
                (Entry::Occupied(mut entry), 1) => {
                    let length = entry.item().value.len();
                    let value = value_of(id, number, length / 8);
                    entry.edit(|bytes| bytes.copy_from_slice(&value));
                }
                (Entry::Occupied(mut entry), 2) => entry.set_expires_at(1 + number % 2 * 1000),
                (place, _) => match place.set(contents) {
                    Ok(_) => {}
                    // Make room, as a cache does by itself.
                    Err(Error::Full { .. }) => {
                        let name = name_of(number % KEYS);
                        if let Entry::Occupied(entry) = entry(partition, hasher.key(&name)) {
                            entry.remove();
                        }
                    }
                    Err(error) => panic!("{error}"),
                },
            }
            if number % 20_000 == 0 {
                partition.flush();
            }
        }
    });
    let hits: u64 = counts.iter().map(|count| count[0]).sum();
    assert!(hits > 0, "{counts:?}");
}

/// While the index grows from one bucket to many, nothing that was stored is missed.
#[test]
fn no_reader_misses_what_is_there_while_the_index_grows() {
    let hasher = Hasher::new(10);
    let config = Config {
        buckets_min: 1,
        has_readers: true,
        ..Config::for_log_bytes(16 << 20)
    };
    let mut partition = Partition::new(config, hasher.clone()).expect("a partition");
    let store = |partition: &mut Partition, id: u32, number: u32| {
        let (name, value) = (name_of(id), value_of(id, number, 4));
        let contents = Contents {
            flags: id,
            ..Contents::of(&value)
        };
        entry(partition, hasher.key(&name))
            .set(contents)
            .expect("a small item");
    };
    for id in 0..KEYS {
        store(&mut partition, id, 0);
    }
    let counts = with_readers(partition, &hasher, |partition| {
        for number in 1..WRITES {
            store(partition, KEYS + number, number);
            if number % 50 == 0 {
                store(partition, number / 50 % KEYS, number);
            }
        }
        assert_eq!(
            partition.statistics().bucket_evictions + partition.statistics().evictions,
            0
        );
    });
    assert_found(&counts);
}

/// In a store that is short of memory, what is never removed is never missed, however often it moves, and whatever
/// comes and goes beside it.
#[test]
fn no_reader_misses_what_a_store_keeps() {
    let hasher = Hasher::new(12);
    let config = Config {
        mode: Mode::Store,
        buckets_min: 1,
        has_readers: true,
        ..Config::for_log_bytes(400_000)
    };
    let mut partition = Partition::new(config, hasher.clone()).expect("a partition");
    let store = |partition: &mut Partition, id: u32, number: u32, words: usize| {
        let (name, value) = (name_of(id), value_of(id, number, words));
        let contents = Contents {
            flags: id,
            ..Contents::of(&value)
        };
        entry(partition, hasher.key(&name)).set(contents).is_ok()
    };
    for id in 0..KEYS {
        assert!(store(&mut partition, id, 0, 45));
    }
    let mut refused = 0;
    let counts = with_readers(partition, &hasher, |partition| {
        for number in 1..WRITES {
            let id = number.wrapping_mul(2_654_435_761) >> 8;
            store(partition, id % KEYS, number, words_of(number));
            let other = KEYS + number % 1000;
            match entry(partition, hasher.key(&name_of(other))) {
                Entry::Occupied(entry) => entry.remove(),
                Entry::Vacant(_) => {
                    refused += u32::from(!store(partition, other, number, words_of(id)));
                }
            }
        }
    });
    assert_found(&counts);
    assert!(refused > 0);
}

/// An item that becomes too large for the log, or no longer is, is there all the time.
#[test]
fn no_reader_misses_what_moves_between_the_log_and_the_large_items() {
    let hasher = Hasher::new(13);
    let config = Config {
        large_bytes: 200_000,
        item_bytes_max: 10_000,
        has_readers: true,
        ..Config::for_log_bytes(400_000)
    };
    let mut partition = Partition::new(config, hasher.clone()).expect("a partition");
    let store = |partition: &mut Partition, id: u32, number: u32, words: usize| {
        let (name, value) = (name_of(id), value_of(id, number, words));
        let contents = Contents {
            flags: id,
            ..Contents::of(&value)
        };
        let stored = partition.set(hasher.key(&name), 1, &contents);
        stored.expect("room is made");
    };
    for id in 0..KEYS {
        store(&mut partition, id, 0, 4);
    }
    let counts = with_readers(partition, &hasher, |partition| {
        for number in 1..WRITES / 4 {
            let id = number % KEYS;
            let is_large = id < 20 && (number / KEYS).is_multiple_of(2);
            store(partition, id, number, if is_large { 900 } else { 4 });
        }
    });
    for [hits, misses, _] in counts {
        assert!(hits > 0 && misses == 0, "{hits} hits, {misses} misses");
    }
}

/// What the head has passed may be the key's own item, which the owner is about to write again at the tail.
#[test]
fn a_reader_asks_where_the_head_has_passed_what_the_index_points_to() {
    let hasher = Hasher::new(11);
    let config = Config {
        has_readers: true,
        ..Config::for_log_bytes(40_000)
    };
    let mut partition = Partition::new(config, hasher.clone()).expect("a small partition");
    let reader = partition.reader().expect("made for readers");
    let mut asked = 0;
    for id in 0..3_000 {
        let value = value_of(id, 0, 4);
        entry(&mut partition, hasher.key(&name_of(id)))
            .set(Contents::of(&value))
            .expect("a small item");
        let oldest = id.saturating_sub(900);
        let name = name_of(oldest);
        let mut out = Vec::new();
        let found = reader.get(hasher.key(&name), 1, &mut out, |_, _| ());
        asked += u32::from(found == Lookup::Ask);
        let is_there = partition.get(hasher.key(&name), 1).is_some();
        assert!(found == Lookup::Ask || (found != Lookup::Miss) == is_there);
    }
    assert!(asked > 0);
}
