//! The file that the cache engine's items are in between one server and the next.

use crate::input::Input;
use cached::harness::{Restored, hasher, restore};
use mica::{Config, Contents, Partition};
use std::collections::BTreeMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

const HEADER_BYTES: usize = 48;
const BLOCK_HEADER_BYTES: usize = 24;
const ITEM_HEADER_BYTES: usize = 26;

/// Larger ones leave no numbers for the items to come.
const CAS_MAX: u64 = 1 << 63;

/// A file is refused in words, or it is whole and each of its items is there as the file has it, unless its time is over
/// or there is no room; then the cache goes on from there, and what it keeps is that again.
pub fn run(data: &[u8]) {
    let Some(input) = Input::new(data) else {
        return;
    };
    let mut file = input.stream.clone();
    if input.choice(0) {
        seal(&mut file, input.choice(1), input.choice(2));
    }
    let (partitions, workers) = match (input.choice(3), input.choice(4)) {
        (true, true) => (1, 1),
        (true, false) => (2, 2),
        (false, true) => (4, 1),
        (false, false) => (1, 3),
    };
    let log_bytes = if input.choice(5) { 2 << 10 } else { 64 << 10 };
    let layout = Config::for_log_bytes(log_bytes);
    let read = read(&file);
    let began = Instant::now();
    let restored = restore(&file, layout, partitions, workers);
    let (read, restored) = match (read, restored) {
        (Some(read), Ok(restored)) => (read, restored),
        (None, Ok(_)) => panic!("a file that is none was believed"),
        (read, Err(said)) => {
            assert!(!said.is_empty());
            assert!(read.is_none() || said.contains("clock"), "refused: {said}");
            return;
        }
    };
    // The clock may have gone on since, and on a busy host for long.
    let since = began.elapsed().as_secs() as u32 + 2;
    let items = check(&read, &restored, since);
    check_goes_on(&read, restored, items, layout);
}

/// Items by key, as the file or a partition has them.
type Items = BTreeMap<Vec<u8>, Vec<Item>>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    value: Vec<u8>,
    flags: u32,
    expires_at: u32,
    accessed_at: u32,
    cas: u64,
}

/// What a file holds.
struct Read {
    flush_due: u32,
    last_cas: u64,
    items: Items,
    records: u64,
}

/// Everything that is in the partitions is in the file; where no key is in it twice, everything is accounted for.
fn check(read: &Read, restored: &Restored, since: u32) -> Items {
    let (now, counts) = (restored.now, &restored.counts);
    let items = items(&restored.partitions, now);
    for (key, held) in &items {
        let [held] = &held[..] else {
            panic!("a key is there twice")
        };
        let written = read.items.get(key).expect("an item of the file");
        let is_it = |item: &Item| {
            let used_at = item.accessed_at.min(held.accessed_at);
            Item {
                accessed_at: used_at,
                ..item.clone()
            } == Item {
                accessed_at: used_at,
                ..held.clone()
            }
        };
        assert!(written.iter().any(is_it), "{held:?} is none of {written:?}");
        assert!(held.accessed_at <= now);
    }
    let is_close = |at: u32| at != 0 && (now.saturating_sub(since)..=now).contains(&at);
    let any_close = read
        .items
        .values()
        .flatten()
        .any(|item| is_close(item.expires_at));
    if any_close || is_close(read.flush_due) {
        return items;
    }
    let is_over =
        |item: &&Item| read.flush_due <= now || (item.expires_at != 0 && item.expires_at <= now);
    let over = read.items.values().flatten().filter(is_over).count() as u64;
    assert_eq!(counts.expired, over);
    assert_eq!(counts.held, items.len() as u64);
    if read.items.values().all(|same| same.len() == 1) {
        assert_eq!(counts.held + counts.expired + counts.unfit, read.records);
    }
    items
}

/// What is stored next has a number of its own, and what is written is what is there.
fn check_goes_on(read: &Read, restored: Restored, items: Items, layout: Config) {
    let now = restored.now;
    let file = restored.save().expect("memory");
    let Some(again) = self::read(&file) else {
        // Where numbers are so large, as no server's are, those of the next one are too large.
        return assert!(read.last_cas > CAS_MAX / 2);
    };
    // The clock may have gone on.
    let lasting = |items: Items| -> Items {
        let lasts = |(_, same): &(Vec<u8>, Vec<Item>)| {
            same.iter()
                .all(|item| item.expires_at == 0 || item.expires_at > now.saturating_add(600))
        };
        items.into_iter().filter(lasts).collect()
    };
    let items = lasting(items);
    // Of what was flushed nothing is kept.
    if read.flush_due == u32::MAX || read.flush_due > now.saturating_add(600) {
        assert_eq!(lasting(again.items), items);
    }
    let mut second = restore(&file, layout, 1, 1).expect("a whole file");
    let held = self::items(&second.partitions, second.now);
    for (key, held) in lasting(held) {
        assert_eq!(items.get(&key), Some(&held));
    }
    let hasher = hasher();
    let (now, partition) = (second.now, &mut second.partitions[0]);
    let mut last = read.last_cas;
    for number in 0_u32..3000 {
        let key = number.to_le_bytes();
        let stored = partition.set(hasher.key(&key), now, &Contents::of(&key));
        let cas = stored.expect("it fits");
        assert!(cas > last, "{cas} after {last}");
        last = cas;
        let found = partition.get(hasher.key(&key), now).map(|item| item.cas);
        if read.flush_due == u32::MAX {
            assert_eq!(found, Some(cas));
        }
    }
}

