//! The items, in the storages that the cache server's workers have. Partitions are the same under every access mode.

use crate::Error;
use crate::draw::value_of;
use crate::peers::{Masstree, Papaya, Shared, Structure};
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

/// Who may touch a partition; or another structure, which all cores read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// A core works on its own partitions only.
    Erew,
    /// A core reads any partition, and writes to its own.
    Crew,
    /// A core reads and writes any partition; writers lock it.
    Crcw,
    /// The hash table of the crate `papaya`.
    Papaya,
    /// The trie of B+-trees of the crate `masstree`.
    Masstree,
}

impl Access {
    /// The access modes of partitions.
    pub const MODES: [Self; 3] = [Self::Erew, Self::Crew, Self::Crcw];
    /// Structures by others.
    pub const PEERS: [Self; 2] = [Self::Papaya, Self::Masstree];

    /// The one of this name, in lower case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::MODES
            .into_iter()
            .chain(Self::PEERS)
            .find(|access| access.label().to_lowercase() == name)
    }

    /// Its name in MICA's paper, or that of the crate.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Erew => "EREW",
            Self::Crew => "CREW",
            Self::Crcw => "CRCW",
            Self::Papaya => "papaya",
            Self::Masstree => "masstree",
        }
    }

    /// Whether it is a structure by others: one that cores share is as good for any number of them.
    #[must_use]
    pub const fn is_peer(self) -> bool {
        matches!(self, Self::Papaya | Self::Masstree)
    }

    /// Whether every key belongs to a core.
    #[must_use]
    pub const fn has_owners(self) -> bool {
        matches!(self, Self::Erew | Self::Crew)
    }
}

/// All items, for one access mode and number of cores.
pub struct Store {
    pub(crate) access: Access,
    /// How many work on it.
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
    Papaya(Vec<Shared<Papaya>>),
    Masstree(Vec<Shared<Masstree>>),
}

/// What a store is like, and what it holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Holds {
    /// What its partitions are like; `None` of a structure without any.
    pub layout: Option<Layout>,
    /// Memory of this process that came in huge pages while the store was filled; `None` where the system does not tell.
    pub huge_page_bytes: Option<usize>,
    /// Items that found no place.
    pub lost: u64,
    /// Bytes of an item beside its key and value, index included. Of a structure without partitions, what became resident
    /// while it was filled; `None` where the system does not tell.
    pub overhead_bytes: Option<f64>,
}

/// What partitions are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Of all cores together.
    pub partitions: usize,
    /// Length of each one's log.
    pub log_bytes: usize,
    /// Size of all indexes.
    pub index_bytes: usize,
}

/// How many partitions a store for `cores` has, where there are others for up to `most_cores`: the same in all that can
/// share them out evenly.
#[must_use]
pub fn partitions_for(cores: usize, most_cores: usize) -> usize {
    (PARTITIONS_PER_CORE * most_cores).next_multiple_of(cores)
}

