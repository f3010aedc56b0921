/// What a partition holds and what happened to it. Totals count from its making.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Items held now; those that expired unnoticed are among them.
    pub items: u64,
    /// Header, key and value of the items held now, in bytes.
    pub bytes: u64,
    /// Items ever stored: every set, append, increment and so on counts.
    pub items_stored: u64,
    /// Live items that the log's tail overwrote.
    pub evictions: u64,
    /// Live items dropped because their index bucket was full.
    pub bucket_evictions: u64,
    /// Items found to be past their time, by a lookup or by the log's tail.
    pub expired: u64,
    /// Items whose place a newer value of their key took.
    pub overwritten: u64,
    /// Items removed on request.
    pub deleted: u64,
    /// Items written again at the log's tail because they were read shortly before their turn to be overwritten.
    pub reinserted: u64,
    /// Writes refused because there was no room, in store mode.
    pub refused: u64,
}

impl Statistics {
    /// What is held now, and what happened since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            items: self.items,
            bytes: self.bytes,
            items_stored: self.items_stored - earlier.items_stored,
            evictions: self.evictions - earlier.evictions,
            bucket_evictions: self.bucket_evictions - earlier.bucket_evictions,
            expired: self.expired - earlier.expired,
            overwritten: self.overwritten - earlier.overwritten,
            deleted: self.deleted - earlier.deleted,
            reinserted: self.reinserted - earlier.reinserted,
            refused: self.refused - earlier.refused,
        }
    }
}

impl std::ops::AddAssign for Statistics {
    fn add_assign(&mut self, other: Self) {
        self.items += other.items;
        self.bytes += other.bytes;
        self.items_stored += other.items_stored;
        self.evictions += other.evictions;
        self.bucket_evictions += other.bucket_evictions;
        self.expired += other.expired;
        self.overwritten += other.overwritten;
        self.deleted += other.deleted;
        self.reinserted += other.reinserted;
        self.refused += other.refused;
    }
}

#[cfg(test)]
mod tests;