fn items(partitions: &[Partition], now: u32) -> Items {
    let mut items = Items::new();
    for partition in partitions {
        partition.for_each_live(now, |live| {
            let item = Item {
                value: live.item.value.to_vec(),
                flags: live.item.flags,
                expires_at: live.item.expires_at,
                accessed_at: live.item.accessed_at,
                cas: live.own_cas,
            };
            items.entry(live.key.to_vec()).or_default().push(item);
        });
    }
    items
}

/// Read a file as its format has it, one field after the other; `None` unless all of it is as it should be.
fn read(file: &[u8]) -> Option<Read> {
    let header = file.get(..HEADER_BYTES)?;
    let last_cas = u64_at(header, 28)?;
    let is_header = header[..8] == *b"RSCITEMS" && u32_at(header, 8)? == 2 && is_sealed(header);
    if !is_header || last_cas >= CAS_MAX {
        return None;
    }
    let (mut items, mut records) = (Items::new(), 0);
    let mut at = HEADER_BYTES;
    loop {
        let block = file.get(at..at + BLOCK_HEADER_BYTES)?;
        at += BLOCK_HEADER_BYTES;
        if !is_sealed(block) {
            return None;
        }
        let count = u32_at(block, 8)?;
        match &block[..4] {
            b"END." => {
                let all = u64::from(u32_at(block, 4)?) << 32 | u64::from(count);
                return (all == records && at == file.len()).then_some(Read {
                    flush_due: u32_at(header, 24)?,
                    last_cas,
                    items,
                    records,
                });
            }
            b"ITEM" => {}
            _ => return None,
        }
        let content = file.get(at..at.checked_add(u32_at(block, 12)? as usize)?)?;
        at += content.len();
        if crc32fast::hash(content) != u32_at(block, 16)? {
            return None;
        }
        let mut rest = content;
        for _ in 0..count {
            let (key, item, behind) = take_item(rest)?;
            items.entry(key).or_default().push(item);
            records += 1;
            rest = behind;
        }
        if !rest.is_empty() {
            return None;
        }
    }
}

fn take_item(content: &[u8]) -> Option<(Vec<u8>, Item, &[u8])> {
    let (head, rest) = content.split_at_checked(ITEM_HEADER_BYTES)?;
    let (key, rest) = rest.split_at_checked(head[0].into())?;
    let (value, rest) = rest.split_at_checked(u32_at(head, 22)? as usize)?;
    let item = Item {
        value: value.to_vec(),
        flags: u32_at(head, 2)?,
        expires_at: u32_at(head, 6)?,
        accessed_at: u32_at(head, 10)?,
        cas: u64_at(head, 14)?,
    };
    (!key.is_empty()).then(|| (key.to_vec(), item, rest))
}

/// Make checksums right, which an engine would hardly come upon; likewise, if asked for, numbers of items, and the time of
/// writing, as if it were now.
fn seal(file: &mut [u8], counts: bool, time: bool) {
    let Some(header) = file.get_mut(..HEADER_BYTES) else {
        return;
    };
    if time {
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let written_at = u32_at(header, 20).unwrap_or(0);
        let zero = unix.wrapping_sub(written_at.into());
        header[12..20].copy_from_slice(&zero.to_le_bytes());
    }
    put_checksum(header);
    let (mut at, mut all) = (HEADER_BYTES, 0_u32);
    while let Some(block) = file.get(at..at + BLOCK_HEADER_BYTES) {
        let is_end = block.starts_with(b"END.");
        let start = at + BLOCK_HEADER_BYTES;
        let bytes = if is_end {
            0
        } else {
            u32_at(block, 12).unwrap_or(0) as usize
        };
        let Some(content) = file.get(start..start.saturating_add(bytes)) else {
            return;
        };
        let checksum = crc32fast::hash(content);
        let items = std::iter::successors(Some(content), |rest| {
            take_item(rest).map(|(_, _, behind)| behind)
        });
        let items = items.count() as u32 - 1;
        let block = &mut file[at..start];
        if counts {
            let count = if is_end { all } else { items };
            block[8..12].copy_from_slice(&count.to_le_bytes());
        }
        all += items;
        block[16..20].copy_from_slice(&checksum.to_le_bytes());
        put_checksum(block);
        at = start + bytes;
        if is_end {
            return;
        }
    }
}

fn put_checksum(bytes: &mut [u8]) {
    let (body, checksum) = bytes.split_at_mut(bytes.len() - 4);
    checksum.copy_from_slice(&crc32fast::hash(body).to_le_bytes());
}

fn is_sealed(bytes: &[u8]) -> bool {
    let (body, checksum) = bytes.split_at(bytes.len() - 4);
    *checksum == crc32fast::hash(body).to_le_bytes()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}
