//! What is written is read again, whole or not at all.

use super::format::{BLOCK_HEADER_BYTES, HEADER_BYTES};
use super::*;
use mica::{Config, Contents, Entry, Marks};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::Cursor;

const SEED: u64 = 9;

/// An item: value, flags, second of expiry, second of its last use, CAS number of its own, marks.
type Item = (Vec<u8>, u32, u32, u32, u64, Marks);
type Items = BTreeMap<Vec<u8>, Item>;

fn partitions(count: usize, log_bytes: usize) -> Vec<Partition> {
    let config = Config::for_log_bytes(log_bytes);
    (0..count)
        .map(|_| Partition::new(config, Hasher::new(SEED)).expect("a small partition"))
        .collect()
}

fn items(partitions: &[Partition], now: u32) -> Items {
    let mut items = Items::new();
    for partition in partitions {
        partition.for_each_live(now, |live| {
            let item = live.item;
            let known = (
                item.value.to_vec(),
                item.flags,
                item.expires_at,
                item.accessed_at,
                live.own_cas,
                item.marks,
            );
            items.insert(live.key.to_vec(), known);
        });
    }
    items
}

/// A file of `partitions` as they are at second `now`, in blocks of `block_bytes`.
fn file(partitions: &[Partition], header: &Header, block_bytes: usize) -> Vec<u8> {
    let mut writer = Writer::with_blocks(Vec::new(), header, block_bytes).expect("memory");
    for (number, partition) in (0..).zip(partitions) {
        partition.for_each_live(header.written_at, |live| {
            let record = Record {
                key: live.key,
                value: live.item.value,
                flags: live.item.flags,
                expires_at: live.item.expires_at,
                accessed_at: live.item.accessed_at,
                cas: live.own_cas,
                marks: live.item.marks,
            };
            writer.add(number, &record).expect("memory");
        });
    }
    writer.finish().expect("memory").0
}

/// Of a server whose clock stands at `now`.
fn header(now: u32, partitions: &[Partition]) -> Header {
    Header {
        zero_unix: Clock::start().unix_seconds(0) - i64::from(now) + 2,
        written_at: now,
        flush_due: None,
        last_cas: partitions
            .iter()
            .map(Partition::last_cas)
            .max()
            .unwrap_or(0),
        hash_seed: SEED,
    }
}

fn read(file: &[u8], partitions: &mut [Partition]) -> Result<(Clock, Counts), Damage> {
    read_for(file, partitions, 1)
}

/// For so many workers, each with its share.
fn read_for(
    file: &[u8],
    partitions: &mut [Partition],
    parts: usize,
) -> Result<(Clock, Counts), Damage> {
    let hasher = Hasher::new(SEED);
    let all = (partitions, parts);
    restore_from(Cursor::new(file), &hasher, all, Path::new("/x"))
}

/// Items of all kinds.
fn fill(partitions: &mut [Partition], count: u32, now: u32) {
    let hasher = Hasher::new(SEED);
    for number in 0..count {
        let mut name = number.to_le_bytes().to_vec();
        name.resize(4 + number as usize * 7 % 247, (number % 256) as u8);
        let key = hasher.key(&name);
        let value: Vec<u8> = (0..number * number % 977)
            .map(|at| (at * number) as u8)
            .collect();
        let contents = Contents {
            value: &value,
            flags: number % 3 * 0x0101_0101,
            expires_at: number % 4 * (now + 1000 + number),
            marks: if number % 5 == 0 {
                Marks::STALE
            } else {
                Marks::default()
            },
            cas: u64::from(number % 7 / 6) * 0x1234_5678_9abc,
        };
        let partition = &mut partitions[key.partition(partitions.len())];
        partition
            .set(key, now - number % 50, &contents)
            .expect("it fits");
        if number % 11 == 0 {
            partition.get(key, now);
        }
        if number % 13 == 0
            && let Entry::Occupied(entry) = partition.entry(key, now)
        {
            entry.remove();
        }
    }
}

#[test]
fn all_that_was_there_is_there_again() {
    let now = 100;
    let mut before = partitions(3, 1 << 20);
    fill(&mut before, 2000, now);
    let expected = items(&before, now);
    assert_eq!(expected.len(), 1846);
    for block_bytes in [1, 5000, 1 << 20] {
        let file = file(&before, &header(now, &before), block_bytes);
        for count in [1, 3, 8] {
            let mut after = partitions(count, 4 << 20);
            let (clock, counts) = read(&file, &mut after).expect("a whole file");
            assert!((100..110).contains(&clock.now()));
            assert_eq!(
                counts,
                Counts {
                    held: 1846,
                    expired: 0,
                    unfit: 0
                }
            );
            assert!(items(&after, now) == expected);
            // Who kept a number from before finds it on no other item.
            let last = header(now, &before).last_cas;
            let hasher = Hasher::new(SEED);
            for partition in &mut after {
                let cas = partition.set(hasher.key(b"new"), now, &Contents::of(b"x"));
                assert!(cas.expect("it fits") > last);
            }
        }
    }
}

