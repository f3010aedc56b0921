//! What a command is carried out with, and what all protocols do with it alike.

use super::clock::Clock;
use super::conditions::{self, Change, Outcome};
use super::counters::{Count, Counters};
use super::state::ServerState;
use super::statistics::{Section, StorageTotals, totals};
use super::storage::Storage;
use mica::{Contents, Entry, Item, Key};
use std::fmt::Display;
use wire::memcached::server::{Direction, StoreMode};

/// What carrying out a command takes, apart from the command.
pub(crate) struct Context<'c, S> {
    /// This worker's number.
    pub worker: usize,
    /// The items.
    pub storage: &'c mut S,
    /// This worker's counts.
    pub counters: &'c Counters,
    /// The server's clock.
    pub clock: Clock,
    /// The current second of `clock`.
    pub now: u32,
    /// What all workers share.
    pub state: &'c ServerState,
    /// What other workers found for the command under way.
    pub gathered: Option<Box<Gather>>,
}

/// What a command that every worker has its part in gathered so far, on its way from worker to worker.
#[derive(Default)]
pub(crate) struct Gather {
    /// Workers that did their part.
    visited: usize,
    /// What they hold.
    stored: StorageTotals,
}

/// What becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// It goes on.
    Continue,
    /// It ends once the replies are sent.
    Close,
    /// It goes on at another worker, with this command, which has no reply yet.
    OtherWorker(usize),
}

impl<S: Storage> Context<'_, S> {
    /// Do this worker's part of a flush, and say which worker is next; `None` for the last.
    pub(crate) fn flush_here(&mut self, delay: i32) -> Option<usize> {
        if !self.state.options.allows_flush {
            return None;
        }
        let next = self.next_worker()?;
        self.flush_part(delay);
        Some(next)
    }

    /// Add what this worker holds to what `stats` is to write, and say which worker is next; `None` for the last.
    pub(crate) fn gather_statistics(&mut self, section: &[u8]) -> Option<usize> {
        // Any worker knows the rest.
        if !(section.is_empty() || section.starts_with(b"reset")) {
            return None;
        }
        let next = self.next_worker()?;
        let own = totals(self.storage);
        if let Some(gathered) = &mut self.gathered {
            gathered.stored += own;
        }
        Some(next)
    }

    /// The next worker of a command that all have their part in, if this one is not the last.
    fn next_worker(&mut self) -> Option<usize> {
        let parts = self.storage.parts();
        let gathered = self.gathered.get_or_insert_default();
        gathered.visited += 1;
        (gathered.visited < parts).then_some((self.worker + 1) % parts)
    }

    /// Hand the statistics of `section` to `each`, with what all workers hold.
    pub(crate) fn statistics(
        &mut self,
        section: &[u8],
        each: &mut dyn FnMut(&str, &dyn Display),
    ) -> Section {
        let mut stored = totals(self.storage);
        if let Some(gathered) = self.gathered.take() {
            stored += gathered.stored;
        }
        self.state.statistics(section, &stored, self.now, each)
    }

    /// Store by a classic or a binary command.
    #[inline]
    pub(crate) fn store(
        &mut self,
        mode: StoreMode,
        key: Key<'_>,
        contents: Contents<'_>,
        cas: u64,
    ) -> Outcome {
        let now = self.now;
        let outcome = self.storage.with(key, |partition, key| match mode {
            // What was there does not matter.
            StoreMode::Set => conditions::set(partition, key, now, &contents),
            _ => conditions::store(partition.entry(key, now), mode, contents, cas, false),
        });
        self.count_store(mode, outcome);
        outcome
    }

    /// Count a value that was sent to be stored.
    #[inline]
    pub(crate) fn count_store(&self, mode: StoreMode, outcome: Outcome) {
        self.counters.add(Count::Sets, 1);
        match outcome {
            Outcome::TooLarge => self.counters.add(Count::TooLarge, 1),
            Outcome::OutOfMemory => self.counters.add(Count::OutOfMemory, 1),
            Outcome::Stored(_) | Outcome::NotStored | Outcome::Exists | Outcome::NotFound => {}
        }
        if mode == StoreMode::Cas {
            match outcome {
                Outcome::Stored(_) => self.counters.add(Count::CasHits, 1),
                Outcome::Exists => self.counters.add(Count::CasMismatches, 1),
                Outcome::NotFound => self.counters.add(Count::CasMisses, 1),
                Outcome::NotStored | Outcome::TooLarge | Outcome::OutOfMemory => {}
            }
        }
    }

    /// A value was too large to be kept.
    pub(crate) fn refuse_large(&mut self, key: Key<'_>, remove: bool) {
        let now = self.now;
        if remove {
            self.storage.with(key, |partition, key| {
                conditions::remove(partition, key, now)
            });
        }
        self.counters.add(Count::TooLarge, 1);
    }

    /// Set when the item expires, where there is an `exptime`, and let it count as used; what `look` made of it, or `None`
    /// where there is none.
    pub(crate) fn touch<R>(
        &mut self,
        key: Key<'_>,
        exptime: Option<i32>,
        look: impl FnOnce(&Item<'_>) -> R,
    ) -> Option<R> {
        let now = self.now;
        let expires_at = exptime.map(|exptime| self.clock.deadline(exptime, now));
        self.storage.with(key, |partition, key| {
            let Entry::Occupied(mut entry) = partition.entry(key, now) else {
                return None;
            };
            entry.note_hit();
            if let Some(expires_at) = expires_at {
                entry.set_expires_at(expires_at);
            }
            Some(look(&entry.item()))
        })
    }

    pub(crate) fn count_touch(&mut self, is_hit: bool) {
        let count = match is_hit {
            true => Count::TouchHits,
            false => Count::TouchMisses,
        };
        self.counters.add(count, 1);
    }

    /// Remove the item, and count that; whether there was one.
    pub(crate) fn delete(&mut self, key: Key<'_>) -> bool {
        let now = self.now;
        let is_found = self.storage.with(key, |partition, key| {
            conditions::remove(partition, key, now)
        });
        let count = if is_found {
            Count::DeleteHits
        } else {
            Count::DeleteMisses
        };
        self.counters.add(count, 1);
        is_found
    }

    pub(crate) fn count_arithmetic(&mut self, direction: Direction, change: Change) {
        let (hits, misses) = match direction {
            Direction::Up => (Count::IncrementHits, Count::IncrementMisses),
            Direction::Down => (Count::DecrementHits, Count::DecrementMisses),
        };
        match change {
            Change::Done { .. } => self.counters.add(hits, 1),
            Change::NotFound => self.counters.add(misses, 1),
            Change::NotANumber | Change::Exists | Change::OutOfMemory => {}
        }
    }

    pub(crate) fn flush_items(&mut self, delay: i32) {
        self.gathered = None;
        self.counters.add(Count::Flushes, 1);
        self.flush_part(delay);
    }

    fn flush_part(&mut self, delay: i32) {
        let now = self.now;
        // memcached flushes a second before the time given, so that what is stored at that time stays.
        let due = match delay {
            ..=0 => now,
            _ => self.clock.deadline(delay, now) - 1,
        };
        self.storage.each(|partition| {
            if due <= now {
                partition.flush();
            } else {
                partition.flush_at(due, now);
            }
        });
    }
}
