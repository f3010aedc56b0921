//! The items, in as many partitions as an access mode wants.

use crate::Error;
use mica::{Config, Contents, Hasher, Key, Partition, Reader};
use serde::Deserialize;
use std::sync::Mutex;

/// Who may touch a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// A core works on its own partition only.
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
    pub(crate) partitions: Vec<Mutex<Partition>>,
    pub(crate) readers: Vec<Option<Reader>>,
    /// What the partitions hold.
    pub holds: Holds,
}

/// What a store holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Holds {
    /// Partitions.
    pub partitions: usize,
    /// Items that found no place.
    pub lost: u64,
    /// Bytes of an item beside its key and value, index included.
    pub overhead_bytes: f64,
}

impl Store {
    /// A store with `items` items of 8 + 8 bytes.
    ///
    /// # Errors
    /// [`Error::Partition`] when memory does not suffice, [`Error::Cores`] for more cores than there are.
    pub fn filled(items: u64, cores: usize, access: Access) -> Result<Self, Error> {
        let usable = net::affinity::allowed_cores().len();
        if !(1..=usable).contains(&cores) {
            return Err(Error::Cores {
                wanted: cores,
                usable,
            });
        }
        let hasher = Hasher::new(1);
        // Room for all, and partitions enough that two cores rarely want the same.
        let count = if access == Access::Crcw && cores > 1 {
            16 * cores
        } else {
            cores
        };
        let log_bytes = (items as usize * 30 / count)
            .next_multiple_of(1 << 20)
            .min(Config::LOG_BYTES_MAX);
        let config = Config {
            has_readers: access != Access::Erew,
            ..Config::for_log_bytes(log_bytes)
        };
        let failed = |source| Error::Partition {
            items,
            cores,
            source,
        };
        let mut partitions = (0..count)
            .map(|_| Partition::new(config, hasher.clone()).map_err(failed))
            .collect::<Result<Vec<_>, _>>()?;
        for id in 0..items {
            let name = id.to_le_bytes();
            let key = hasher.key(&name);
            set(&mut partitions[key.partition(count)], key, id);
        }
        let sum = |of: fn(&Partition) -> u64| partitions.iter().map(of).sum::<u64>();
        let held = sum(|partition| partition.statistics().items);
        let bytes = sum(|partition| partition.statistics().bytes + partition.index_bytes() as u64);
        let holds = Holds {
            partitions: count,
            lost: items - held,
            overhead_bytes: bytes as f64 / held as f64 - 16.0,
        };
        Ok(Self {
            access,
            cores,
            hasher,
            readers: partitions.iter().map(Partition::reader).collect(),
            partitions: partitions.into_iter().map(Mutex::new).collect(),
            holds,
        })
    }

    /// Whose partition an id is in, where partitions belong to cores.
    pub(crate) fn owner(&self, id: u64) -> usize {
        self.hasher
            .key(&id.to_le_bytes())
            .partition(self.partitions.len())
    }
}

/// What is stored under an id.
pub(crate) fn value_of(id: u64) -> [u8; 8] {
    (!id).to_le_bytes()
}

pub(crate) fn set(partition: &mut Partition, key: Key<'_>, id: u64) {
    partition
        .set(key, 1, &Contents::of(&value_of(id)))
        .expect("a small item");
}
