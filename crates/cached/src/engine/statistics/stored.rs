use super::super::storage::Storage;
use mica::Statistics;
use std::ops::AddAssign;

/// What partitions hold, together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StorageTotals {
    pub(crate) items: Statistics,
    pub(crate) log_bytes: usize,
    pub(super) free_bytes: usize,
    pub(super) index_bytes: usize,
    /// Of the item that was not used for longest.
    pub(crate) oldest_age_seconds: Option<u32>,
}

impl AddAssign for StorageTotals {
    fn add_assign(&mut self, other: Self) {
        self.items += other.items;
        self.log_bytes += other.log_bytes;
        self.free_bytes += other.free_bytes;
        self.index_bytes += other.index_bytes;
        self.oldest_age_seconds = self.oldest_age_seconds.max(other.oldest_age_seconds);
    }
}

/// What a worker's partitions hold at second `now`.
pub(crate) fn totals(storage: &mut impl Storage, now: u32) -> StorageTotals {
    let mut stored = StorageTotals::default();
    storage.each(|partition| {
        stored.items += partition.statistics();
        stored.log_bytes += partition.log_bytes();
        stored.free_bytes += partition.free_bytes().unwrap_or_default();
        stored.index_bytes += partition.index_bytes();
        stored.oldest_age_seconds = stored
            .oldest_age_seconds
            .max(partition.oldest_age_seconds(now));
    });
    stored
}
