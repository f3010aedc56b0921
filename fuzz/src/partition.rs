//! The store of the cache engine, against a map.

use mica::{
    Config, Contents, Entry, Error, Eviction, Hasher, Item, Key, Lookup, Marks, Mode, Partition,
    Reader,
};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Keys that operations are about.
const KEYS: u8 = 48;

/// Whatever is done with it, a partition and its readers have the last value stored under a key, with its flags, its
/// CAS number and its second of expiration, or nothing; what it lost it counted, and in store mode that is nothing; and
/// no CAS number comes twice.
pub fn run(data: &[u8]) {
    let Some((&[size, buckets, settings], operations)) = data.split_first_chunk() else {
        return;
    };
    let log_bytes = 1500 + usize::from(size) * 64;
    let has_readers = settings & 1 == 1;
    let mode = if settings & 4 == 4 {
        Mode::Store
    } else {
        Mode::Cache
    };
    let has_large = mode == Mode::Cache && settings & 8 == 8;
    let config = Config {
        mode,
        log_bytes,
        large_bytes: if has_large { log_bytes / 2 } else { 0 },
        buckets_min: 1,
        buckets_max: usize::from(buckets % 8) + 1,
        item_bytes_max: log_bytes / 2 - 16,
        eviction: if settings & 2 == 2 {
            Eviction::FirstWritten
        } else {
            Eviction::LeastRecentlyUsed
        },
        has_readers,
    };
    let hasher = Hasher::new(settings.into());
    let partition = Partition::new(config, hasher.clone()).expect("a valid configuration");
    let mut pair = Pair {
        reader: partition.reader(),
        partition,
        hasher,
        model: HashMap::new(),
        now: 10,
        flush_due: None,
        values: 0,
        losses: 0,
        out: Vec::new(),
    };
    assert_eq!(pair.reader.is_some(), has_readers);
    let mut operations = Bytes(operations.iter());
    while let Some(code) = operations.next() {
        pair.expire();
        pair.apply(code, &mut operations);
    }
    pair.settle();
}

struct Bytes<'a>(std::slice::Iter<'a, u8>);

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        self.0.next().copied()
    }

    fn byte(&mut self) -> u8 {
        self.next().unwrap_or_default()
    }

    fn key(&mut self) -> u8 {
        self.byte() % KEYS
    }

    /// Most are small, some do not fit.
    fn length(&mut self) -> usize {
        let byte = usize::from(self.byte());
        match byte {
            0..128 => byte,
            _ => (byte - 128) * 80,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Stored {
    value: Vec<u8>,
    flags: u32,
    expires_at: u32,
    cas: u64,
    marks: Marks,
}

impl From<Item<'_>> for Stored {
    fn from(item: Item<'_>) -> Self {
        Self {
            value: item.value.to_vec(),
            flags: item.flags,
            expires_at: item.expires_at,
            cas: item.cas,
            marks: item.marks.without(Marks::FETCHED),
        }
    }
}

struct Pair {
    partition: Partition,
    reader: Option<Reader>,
    hasher: Hasher,
    model: HashMap<u8, Stored>,
    now: u32,
    flush_due: Option<u32>,
    /// Values made so far.
    values: u32,
    /// Items that were there by the model and not in the partition.
    losses: u64,
    out: Vec<u8>,
}

fn key_bytes(key: u8) -> &'static [u8] {
    static NAMES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| (0..KEYS).map(name).collect());
    &NAMES[usize::from(key)]
}

/// Keys of different lengths, some of the longest, some the beginning of others.
fn name(key: u8) -> Vec<u8> {
    match key {
        0 => Vec::new(),
        1..8 => vec![b'k'; key.into()],
        8..12 => vec![b'k'; mica::KEY_BYTES_MAX - usize::from(key - 8)],
        _ => format!("key-{key:0width$}", width = usize::from(key % 30)).into_bytes(),
    }
}

impl Pair {
    /// A value like no other: its bytes follow from a counter.
    fn fresh(&mut self, bytes: usize) -> Vec<u8> {
        self.values += 1;
        let mut value = self.values.to_le_bytes().repeat(bytes.div_ceil(4));
        value.truncate(bytes);
        value
    }

    fn expire(&mut self) {
        if self.flush_due.is_some_and(|due| due <= self.now) {
            self.flush_due = None;
            self.model.clear();
        }
        let now = self.now;
        self.model
            .retain(|_, stored| stored.expires_at == 0 || stored.expires_at > now);
    }

    fn lose(&mut self, key: u8) {
        self.losses += u64::from(self.model.remove(&key).is_some());
    }

    fn deadline(&self, choice: u8) -> u32 {
        match choice % 8 {
            0..4 => 0,
            4 => 1,
            5 => u32::MAX,
            more => self.now + u32::from(more) - 5,
        }
    }

