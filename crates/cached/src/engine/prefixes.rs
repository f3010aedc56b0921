//! Requests counted by the prefix of their keys: memcached's `stats detail`.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many prefixes are counted at most: keys that are all prefix must not fill the memory.
const PREFIXES_MAX: usize = 10_000;

/// What a client asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// To read an item, which was there.
    Hit,
    /// To read an item that was not there.
    Miss,
    /// To store one.
    Set,
    /// To remove one.
    Delete,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Uses {
    gets: u64,
    hits: u64,
    sets: u64,
    deletes: u64,
}

/// The counts of all workers, which take a lock for each: this is for finding out who asks for what, not for every
/// day. While it is off, it costs a look at a flag.
pub(crate) struct Prefixes {
    delimiter: u8,
    is_on: AtomicBool,
    uses: Mutex<BTreeMap<Box<[u8]>, Uses>>,
}

impl Prefixes {
    /// Prefixes that end before the first `delimiter`.
    pub fn new(delimiter: u8, is_on: bool) -> Self {
        Self {
            delimiter,
            is_on: AtomicBool::new(is_on),
            uses: Mutex::default(),
        }
    }

    /// Where prefixes end.
    pub fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Whether requests are counted.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Count from now on, or no more; what was counted stays.
    pub fn switch(&self, is_on: bool) {
        self.is_on.store(is_on, Relaxed);
    }

    /// Count a request if requests are counted, and its key has a prefix.
    #[inline]
    pub fn count(&self, key: &[u8], what: Use) {
        if self.is_on() {
            self.add(key, what);
        }
    }

    #[cold]
    fn add(&self, key: &[u8], what: Use) {
        let Some(length) = key.iter().position(|&byte| byte == self.delimiter) else {
            return;
        };
        let prefix = &key[..length];
        let mut all = self.lock();
        if !all.contains_key(prefix) && all.len() < PREFIXES_MAX {
            all.insert(prefix.into(), Uses::default());
        }
        let Some(uses) = all.get_mut(prefix) else {
            return;
        };
        match what {
            Use::Hit => {
                uses.gets += 1;
                uses.hits += 1;
            }
            Use::Miss => uses.gets += 1,
            Use::Set => uses.sets += 1,
            Use::Delete => uses.deletes += 1,
        }
    }

    /// Forget all counts.
    pub fn reset(&self) {
        self.lock().clear();
    }

    /// A line for each prefix, as memcached writes it.
    pub fn write(&self, out: &mut Vec<u8>) {
        for (prefix, uses) in self.lock().iter() {
            let Uses {
                gets,
                hits,
                sets,
                deletes,
            } = uses;
            out.extend_from_slice(b"PREFIX ");
            out.extend_from_slice(prefix);
            // Writing to a vector cannot fail.
            _ = write!(out, " get {gets} hit {hits} set {sets} del {deletes}\r\n");
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<[u8]>, Uses>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
