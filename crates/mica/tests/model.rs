//! A partition against a map: what it returns was the last value stored, and what it lost it counted. In store mode it
//! loses nothing, and what it refuses changes nothing.

use mica::{Config, Contents, Entry, Error, Hasher, Item, Marks, Mode, Partition};
use proptest::prelude::*;
use std::collections::HashMap;

#[derive(Debug, Clone)]
enum Operation {
    Get(u16),
    Set {
        key: u16,
        bytes: usize,
        expires_in: u32,
    },
    Add {
        key: u16,
        bytes: usize,
    },
    Join {
        key: u16,
        front: usize,
        back: usize,
    },
    Edit(u16),
    Touch {
        key: u16,
        expires_in: u32,
    },
    Delete(u16),
    Flush,
    FlushIn(u32),
    Wait(u32),
}

fn operations(keys: u16, bytes_max: usize) -> impl Strategy<Value = Vec<Operation>> {
    let key = 0..keys;
    let bytes = 0..bytes_max;
    let expires_in = prop_oneof![3 => Just(0_u32), 1 => 1..5_u32];
    let one = prop_oneof![
        8 => key.clone().prop_map(Operation::Get),
        8 => (key.clone(), bytes.clone(), expires_in.clone()).prop_map(|(key, bytes, expires_in)| Operation::Set { key, bytes, expires_in }),
        2 => (key.clone(), bytes).prop_map(|(key, bytes)| Operation::Add { key, bytes }),
        2 => (key.clone(), 0..40_usize, 0..40_usize).prop_map(|(key, front, back)| Operation::Join { key, front, back }),
        1 => key.clone().prop_map(Operation::Edit),
        1 => (key.clone(), expires_in).prop_map(|(key, expires_in)| Operation::Touch { key, expires_in }),
        2 => key.prop_map(Operation::Delete),
        1 => (0..60_u32).prop_map(|_| Operation::Wait(1)),
    ];
    // Flushes are rare, else nothing ever fills up.
    let one = prop_oneof![
        200 => one,
        1 => Just(Operation::Flush),
        1 => (1..4_u32).prop_map(Operation::FlushIn),
    ];
    prop::collection::vec(one, 1..600)
}

#[derive(Debug, Clone, PartialEq)]
struct Stored {
    value: Vec<u8>,
    flags: u32,
    expires_at: u32,
    cas: u64,
}

impl From<Item<'_>> for Stored {
    fn from(item: Item<'_>) -> Self {
        Self {
            value: item.value.to_vec(),
            flags: item.flags,
            expires_at: item.expires_at,
            cas: item.cas,
        }
    }
}

struct Pair {
    partition: Partition,
    hasher: Hasher,
    model: HashMap<u16, Stored>,
    now: u32,
    flush_due: Option<u32>,
    counter: u32,
    /// Items that were there by the model and not in the partition.
    losses: u64,
    /// Writes for which there was no room.
    refusals: u64,
}

impl Pair {
    fn new(config: Config) -> Self {
        let hasher = Hasher::new(7);
        Self {
            partition: Partition::new(config, hasher.clone()).expect("a valid configuration"),
            hasher,
            model: HashMap::new(),
            now: 10,
            flush_due: None,
            counter: 0,
            losses: 0,
            refusals: 0,
        }
    }

    /// What was not stored was too large, or there was no room in store mode.
    fn refused(&mut self, error: Error, key: &[u8], bytes: usize) -> Result<(), TestCaseError> {
        let is_too_large = mica::HEADER_BYTES + key.len() + bytes > self.partition.item_bytes_max();
        match error {
            Error::Full { .. } => {
                prop_assert!(self.partition.free_bytes().is_some() && !is_too_large);
                self.refusals += 1;
            }
            error => prop_assert!(is_too_large, "{error}"),
        }
        Ok(())
    }