    fn contents<'v>(&self, value: &'v [u8], choice: u8) -> Contents<'v> {
        Contents {
            value,
            flags: if choice & 16 == 0 { 0 } else { self.values },
            expires_at: self.deadline(choice),
            marks: if choice & 32 == 0 {
                Marks::default()
            } else {
                Marks::STALE.with(Marks::BINARY_KEY)
            },
            // Far from what follows from a place.
            cas: if choice & 64 == 0 {
                0
            } else {
                u64::MAX - u64::from(self.values)
            },
        }
    }

    /// What is stored from now on, which has a CAS number that the key's item before did not have.
    fn note(&mut self, key: u8, contents: &Contents<'_>, cas: u64) {
        if contents.cas != 0 {
            assert_eq!(cas, contents.cas);
        }
        let stored = Stored {
            value: contents.value.to_vec(),
            flags: contents.flags,
            expires_at: contents.expires_at,
            cas,
            marks: contents.marks,
        };
        let before = self.model.insert(key, stored);
        assert!(
            before.is_none_or(|before| before.cas != cas),
            "a CAS number twice"
        );
    }

    fn apply(&mut self, code: u8, operations: &mut Bytes<'_>) {
        let key = operations.key();
        let name = key_bytes(key);
        let hashed = self.hasher.key(name);
        let now = self.now;
        match code % 16 {
            0..3 => self.get(key, hashed),
            3..6 => {
                let (length, choice) = (operations.length(), operations.byte());
                let value = self.fresh(length);
                let contents = self.contents(&value, choice);
                let result = if code & 16 == 0 {
                    self.partition.set(hashed, now, &contents)
                } else {
                    self.partition.entry(hashed, now).set(contents)
                };
                match result {
                    Ok(cas) => self.note(key, &contents, cas),
                    Err(error) => self.assert_refused(&error, name.len() + length),
                }
            }
            6 => {
                let (length, choice) = (operations.length(), operations.byte());
                let value = self.fresh(length);
                let contents = self.contents(&value, choice);
                match self.partition.entry(hashed, now) {
                    Entry::Occupied(mut entry) => {
                        entry.keep();
                        let found = Stored::from(entry.item());
                        self.assert_known(key, &found);
                    }
                    Entry::Vacant(entry) => {
                        let result = entry.insert(contents);
                        self.lose(key);
                        match result {
                            Ok(cas) => self.note(key, &contents, cas),
                            Err(error) => self.assert_refused(&error, name.len() + length),
                        }
                    }
                }
            }
            7 => {
                let (front, back) = (operations.length(), operations.byte());
                let (front, back) = (self.fresh(front), self.fresh(usize::from(back) / 4));
                let wanted = if code & 16 == 0 {
                    0
                } else {
                    u64::MAX - u64::from(self.values)
                };
                let Entry::Occupied(entry) = self.partition.entry(hashed, now) else {
                    return self.lose(key);
                };
                let result = entry.join(&front, &back, wanted);
                let stored = self.model.get_mut(&key).expect("it was there");
                let value = [&front[..], &stored.value, &back].concat();
                match result {
                    Ok(cas) => {
                        assert_ne!(cas, stored.cas);
                        stored.value = value;
                        stored.cas = cas;
                        stored.marks = stored.marks.without(Marks::STALE).without(Marks::RENEWING);
                    }
                    Err(error) => self.assert_refused(&error, name.len() + value.len()),
                }
            }
            8 => self.occupied(key, hashed, |entry, stored| {
                let cas = entry.edit(<[u8]>::reverse);
                stored.value.reverse();
                assert_ne!(cas, stored.cas);
                stored.cas = cas;
            }),
            9 => {
                let expires_at = self.deadline(operations.byte());
                self.occupied(key, hashed, |entry, stored| {
                    entry.set_expires_at(expires_at);
                    stored.expires_at = expires_at;
                });
            }
            10 => {
                let wanted = match operations.byte() {
                    choice @ 0..16 => {
                        u64::MAX - 1_000_000 - u64::from(self.values) - u64::from(choice)
                    }
                    _ => 0,
                };
                self.occupied(key, hashed, |entry, stored| {
                    let cas = entry.renew_cas(wanted);
                    assert!(wanted == 0 || wanted == cas);
                    stored.cas = cas;
                });
            }
            11 => {
                let marks = match operations.byte() & 3 {
                    0 => Marks::default(),
                    1 => Marks::STALE,
                    2 => Marks::RENEWING,
                    _ => Marks::STALE.with(Marks::BINARY_KEY),
                };
                self.occupied(key, hashed, |entry, stored| {
                    entry.note_hit();
                    entry.set_marks(marks);
                    stored.marks = marks;
                });
            }
            12 => {
                let Entry::Occupied(entry) = self.partition.entry(hashed, now) else {
                    return self.lose(key);
                };
                entry.remove();
                assert!(self.model.remove(&key).is_some(), "it was not there");
            }
            13 => {
                // Many at once, fetched ahead.
                let names = (key..KEYS).map(key_bytes);
                let keys: Vec<_> = names.map(|name| self.hasher.key(name)).collect();
                let mut found = Vec::new();
                self.partition.prefetched(&keys, |partition, _, key| {
                    found.push(partition.get(key, now).map(Stored::from));
                });
                for (key, found) in (key..KEYS).zip(found) {
                    self.look(key, found);
                }
            }
            14 => self.now += 1 + u32::from(code >> 6) * 100,
            _ => match code >> 4 {
                0..2 => {
                    self.partition.flush();
                    self.flush_due = None;
                    self.model.clear();
                }
                2 => {
                    let due = now + u32::from(key % 4) + 1;
                    self.partition.flush_at(due, now);
                    self.flush_due = Some(due);
                }
                _ => self.settle(),
            },
        }
    }

    /// Of an item whose key and value have so many bytes.
    fn assert_refused(&self, error: &Error, bytes: usize) {
        let is_too_large = mica::HEADER_BYTES + bytes > self.partition.item_bytes_max();
        match error {
            Error::Full { .. } => assert!(!is_too_large && self.partition.free_bytes().is_some()),
            _ => assert!(is_too_large, "{error}"),
        }
    }

    fn assert_known(&self, key: u8, found: &Stored) {
        assert_eq!(Some(found), self.model.get(&key), "key {key}");
    }

    /// Change an item that is there.
    fn occupied(
        &mut self,
        key: u8,
        hashed: Key<'_>,
        change: impl FnOnce(&mut mica::Occupied<'_, '_>, &mut Stored),
    ) {
        let Entry::Occupied(mut entry) = self.partition.entry(hashed, self.now) else {
            return self.lose(key);
        };
        let stored = self.model.get_mut(&key).expect("it was there");
        change(&mut entry, stored);
        // Changing it may have moved it.
        assert_eq!(Stored::from(entry.item()), *stored, "key {key}");
    }

    fn look(&mut self, key: u8, found: Option<Stored>) {
        match found {
            Some(found) => self.assert_known(key, &found),
            None => self.lose(key),
        }
    }

    /// What the partition has under `key`, and its reader.
    fn get(&mut self, key: u8, hashed: Key<'_>) {
        let told = self.reader.as_ref().map(|reader| {
            self.out.clear();
            let told = reader.get(hashed, self.now, &mut self.out, |out, front| {
                out.extend_from_slice(&front.cas.to_le_bytes());
                out.extend_from_slice(&front.flags.to_le_bytes());
                assert!(front.value_bytes <= self.partition.log_bytes());
            });
            (told, std::mem::take(&mut self.out))
        });
        let found = self.partition.get(hashed, self.now).map(Stored::from);
        if let Some((told, out)) = told {
            let expected = found.as_ref().map(|found| {
                let front = [&found.cas.to_le_bytes()[..], &found.flags.to_le_bytes()].concat();
                [front, found.value.clone()].concat()
            });
            match told {
                Lookup::Hit { .. } => assert_eq!(Some(out), expected, "a reader, key {key}"),
                Lookup::Miss => assert_eq!(None, expected, "a reader, key {key}"),
                Lookup::Ask => assert!(out.is_empty()),
            }
        }
        self.look(key, found);
    }

    /// Look at every key, without counting that as a hit, which might push others out: what is counted is exactly what
    /// can be reached.
    fn settle(&mut self) {
        self.expire();
        let (mut items, mut most_bytes) = (0, 0);
        for key in 0..KEYS {
            let name = key_bytes(key);
            let found = match self.partition.entry(self.hasher.key(name), self.now) {
                Entry::Occupied(entry) => Some(Stored::from(entry.item())),
                Entry::Vacant(_) => None,
            };
            if let Some(found) = &found {
                items += 1;
                most_bytes += mica::HEADER_BYTES + name.len() + found.value.len();
            }
            self.look(key, found);
        }
        let statistics = self.partition.statistics();
        assert_eq!(statistics.items, items);
        assert!(statistics.bytes as usize <= most_bytes.min(self.partition.log_bytes()));
        assert!(self.losses <= statistics.evictions + statistics.bucket_evictions);
        if let Some(free) = self.partition.free_bytes() {
            assert_eq!(self.losses, 0);
            assert!(free + statistics.bytes as usize <= self.partition.log_bytes());
            assert!(statistics.items > 0 || free == self.partition.log_bytes() / 8 * 8);
        }
    }
}