impl Store {
    /// A store with `items` items of 8 + 8 bytes in `partitions` partitions. Refuses more memory or cores than there
    /// are, and partitions that the cores cannot share out evenly. A structure by others has none.
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
        let before = Memory::now();
        let hasher = Hasher::new(1);
        let clock = Clock::start();
        let mut storages = match access {
            // For any number of cores.
            Access::Papaya => Storages::Papaya(Shared::filled(Papaya::new(items), items, usable)),
            Access::Masstree => Storages::Masstree(Shared::filled(Masstree::new(), items, usable)),
            Access::Erew | Access::Crew | Access::Crcw => {
                let made = make_partitions(items, partitions, access, &hasher)?;
                let mut storages = Storages::new(access, cores, &hasher, made);
                let now = clock.now();
                for id in 0..items {
                    let name = id.to_le_bytes();
                    storages.set(hasher.key(&name), now, id);
                }
                storages
            }
        };
        let holds = storages.holds(items, before, Memory::now());
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

fn make_partitions(
    items: u64,
    partitions: usize,
    access: Access,
    hasher: &Hasher,
) -> Result<Vec<Partition>, Error> {
    let config = Config {
        // What the mode itself is about: who writes alone need not show others what is being written.
        has_readers: access != Access::Erew,
        ..Config::for_log_bytes(log_bytes(items, partitions))
    };
    let made = (0..partitions).map(|_| Partition::new(config, hasher.clone()));
    made.collect::<Result<_, _>>().map_err(|error| {
        Error::Request(format!(
            "{items} items in {partitions} partitions: {error}; ask for fewer items"
        ))
    })
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
            Self::Crcw(_) | Self::Papaya(_) | Self::Masstree(_) => None,
        }
        .unwrap_or_default()
    }

    fn set(&mut self, key: Key<'_>, now: u32, id: u64) {
        let owner = self.owner(key);
        match self {
            Self::Erew(storages) => set(&mut storages[owner], key, now, id),
            Self::Crew(storages) => set(&mut storages[owner], key, now, id),
            Self::Crcw(storages) => set(&mut storages[owner], key, now, id),
            // Filled as they are made.
            Self::Papaya(_) | Self::Masstree(_) => {}
        }
    }

    /// What it holds of `items`, which became resident between `before` and `after`.
    fn holds(&mut self, items: u64, before: Memory, after: Memory) -> Holds {
        let huge_page_bytes = grown(before.huge_page_bytes, after.huge_page_bytes);
        let beside = |bytes: u64, held: u64| bytes as f64 / held as f64 - 16.0;
        let resident = || grown(before.resident_bytes, after.resident_bytes);
        let of_structure = |held: u64| Holds {
            layout: None,
            huge_page_bytes,
            lost: items - held,
            overhead_bytes: resident().map(|bytes| beside(bytes as u64, held)),
        };
        match self {
            Self::Papaya(views) => return of_structure(views[0].0.len()),
            Self::Masstree(views) => return of_structure(views[0].0.len()),
            Self::Erew(_) | Self::Crew(_) | Self::Crcw(_) => {}
        }
        let (mut held, mut bytes) = (0, 0);
        let mut layout = Layout {
            partitions: 0,
            log_bytes: 0,
            index_bytes: 0,
        };
        self.each(|partition| {
            held += partition.statistics().items;
            bytes += partition.statistics().bytes;
            layout.partitions += 1;
            layout.index_bytes += partition.index_bytes();
            layout.log_bytes = partition.log_bytes();
        });
        Holds {
            layout: Some(layout),
            huge_page_bytes,
            lost: items - held,
            overhead_bytes: Some(beside(bytes + layout.index_bytes as u64, held)),
        }
    }

    /// Do something with every partition, once.
    fn each(&mut self, mut work: impl FnMut(&mut Partition)) {
        match self {
            Self::Erew(storages) => storages.iter_mut().for_each(|one| one.each(&mut work)),
            Self::Crew(storages) => storages.iter_mut().for_each(|one| one.each(&mut work)),
            Self::Crcw(storages) => Storage::each(&mut storages[0], work),
            Self::Papaya(_) | Self::Masstree(_) => {}
        }
    }
}

/// Of each partition, whatever the access mode: from a length on, logs are in huge pages.
fn log_bytes(items: u64, partitions: usize) -> usize {
    (items as usize * ITEM_BYTES / partitions)
        .next_multiple_of(1 << 20)
        .min(Config::LOG_BYTES_MAX)
}

/// What this process has in memory; `None` where the system does not tell.
#[derive(Clone, Copy)]
struct Memory {
    resident_bytes: Option<usize>,
    huge_page_bytes: Option<usize>,
}

impl Memory {
    fn now() -> Self {
        let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let kibibytes: usize = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
            Some(kibibytes << 10)
        };
        Self {
            resident_bytes: bytes("Rss:"),
            huge_page_bytes: bytes("AnonHugePages:"),
        }
    }
}

fn grown(before: Option<usize>, after: Option<usize>) -> Option<usize> {
    Some(after?.saturating_sub(before?))
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
