use super::super::storage::Storage;
use mica::Statistics;
use std::ops::AddAssign;

/// What partitions hold, together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StorageTotals {
    pub(super) items: Statistics,
    pub(super) log_bytes: usize,
    pub(super) free_bytes: usize,
    pub(super) index_bytes: usize,
}

impl AddAssign for StorageTotals {
    fn add_assign(&mut self, other: Self) {
        self.items += other.items;
        self.log_bytes += other.log_bytes;
        self.free_bytes += other.free_bytes;
        self.index_bytes += other.index_bytes;
    }
}

/// What a worker's partitions hold.
pub(crate) fn totals(storage: &mut impl Storage) -> StorageTotals {
    let mut stored = StorageTotals::default();
    storage.each(|partition| {
        stored.items += partition.statistics();
        stored.log_bytes += partition.log_bytes();
        stored.free_bytes += partition.free_bytes().unwrap_or_default();
        stored.index_bytes += partition.index_bytes();
    });
    stored
}

#[cfg(test)]
mod tests;
