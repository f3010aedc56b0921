//! Which keys there are: a fixed number from the start, and those that inserts add.
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Hands out the ids of new keys, and knows up to which id all are acknowledged and thus readable.
///
/// Inserts may be acknowledged in any order (and by any worker), so acknowledged ids wait in a window until all
/// before them are there too, as in YCSB's `AcknowledgedCounterGenerator`.
#[derive(Debug)]
pub(crate) struct KeySpace {
    claimed: AtomicU64,
    readable: AtomicU64,
    /// Slot `id % len` holds `id + 1` once `id` is acknowledged.
    window: Box<[AtomicU64]>,
}

impl KeySpace {
    /// `count` keys that are there, or will be when the preload is done, and room for `outstanding` inserts at once.
    pub(crate) fn new(count: u64, outstanding: usize) -> Self {
        let slots = (outstanding * 4).next_power_of_two().max(1024);
        Self {
            claimed: AtomicU64::new(count),
            readable: AtomicU64::new(count),
            window: std::iter::repeat_with(AtomicU64::default)
                .take(slots)
                .collect(),
        }
    }

    /// How many keys can be read: all ids below.
    #[inline]
    pub(crate) fn readable(&self) -> u64 {
        self.readable.load(SeqCst)
    }

    /// The id of a key to insert: a new one, or the newest again while one insert is so late that the window is full.
    pub(crate) fn claim(&self) -> u64 {
        let claim = |next: u64| {
            // Others may have claimed and acknowledged `next` since it was read: the exchange then fails, and is tried again.
            let outstanding = next.saturating_sub(self.readable());
            let full = outstanding >= self.window.len() as u64;
            (!full).then_some(next + 1)
        };
        self.claimed
            .fetch_update(SeqCst, SeqCst, claim)
            .unwrap_or_else(|_| self.readable().saturating_sub(1))
    }

    /// The insert of `id` is answered (an id that was there before is fine).
    pub(crate) fn acknowledge(&self, id: u64) {
        if id < self.readable() {
            return;
        }
        self.slot(id).store(id + 1, SeqCst);
        // Whoever fills the first gap advances over all that follow. No slot is missed, because the total order of
        // these operations puts a store after the last look at its slot before the store's own look at `readable`.
        let mut first = self.readable();
        while self.slot(first).load(SeqCst) == first + 1 {
            first = match self
                .readable
                .compare_exchange(first, first + 1, SeqCst, SeqCst)
            {
                Ok(_) => first + 1,
                Err(current) => current,
            };
        }
    }

    fn slot(&self, id: u64) -> &AtomicU64 {
        // The length is a power of two.
        &self.window[id as usize & (self.window.len() - 1)]
    }
}

#[cfg(test)]
mod tests;
