//! The items, in the storages that the cache server's workers have. Partitions are the same under every access mode.

use crate::Error;
use cached::Clock;
use cached::storage::{Concurrent, Owned, SharedPartitions, Storage};
use mica::{Config, Contents, Hasher, Key, Partition, Reader};
use serde::Deserialize;
use std::sync::Arc;

/// Partitions for each core, as many as the server's workers have where they share them.
const PARTITIONS_PER_CORE: usize = 4;
/// Far more than any host has cores for.
const PARTITIONS_MAX: usize = 1 << 16;
/// Room in the log for an item of 8 + 8 bytes, and a quarter more.
const ITEM_BYTES: usize = 30;

/// Who may touch a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// A core works on its own partitions only.
    Erew,
    /// A core reads any partition, and writes to its own.
    Crew,
    /// A core reads and writes any partition; writers lock it.
    Crcw,
}

impl Access {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Erew, Self::Crew, Self::Crcw];

    /// The one of this name, in lower case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|access| access.label().to_lowercase() == name)
    }

    /// Its name in MICA's paper.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Erew => "EREW",
            Self::Crew => "CREW",
            Self::Crcw => "CRCW",
        }
    }
}

/// All items, for one access mode and number of cores.
pub struct Store {
    pub(crate) access: Access,
    pub(crate) cores: usize,
    pub(crate) hasher: Hasher,
    pub(crate) clock: Clock,
    pub(crate) storages: Storages,
    /// What the partitions are like.
    pub holds: Holds,
}

/// One storage a core.
pub(crate) enum Storages {
    Erew(Vec<Owned>),
    Crew(Vec<Concurrent>),
    Crcw(Vec<SharedPartitions>),
}

/// What the partitions of a store are like, and what they hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Holds {
    /// Partitions, of all cores together.
    pub partitions: usize,
    /// Length of each one's log.
    pub log_bytes: usize,
    /// Size of all indexes.
    pub index_bytes: usize,
    /// Memory of this process that came in huge pages while the store was filled; `None` where the system does not tell.
    pub huge_page_bytes: Option<usize>,
    /// Items that found no place.
    pub lost: u64,
    /// Bytes of an item beside its key and value, index included.
    pub overhead_bytes: f64,
}

/// How many partitions a store for `cores` has, where there are others for up to `most_cores`: the same in all that can
/// share them out evenly.
#[must_use]
pub fn partitions_for(cores: usize, most_cores: usize) -> usize {
    (PARTITIONS_PER_CORE * most_cores).next_multiple_of(cores)
}

impl Store {
    /// A store with `items` items of 8 + 8 bytes in `partitions` partitions. Refuses more memory or cores than there
    /// are, and partitions that the cores cannot share out evenly.
    pub fn filled(
        items: u64,
        cores: usize,
        partitions: usize,
        access: Access,
    ) -> Result<Self, Error> {
        let usable = net::affinity::allowed_cores().len();
        if !(1..=usable).contains(&cores) {
            return Err(Error::Request(format!(
                "{cores} cores were asked for, and this process may use {usable}"
            )));
        }
        if !(1..=PARTITIONS_MAX).contains(&partitions) || !partitions.is_multiple_of(cores) {
            return Err(Error::Request(format!(
                "{partitions} partitions for {cores} cores: a multiple of the cores is wanted, up to {PARTITIONS_MAX}"
            )));
        }
        let huge_before = huge_page_bytes();
        let hasher = Hasher::new(1);
        let config = Config {
            // What the mode itself is about: who writes alone need not show others what is being written.
            has_readers: access != Access::Erew,
            ..Config::for_log_bytes(log_bytes(items, partitions))
        };
        let made = (0..partitions).map(|_| Partition::new(config, hasher.clone()));
        let made = made.collect::<Result<Vec<_>, _>>().map_err(|error| {
            Error::Request(format!(
                "{items} items in {partitions} partitions: {error}; ask for fewer items"
            ))
        })?;
        let clock = Clock::start();
        let mut storages = Storages::new(access, cores, &hasher, made);
        let now = clock.now();
        for id in 0..items {
            let name = id.to_le_bytes();
            storages.set(hasher.key(&name), now, id);
        }
        let (mut held, mut bytes, mut index_bytes) = (0, 0, 0);
        let mut log_bytes = 0;
        storages.each(|partition| {
            held += partition.statistics().items;
            bytes += partition.statistics().bytes;
            index_bytes += partition.index_bytes();
            log_bytes = partition.log_bytes();
        });
        let holds = Holds {
            partitions,
            log_bytes,
            index_bytes,
            huge_page_bytes: huge_before
                .zip(huge_page_bytes())
                .map(|(before, after)| after.saturating_sub(before)),
            lost: items - held,
            overhead_bytes: (bytes + index_bytes as u64) as f64 / held as f64 - 16.0,
        };
        Ok(Self {
            access,
            cores,
            hasher,
            clock,
            storages,
            holds,
        })
    }

