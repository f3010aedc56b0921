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
    pub fn note(&self, key: &[u8], what: Use) {
        if self.is_on() {
            self.count(key, what);
        }
    }

    #[cold]
    fn count(&self, key: &[u8], what: Use) {
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
mod tests {
    use super::*;

    fn written(prefixes: &Prefixes) -> String {
        let mut out = Vec::new();
        prefixes.write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn requests_count_for_what_is_before_the_first_delimiter() {
        let prefixes = Prefixes::new(b'/', true);
        for (key, what) in [
            (&b"b/1/2"[..], Use::Hit),
            (b"b/1", Use::Miss),
            (b"a/", Use::Set),
            (b"a/1", Use::Delete),
            (b"none", Use::Hit),
            (b"/x", Use::Hit),
        ] {
            prefixes.note(key, what);
        }
        prefixes.switch(false);
        prefixes.note(b"b/1", Use::Hit);
        assert_eq!(
            written(&prefixes),
            "PREFIX  get 1 hit 1 set 0 del 0\r\n\
             PREFIX a get 0 hit 0 set 1 del 1\r\n\
             PREFIX b get 2 hit 1 set 0 del 0\r\n"
        );
        prefixes.reset();
        assert_eq!(written(&prefixes), "");
    }

    #[test]
    fn prefixes_without_end_do_not_fill_the_memory() {
        let prefixes = Prefixes::new(b':', true);
        for number in 0..PREFIXES_MAX + 10 {
            prefixes.note(format!("{number}:x").as_bytes(), Use::Set);
        }
        prefixes.note(b"0:y", Use::Set);
        assert_eq!(prefixes.lock().len(), PREFIXES_MAX);
        assert!(written(&prefixes).contains("PREFIX 0 get 0 hit 0 set 2 del 0\r\n"));
    }
}