    /// A value that no other call returned: its bytes follow from a counter.
    fn fresh(&mut self, bytes: usize) -> Vec<u8> {
        self.counter += 1;
        self.counter
            .to_le_bytes()
            .iter()
            .copied()
            .cycle()
            .take(bytes)
            .collect()
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

    fn lose(&mut self, key: u16) {
        self.losses += u64::from(self.model.remove(&key).is_some());
    }

    fn deadline(&self, expires_in: u32) -> u32 {
        if expires_in == 0 {
            0
        } else {
            self.now + expires_in
        }
    }

    /// What the partition holds under `key` must be what the model holds; a loss is noted in the model.
    fn get(&mut self, key: u16) -> Result<(), TestCaseError> {
        let name = key_bytes(key);
        match self.partition.get(self.hasher.key(&name), self.now) {
            Some(item) => prop_assert_eq!(
                Some(&Stored::from(item)),
                self.model.get(&key),
                "key {}",
                key
            ),
            None => self.lose(key),
        }
        Ok(())
    }

    fn apply(&mut self, operation: &Operation) -> Result<(), TestCaseError> {
        self.expire();
        match *operation {
            Operation::Get(key) => self.get(key)?,
            Operation::Set {
                key,
                bytes,
                expires_in,
            } => {
                let value = self.fresh(bytes);
                let (flags, expires_at) = (self.counter, self.deadline(expires_in));
                let contents = Contents {
                    value: &value,
                    flags,
                    expires_at,
                    marks: Marks::default(),
                    cas: 0,
                };
                let name = key_bytes(key);
                match self
                    .partition
                    .entry(self.hasher.key(&name), self.now)
                    .set(contents)
                {
                    Ok(cas) => {
                        self.model.insert(
                            key,
                            Stored {
                                value,
                                flags,
                                expires_at,
                                cas,
                            },
                        );
                    }
                    Err(error) => self.refused(error, &name, bytes)?,
                }
            }
            Operation::Add { key, bytes } => {
                let value = self.fresh(bytes);
                let name = key_bytes(key);
                match self.partition.entry(self.hasher.key(&name), self.now) {
                    Entry::Occupied(_) => prop_assert!(self.model.contains_key(&key)),
                    Entry::Vacant(entry) => {
                        self.losses += u64::from(self.model.remove(&key).is_some());
                        match entry.insert(Contents::of(&value)) {
                            Ok(cas) => {
                                let stored = Stored {
                                    value,
                                    flags: 0,
                                    expires_at: 0,
                                    cas,
                                };
                                self.model.insert(key, stored);
                            }
                            Err(error) => self.refused(error, &name, bytes)?,
                        }
                    }
                }
            }
            Operation::Join { key, front, back } => {
                let (front, back) = (self.fresh(front), self.fresh(back));
                let name = key_bytes(key);
                if let Entry::Occupied(entry) =
                    self.partition.entry(self.hasher.key(&name), self.now)
                {
                    let stored = self.model.get_mut(&key).expect("the partition had it");
                    let joined = [&front[..], &stored.value, &back].concat();
                    match entry.join(&front, &back, 0) {
                        Ok(cas) => {
                            prop_assert!(cas > stored.cas || self.partition.free_bytes().is_none());
                            (stored.value, stored.cas) = (joined, cas);
                        }
                        Err(error) => self.refused(error, &name, joined.len())?,
                    }
                } else {
                    self.lose(key);
                }
            }
            Operation::Edit(key) => {
                let name = key_bytes(key);
                if let Entry::Occupied(mut entry) =
                    self.partition.entry(self.hasher.key(&name), self.now)
                {
                    let stored = self.model.get_mut(&key).expect("the partition had it");
                    stored.cas = entry.edit(<[u8]>::reverse);
                    stored.value.reverse();
                } else {
                    self.lose(key);
                }
            }
            Operation::Touch { key, expires_in } => {
                let expires_at = self.deadline(expires_in);
                let name = key_bytes(key);
                if let Entry::Occupied(mut entry) =
                    self.partition.entry(self.hasher.key(&name), self.now)
                {
                    entry.set_expires_at(expires_at);
                    self.model
                        .get_mut(&key)
                        .expect("the partition had it")
                        .expires_at = expires_at;
                } else {
                    self.lose(key);
                }
            }
            Operation::Delete(key) => {
                let name = key_bytes(key);
                if let Entry::Occupied(entry) =
                    self.partition.entry(self.hasher.key(&name), self.now)
                {
                    prop_assert!(self.model.contains_key(&key));
                    entry.remove();
                    self.model.remove(&key);
                } else {
                    self.lose(key);
                }
            }
            Operation::Flush => {
                self.partition.flush();
                self.flush_due = None;
                self.model.clear();
            }
            Operation::FlushIn(seconds) => {
                self.partition.flush_at(self.now + seconds, self.now);
                self.flush_due = Some(self.now + seconds);
            }
            Operation::Wait(seconds) => self.now += seconds,
        }
        Ok(())
    }

    /// Look at every key, without counting that as a hit, which might push others out: `items` and `bytes` are
    /// exactly what can be reached.
    fn settle(&mut self, keys: u16) -> Result<(), TestCaseError> {
        self.expire();
        let mut items = 0;
        for key in 0..keys {
            let name = key_bytes(key);
            match self.partition.entry(self.hasher.key(&name), self.now) {
                Entry::Occupied(entry) => {
                    prop_assert_eq!(
                        Some(&Stored::from(entry.item())),
                        self.model.get(&key),
                        "key {}",
                        key
                    );
                    items += 1;
                }
                Entry::Vacant(_) => self.lose(key),
            }
        }
        let statistics = self.partition.statistics();
        prop_assert_eq!(statistics.items, items);
        prop_assert_eq!(items as usize, self.model.len());
        let contents: usize = self
            .model
            .iter()
            .map(|(&key, stored)| key_bytes(key).len() + stored.value.len())
            .sum();
        let bytes = statistics.bytes as usize;
        let most = contents + mica::HEADER_BYTES * self.model.len();
        prop_assert!((contents..=most).contains(&bytes));
        prop_assert!(bytes <= self.partition.log_bytes());
        if let Some(free) = self.partition.free_bytes() {
            prop_assert_eq!(self.losses, 0);
            prop_assert_eq!(statistics.refused, self.refusals);
            let blocks = self.partition.log_bytes() / 8 * 8 - free;
            prop_assert!((bytes..=bytes + 7 * self.model.len()).contains(&blocks));
        }
        Ok(())
    }
}

/// Keys of different lengths, some of the longest.
fn key_bytes(key: u16) -> Vec<u8> {
    let mut bytes = format!("key-{key}").into_bytes();
    if key.is_multiple_of(7) {
        bytes.resize(mica::KEY_BYTES_MAX, b'k');
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A log that wraps all the time and buckets that overflow: nothing but the last value, ever.
    #[test]
    fn under_pressure_a_hit_is_the_last_value(
        operations in operations(60, 700),
        log_bytes in 2_000..12_000_usize,
        buckets_max in 1..40_usize,
    ) {
        let mut pair = Pair::new(Config { log_bytes, buckets_min: 1, buckets_max, item_bytes_max: (log_bytes - 8) / 2, ..Config::for_log_bytes(log_bytes) });
        for (number, operation) in operations.iter().enumerate() {
            pair.apply(operation)?;
            if number % 97 == 0 {
                pair.settle(60)?;
            }
        }
        pair.settle(60)?;
        let statistics = pair.partition.statistics();
        prop_assert!(pair.losses <= statistics.evictions + statistics.bucket_evictions);
    }

    /// Blocks that are short of room all the time, and an index that is: nothing is lost, and what is removed makes
    /// room for as much.
    #[test]
    fn a_store_loses_nothing(
        operations in operations(60, 700),
        log_bytes in 2_000..30_000_usize,
        buckets_max in 1..40_usize,
    ) {
        let mut pair = Pair::new(Config { mode: Mode::Store, log_bytes, buckets_min: 1, buckets_max, item_bytes_max: log_bytes / 2, ..Config::for_log_bytes(log_bytes) });
        for (number, operation) in operations.iter().enumerate() {
            pair.apply(operation)?;
            if number % 97 == 0 {
                pair.settle(60)?;
            }
        }
        pair.settle(60)?;
        for key in 0..60 {
            pair.apply(&Operation::Delete(key))?;
        }
        pair.settle(60)?;
        prop_assert_eq!(pair.partition.free_bytes(), Some(log_bytes / 8 * 8));
        let largest = log_bytes / 16 * 8 - mica::HEADER_BYTES - key_bytes(1).len();
        for key in [1, 2] {
            pair.apply(&Operation::Set { key, bytes: largest, expires_in: 0 })?;
        }
        pair.settle(60)?;
        prop_assert_eq!(pair.model.len(), 2);
    }

    /// Items move between the log and the memory for large ones, both of which are short of room all the time.
    #[test]
    fn a_cache_with_large_items_apart_never_lies(
        operations in operations(60, 2000),
        log_bytes in 8_000..40_000_usize,
    ) {
        let config = Config { log_bytes, large_bytes: log_bytes / 2, item_bytes_max: log_bytes / 2 - 16, buckets_min: 1, buckets_max: 64, ..Config::for_log_bytes(log_bytes) };
        let mut pair = Pair::new(config);
        for (number, operation) in operations.iter().enumerate() {
            pair.apply(operation)?;
            if number % 97 == 0 {
                pair.settle(60)?;
            }
        }
        pair.settle(60)?;
        let statistics = pair.partition.statistics();
        prop_assert!(pair.losses <= statistics.evictions + statistics.bucket_evictions);
    }

    /// With room for everything, what is missing is what the index dropped, and no more.
    #[test]
    fn without_pressure_only_full_buckets_lose_items(operations in operations(200, 100), buckets_max in 1..64_usize) {
        let mut pair = Pair::new(Config { log_bytes: 1 << 20, buckets_min: 1, buckets_max, item_bytes_max: 1 << 16, ..Config::for_log_bytes(1 << 20) });
        for operation in &operations {
            pair.apply(operation)?;
        }
        pair.settle(200)?;
        prop_assert_eq!(pair.partition.statistics().evictions, 0);
        prop_assert!(pair.losses <= pair.partition.statistics().bucket_evictions);
    }
}