    /// Whose partition an id is in, where partitions belong to cores; else the first core.
    pub(crate) fn owner(&self, id: u64) -> usize {
        self.storages.owner(self.hasher.key(&id.to_le_bytes()))
    }
}

impl Storages {
    /// One for each core, as the server makes them for its workers.
    fn new(access: Access, cores: usize, hasher: &Hasher, mut partitions: Vec<Partition>) -> Self {
        if access == Access::Crcw {
            return Self::Crcw(vec![
                SharedPartitions::new(hasher.clone(), partitions);
                cores
            ]);
        }
        let share = partitions.len() / cores;
        let readers: Arc<[Box<[Reader]>]> = partitions
            .chunks(share)
            .map(|own| own.iter().filter_map(Partition::reader).collect())
            .collect();
        let owned = (0..cores).map(|core| {
            let own = partitions.drain(..share).collect();
            Owned::new(hasher.clone(), own, core, cores)
        });
        match access {
            Access::Crew => Self::Crew(
                owned
                    .map(|own| Concurrent::new(own, Arc::clone(&readers)))
                    .collect(),
            ),
            _ => Self::Erew(owned.collect()),
        }
    }

    fn owner(&self, key: Key<'_>) -> usize {
        match self {
            Self::Erew(storages) => storages[0].other_worker(key),
            Self::Crew(storages) => storages[0].other_worker(key),
            Self::Crcw(storages) => storages[0].other_worker(key),
        }
        .unwrap_or_default()
    }

    fn set(&mut self, key: Key<'_>, now: u32, id: u64) {
        let owner = self.owner(key);
        match self {
            Self::Erew(storages) => set(&mut storages[owner], key, now, id),
            Self::Crew(storages) => set(&mut storages[owner], key, now, id),
            Self::Crcw(storages) => set(&mut storages[owner], key, now, id),
        }
    }

    /// Do something with every partition, once.
    fn each(&mut self, mut work: impl FnMut(&mut Partition)) {
        match self {
            Self::Erew(storages) => storages.iter_mut().for_each(|one| one.each(&mut work)),
            Self::Crew(storages) => storages.iter_mut().for_each(|one| one.each(&mut work)),
            Self::Crcw(storages) => Storage::each(&mut storages[0], work),
        }
    }
}

/// Of each partition, whatever the access mode: from a length on, logs are in huge pages.
fn log_bytes(items: u64, partitions: usize) -> usize {
    (items as usize * ITEM_BYTES / partitions)
        .next_multiple_of(1 << 20)
        .min(Config::LOG_BYTES_MAX)
}

/// What this process has in huge pages now.
fn huge_page_bytes() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("AnonHugePages:"))?;
    let kibibytes: usize = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// What is stored under an id.
pub(crate) fn value_of(id: u64) -> [u8; 8] {
    (!id).to_le_bytes()
}

#[inline]
pub(crate) fn set(storage: &mut impl Storage, key: Key<'_>, now: u32, id: u64) {
    storage.with(key, |partition, key| {
        partition
            .set(key, now, &Contents::of(&value_of(id)))
            .expect("a small item");
    });
}

#[cfg(test)]
mod tests;