#[test]
fn each_worker_gets_its_share() {
    let now = 100;
    let mut before = partitions(3, 1 << 20);
    fill(&mut before, 2000, now);
    let expected = items(&before, now);
    let file = file(&before, &header(now, &before), 5000);
    let hasher = Hasher::new(SEED);
    for (workers, share) in [(1, 3), (2, 1), (3, 2)] {
        let mut after = partitions(workers * share, 4 << 20);
        read_for(&file, &mut after, workers).expect("a whole file");
        assert!(items(&after, now) == expected);
        for (worker, own) in after.chunks_mut(share).enumerate() {
            let keys: Vec<_> = items(own, now).into_keys().collect();
            assert!(!keys.is_empty());
            for key in keys {
                assert_eq!(owner(&key, workers), worker);
                let key = hasher.key(&key);
                assert!(own[key.partition(share)].get(key, now).is_some());
            }
        }
    }
}

#[test]
fn time_goes_on_while_nobody_serves() {
    let now = 100;
    let mut before = partitions(1, 1 << 20);
    let hasher = Hasher::new(SEED);
    for (name, expires_at) in [("for ever", 0), ("long", 100_000), ("short", 140)] {
        let contents = Contents {
            expires_at,
            ..Contents::of(b"x")
        };
        before[0]
            .set(hasher.key(name.as_bytes()), 90, &contents)
            .expect("it fits");
    }
    let at = header(now, &before);
    let read_after = |seconds: i64, flush_due| {
        let header = Header {
            zero_unix: at.zero_unix - seconds,
            flush_due,
            ..at
        };
        let mut after = partitions(1, 1 << 20);
        let (clock, counts) = read(&file(&before, &header, 1000), &mut after).expect("whole");
        (after, clock.now(), counts)
    };
    let (after, then, counts) = read_after(60, None);
    assert!((160..170).contains(&then));
    assert_eq!((counts.held, counts.expired), (2, 1));
    let items = items(&after, then);
    assert_eq!(items[&b"long"[..]].2, 100_000);
    assert_eq!(items[&b"for ever"[..]].3, 90);
    // A host's clock that was set back makes nothing younger.
    let (_, then, counts) = read_after(-50, None);
    assert!((100..110).contains(&then));
    assert_eq!((counts.held, counts.expired), (3, 0));
    // A flush that was to come comes, while nobody serves or later.
    assert_eq!(read_after(60, Some(150)).2.held, 0);
    let (after, ..) = read_after(10, Some(150));
    assert_eq!(after[0].flush_due(), Some(150));
    assert!(Clock::resume(at.zero_unix - i64::from(u32::MAX), 5).is_none());
    let header = Header {
        zero_unix: i64::MIN,
        ..at
    };
    let old = read(&file(&before, &header, 1000), &mut partitions(1, 1 << 20));
    assert!(matches!(old, Err(Damage::Time)), "{old:?}");
}

#[test]
fn the_newest_win_where_not_all_fit() {
    let (now, count) = (100, 4000_u32);
    for (from, to) in [(1, 1), (4, 1), (4, 4), (2, 8)] {
        let mut before = partitions(from, 8 << 20);
        let hasher = Hasher::new(SEED);
        for number in 0..count {
            let name = number.to_le_bytes();
            let key = hasher.key(&name);
            let contents = Contents {
                value: &[7; 1000],
                ..Contents::default()
            };
            before[key.partition(from)]
                .set(key, now, &contents)
                .expect("it fits");
        }
        // A quarter of it fits.
        let mut after = partitions(to, (1 << 20) / to);
        let (_, counts) =
            read(&file(&before, &header(now, &before), 20_000), &mut after).expect("whole");
        assert_eq!(counts.held + counts.unfit, count.into());
        assert!((900..1100).contains(&counts.held), "{counts:?}");
        let kept: Vec<u32> = items(&after, now)
            .keys()
            .map(|key| u32::from_le_bytes(key[..4].try_into().expect("a number")))
            .collect();
        let newest = kept
            .iter()
            .filter(|&&number| number >= count - 1500)
            .count();
        assert!(
            newest * 10 >= kept.len() * 9,
            "{newest} of {}, {from} to {to}",
            kept.len()
        );
    }
    // What is too large for the partitions that there are is left out.
    let mut before = partitions(1, 8 << 20);
    let hasher = Hasher::new(SEED);
    for (name, bytes) in [("small", 10), ("large", 100_000)] {
        let contents = vec![1; bytes];
        before[0]
            .set(hasher.key(name.as_bytes()), now, &Contents::of(&contents))
            .expect("it fits");
    }
    let mut after = partitions(1, 10_000);
    let (_, counts) = read(&file(&before, &header(now, &before), 1000), &mut after).expect("whole");
    assert_eq!((counts.held, counts.unfit), (1, 1));
}

