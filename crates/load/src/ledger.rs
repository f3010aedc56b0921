//! What was written, and what a reader must therefore see.
//!
//! Each write of a key gets the next version. Writes that overlap in time may take effect in any order, so while at
//! least one is under way (a burst) nothing new can be said; but once every write of a burst is acknowledged, the
//! key holds one of them, and a read that is sent from then on must see the burst's first version or a later one:
//! the floor. A read that sees less is stale, however the server spread its work over threads; and none sees a
//! version that was never issued.
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Release},
};

/// Writes under way (upper 20 bits) and last version (lower 44 bits) are one word, so that versions are issued in
/// the order in which writes join a burst. The others are the lower 32 bits of versions not far below.
#[derive(Debug, Default)]
struct Entry {
    state: AtomicU64,
    burst_first: AtomicU32,
    floor: AtomicU32,
}

const VERSION_BITS: u32 = 44;
const VERSION_MASK: u64 = (1 << VERSION_BITS) - 1;
const ONE_UNDER_WAY: u64 = 1 << VERSION_BITS;
/// In a burst so long that versions would run this far ahead of the floor, writes share a version instead.
const MOST_ABOVE_FLOOR: u32 = 1 << 31;
/// Where this many writes of a key are under way, some that are lost among them for ever, further lost ones end: there is
/// room in the word for those that are truly under way.
const MOST_LOST: u64 = 1 << 19;

/// Keys in a segment beyond the first.
const SEGMENT_KEYS: u64 = 1 << 16;
/// Segments beyond the first; keys beyond these are not tracked.
const SEGMENTS: usize = 1 << 14;

/// Versions of all keys.
#[derive(Debug)]
pub(crate) struct Ledger {
    initial: Box<[Entry]>,
    /// For keys that inserts add: made one ahead of need, as the key space reaches them.
    added: Box<[OnceLock<Box<[Entry]>>]>,
}

/// A version that a read must not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WrongVersion {
    /// Older than what was acknowledged before the read was sent.
    #[error(
        "is stale: version {found}, though version {floor} or a later one was acknowledged before the read was sent"
    )]
    Stale { found: u64, floor: u64 },
    /// Newer than all that were written.
    #[error(
        "has version {found}, though this client has written versions up to {last} only (is the server's data from another run?)"
    )]
    NeverWritten { found: u64, last: u64 },
}

impl Ledger {
    /// Memory for each key, in bytes.
    pub(crate) const BYTES_PER_KEY: u64 = size_of::<Entry>() as u64;

    pub(crate) fn new(keys: u64) -> Self {
        Self {
            initial: entries(keys),
            added: std::iter::repeat_with(OnceLock::new)
                .take(SEGMENTS)
                .collect(),
        }
    }

    /// A write of `id` is about to be sent: the version to write.
    #[inline]
    pub(crate) fn begin_write(&self, id: u64) -> u64 {
        let Some(entry) = self.entry_or_new(id) else {
            return 1;
        };
        let floor = entry.floor.load(Acquire);
        let mut state = entry.state.load(Acquire);
        loop {
            let version = state & VERSION_MASK;
            let ahead = (version as u32).wrapping_sub(floor);
            let step = u64::from(ahead < MOST_ABOVE_FLOOR);
            match entry.state.compare_exchange_weak(
                state,
                state + ONE_UNDER_WAY + step,
                AcqRel,
                Acquire,
            ) {
                Ok(_) => {
                    let version = version + step;
                    if state >> VERSION_BITS == 0 {
                        entry.burst_first.store(version as u32, Release);
                    }
                    return version;
                }
                Err(current) => state = current,
            }
        }
    }

    /// The write of `id` was acknowledged.
    #[inline]
    pub(crate) fn end_write(&self, id: u64) {
        let Some(entry) = self.entry(id) else { return };
        let mut state = entry.state.load(Acquire);
        loop {
            // Where only this write is under way, the one that began the burst has ended or is this one, so the
            // burst's first version is settled; it stays so if the exchange succeeds, which needs that no other
            // write has begun since.
            let first = entry.burst_first.load(Acquire);
            match entry
                .state
                .compare_exchange_weak(state, state - ONE_UNDER_WAY, AcqRel, Acquire)
            {
                Ok(_) if state >> VERSION_BITS == 1 => {
                    // Another worker may just have ended a later burst.
                    let raise =
                        |floor: u32| (first.wrapping_sub(floor).cast_signed() > 0).then_some(first);
                    _ = entry.floor.fetch_update(AcqRel, Acquire, raise);
                    return;
                }
                Ok(_) => return,
                Err(current) => state = current,
            }
        }
    }

    /// The write of `id` was refused, and may or may not have had an effect: nothing can be concluded from its burst.
    pub(crate) fn abandon_write(&self, id: u64) {
        if let Some(entry) = self.entry(id) {
            entry.burst_first.store(entry.floor.load(Acquire), Release);
        }
        self.end_write(id);
    }

    /// The write of `id` was given up: whatever carries it may still bring it to the server, behind any number of later
    /// ones. So its burst never ends.
    pub(crate) fn lose_write(&self, id: u64) {
        if let Some(entry) = self.entry(id)
            && entry.state.load(Acquire) >> VERSION_BITS > MOST_LOST
        {
            self.end_write(id);
        }
    }

    /// The least version that a read of `id` may see if it is sent from now on.
    #[inline]
    pub(crate) fn floor(&self, id: u64) -> u64 {
        let Some(entry) = self.entry(id) else {
            return 0;
        };
        let floor = entry.floor.load(Acquire);
        let version = entry.state.load(Acquire) & VERSION_MASK;
        version - u64::from((version as u32).wrapping_sub(floor))
    }

    /// Judge the version that a read of `id` saw; `floor` is from when it was sent.
    #[inline]
    pub(crate) fn check(&self, id: u64, floor: u64, found: u64) -> Result<(), WrongVersion> {
        let Some(entry) = self.entry(id) else {
            return Ok(());
        };
        let last = entry.state.load(Acquire) & VERSION_MASK;
        if found > last {
            Err(WrongVersion::NeverWritten { found, last })
        } else if found < floor || found == 0 {
            Err(WrongVersion::Stale { found, floor })
        } else {
            Ok(())
        }
    }

    #[inline]
    fn entry(&self, id: u64) -> Option<&Entry> {
        match self.initial.get(id as usize) {
            Some(entry) => Some(entry),
            None => self.added_entry(id),
        }
    }

    fn added_entry(&self, id: u64) -> Option<&Entry> {
        let beyond = id - self.initial.len() as u64;
        let segment = self.added.get((beyond / SEGMENT_KEYS) as usize)?.get()?;
        segment.get((beyond % SEGMENT_KEYS) as usize)
    }

    #[inline]
    fn entry_or_new(&self, id: u64) -> Option<&Entry> {
        if id >= self.initial.len() as u64 {
            let index = ((id - self.initial.len() as u64) / SEGMENT_KEYS) as usize;
            // Once in 65,536 inserts: a megabyte.
            self.added.get(index)?.get_or_init(|| entries(SEGMENT_KEYS));
        }
        self.entry(id)
    }
}

fn entries(keys: u64) -> Box<[Entry]> {
    std::iter::repeat_with(Entry::default)
        .take(keys as usize)
        .collect()
}

#[cfg(test)]
mod tests;