#[test]
fn what_is_cut_anywhere_is_not_read() {
    let now = 100;
    let mut before = partitions(2, 1 << 20);
    fill(&mut before, 60, now);
    let whole = file(&before, &header(now, &before), 700);
    assert!(whole.len() > HEADER_BYTES + 20 * BLOCK_HEADER_BYTES);
    for length in 0..whole.len() {
        let mut after = partitions(1, 1 << 17);
        let cut = read(&whole[..length], &mut after);
        assert!(matches!(cut, Err(Damage::Short)), "{length}: {cut:?}");
    }
    let longer = [&whole[..], b"x"].concat();
    let read_longer = read(&longer, &mut partitions(1, 1 << 20));
    assert!(matches!(read_longer, Err(Damage::Long)), "{read_longer:?}");
    // Blocks that are whole, but not those that there were.
    let mut other = partitions(2, 1 << 20);
    fill(&mut other, 61, now);
    let end = whole.len() - BLOCK_HEADER_BYTES;
    let other = file(&other, &header(now, &before), 700);
    let mixed = [&whole[..end], &other[other.len() - BLOCK_HEADER_BYTES..]].concat();
    let read_mixed = read(&mixed, &mut partitions(1, 1 << 20));
    assert!(
        matches!(read_mixed, Err(Damage::Altered("end"))),
        "{read_mixed:?}"
    );
}

#[test]
fn what_somebody_else_wrote_is_not_read() {
    for (text, expected) in [
        (&b""[..], "ends in the middle"),
        (b"short", "ends in the middle"),
        (&[b'x'; 5000], "not a file of items"),
        (
            b"RSCITEMS\x03\0\0\0....................................",
            "of version 3",
        ),
    ] {
        let damage = read(text, &mut partitions(1, 1 << 20)).expect_err("foreign");
        assert!(damage.to_string().contains(expected), "{damage}");
    }
}

/// What has all its checksums, and could not be served.
#[test]
fn what_no_server_could_have_is_not_read() {
    let now = 100;
    let mut before = partitions(1, 1 << 20);
    fill(&mut before, 10, now);
    let whole = header(now, &before);
    let last = |last_cas| Header { last_cas, ..whole };
    let read_with = |header| {
        let file = file(&before, &header, 700);
        read(&file, &mut partitions(1, 1 << 20)).map(|(_, counts)| counts.held)
    };
    assert!(read_with(last((1 << 62) - 1)).is_ok());
    for last_cas in [1 << 63, u64::MAX] {
        let damage = read_with(last(last_cas)).expect_err("no numbers are left");
        assert!(matches!(damage, Damage::Altered("header")));
    }
    let mut writer = Writer::new(Vec::new(), &whole).expect("memory");
    let record = Record {
        key: b"",
        value: b"nobody's",
        flags: 0,
        expires_at: 0,
        accessed_at: 0,
        cas: 0,
        marks: Marks::default(),
    };
    writer.add(0, &record).expect("memory");
    let (file, _) = writer.finish().expect("memory");
    let damage = read(&file, &mut partitions(1, 1 << 20)).expect_err("no key");
    assert!(matches!(damage, Damage::Altered("content")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Wherever a byte is another one, nothing is read: neither wrong items nor a part of them.
    #[test]
    fn what_is_altered_is_not_read(at in any::<prop::sample::Index>(), with in 1..=255_u8, block_bytes in 1..3000_usize) {
        let mut before = partitions(2, 1 << 20);
        fill(&mut before, 100, 100);
        let mut bytes = file(&before, &header(100, &before), block_bytes);
        let at = at.index(bytes.len());
        bytes[at] ^= with;
        prop_assert!(read(&bytes, &mut partitions(2, 1 << 20)).is_err(), "{at}");
    }

    /// Nothing that anybody could put there is more than refused.
    #[test]
    fn nonsense_is_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        numbers in any::<[u32; 4]>(),
        starts_well: bool,
    ) {
        let mut file = Vec::new();
        if starts_well {
            file.extend_from_slice(&header(100, &[]).encode());
            let [partition, items, length, checksum] = numbers;
            let block = format::BlockHeader {
                kind: format::Kind::Items,
                partition,
                items: items % 100,
                bytes: if length % 2 == 0 { length } else { bytes.len() as u32 },
                checksum: if checksum % 2 == 0 { checksum } else { crc32fast::hash(&bytes) },
            };
            file.extend_from_slice(&block.encode());
        }
        file.extend_from_slice(&bytes);
        if starts_well {
            let end = format::BlockHeader { kind: format::Kind::End, partition: 0, items: numbers[1] % 100, bytes: 0, checksum: 0 };
            file.extend_from_slice(&end.encode());
        }
        _ = read(&file, &mut partitions(2, 1 << 20));
    }
}
