//! Lookups beside the one who writes, in every order of their steps and with every value that weak memory lets a lookup
//! see: the code is production's, its atomics and memory are the model checker's (`--cfg loom`). A run has at most two
//! preemptions, and where the owner wrote meanwhile, a lookup is not tried again.
//!
//! Each model says what a key has over time. What a lookup finds must be whole, with the CAS number that it was stored
//! with, and no older than what was done when the lookup began or than what the same reader saw before. Where the history
//! has no `None`, a miss is a failure. [What the models catch](../../../docs/notebook/testing.md).

mod cache;
mod large;
mod store;

use crate::sync::become_writer;
use crate::{Config, Contents, Entry, Eviction, Hasher, Key, Lookup, Mode, Partition, Reader};
use loom::sync::Arc;
use loom::sync::Mutex as Lock;
use loom::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Release};
use loom::thread;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

const NOW: u32 = 1;

/// The key that is looked up, and others. They are so long that values lie behind what is read of an item first: it is
/// known by then which words must be tried, and how many loads there are decides how long a model takes.
const KEY: &[u8] = b"------------------------k";
const OTHERS: [&[u8]; 4] = [
    b"------------------------a",
    b"------------------------b",
    b"------------------------c",
    b"------------------------d",
];

/// The usual length of values: of the log they take two words.
const BYTES: usize = 16;

/// With header and key.
const ITEM_BYTES: usize = 48;

/// A value is a number, again and again.
fn value(number: u8, bytes: usize) -> Vec<u8> {
    vec![number; bytes]
}

/// The one who writes.
struct Owner {
    hasher: Hasher,
    partition: Partition,
    /// Numbers and CAS numbers of what [`KEY`] had.
    stored: Vec<(u8, u64)>,
    /// Steps that are over, for the readers to see.
    done: Arc<AtomicUsize>,
    steps: usize,
}

impl Owner {
    fn entry<R>(&mut self, key: &[u8], work: impl FnOnce(Entry<'_, '_>) -> R) -> R {
        work(self.partition.entry(self.hasher.key(key), NOW))
    }

    fn set(&mut self, key: &[u8], number: u8, bytes: usize) {
        let value = value(number, bytes);
        self.set_contents(key, &Contents::of(&value));
    }

    /// With flags, so that its header is longer.
    fn set_flagged(&mut self, key: &[u8], number: u8, bytes: usize) {
        let value = value(number, bytes);
        let contents = Contents {
            flags: u32::from(number),
            ..Contents::of(&value)
        };
        self.set_contents(key, &contents);
    }

    fn set_contents(&mut self, key: &[u8], contents: &Contents<'_>) {
        let stored = self.partition.set(self.hasher.key(key), NOW, contents);
        self.note(key, contents.value[0], stored.expect("there is room"));
    }

    /// Keys that belong to the `bucket`th bucket counted from that of [`KEY`].
    fn names(&self, bucket: usize, names: Range<usize>) -> Vec<[u8; 1]> {
        let index = &self.partition.shared.index;
        let bucket_of = |key: &[u8]| index.bucket_of(self.hasher.key(key));
        let belongs = |name: &[u8; 1]| bucket_of(name) == bucket_of(KEY) ^ bucket;
        let all = (b'!'..=b'~').map(|name| [name]).filter(belongs);
        all.skip(names.start).take(names.len()).collect()
    }

    fn set_in_bucket(&mut self, bucket: usize, names: Range<usize>, bytes: usize) {
        for name in self.names(bucket, names) {
            self.set(&name, 9, bytes);
        }
    }

    fn remove_in_bucket(&mut self, bucket: usize, names: Range<usize>) {
        for name in self.names(bucket, names) {
            self.remove(&name);
        }
    }

    /// What [`KEY`] has from now on.
    fn note(&mut self, key: &[u8], number: u8, cas: u64) {
        if key == KEY {
            self.stored.push((number, cas));
        }
    }

    fn edit(&mut self, key: &[u8], number: u8) {
        let cas = self.entry(key, |entry| match entry {
            Entry::Occupied(mut entry) => entry.edit(|bytes| bytes.fill(number)),
            Entry::Vacant(_) => panic!("it is there"),
        });
        self.note(key, number, cas);
    }

    fn get(&mut self, key: &[u8], now: u32) -> Option<u8> {
        let found = self.partition.get(self.hasher.key(key), now)?;
        Some(found.value[0])
    }

    fn remove(&mut self, key: &[u8]) {
        self.entry(key, |entry| match entry {
            Entry::Occupied(entry) => entry.remove(),
            Entry::Vacant(_) => panic!("it is there"),
        });
    }

    /// A step of the model's history is over: readers that begin from now on must see it.
    fn done(&mut self) {
        self.steps += 1;
        self.done.store(self.steps, Release);
    }
}

/// What a lookup found: a number and a CAS number, or nothing.
type Found = Option<(u8, u64)>;

/// `None` where the owner is to be asked.
fn look_up(reader: &Reader, key: Key<'_>) -> Option<Found> {
    let mut out = Vec::new();
    let front = std::cell::Cell::new(None);
    match reader.get(key, NOW, &mut out, |_, found| front.set(Some(found))) {
        Lookup::Ask => None,
        Lookup::Miss => Some(None),
        Lookup::Hit { .. } => {
            let front = front.get().expect("a front for each hit");
            assert_eq!(out.len(), front.value_bytes, "a length of another value");
            assert!(
                out.iter().all(|&byte| byte == out[0]),
                "a torn value: {out:?}"
            );
            assert!(
                [0, u32::from(out[0])].contains(&front.flags),
                "another value's flags"
            );
            Some(Some((out[0], front.cas)))
        }
    }
}

/// What is tried in every order.
struct Model {
    config: Config,
    /// What is there before.
    fill: fn(&mut Owner),
    /// What is done beside lookups of [`KEY`].
    write: fn(&mut Owner),
    /// What [`KEY`] has over time.
    history: &'static [Option<u8>],
    /// Lookups of a reader, one after the other.
    lookups: usize,
    /// Gives the buckets of keys.
    seed: u64,
    /// Readers at once.
    readers: usize,
    /// Whether not all of the history can be seen, as the owner is asked instead.
    asks: bool,
    /// Preemptions in one run, at most: fewer where there is much to try.
    preemptions: usize,
    /// What somebody else does who has the lock before or afterwards.
    write_beside: Option<fn(&mut Owner)>,
}

/// What models have in common.
const MODEL: Model = Model {
    config: Config {
        mode: Mode::Cache,
        log_bytes: 3 * ITEM_BYTES,
        large_bytes: 0,
        buckets_min: 1,
        buckets_max: 1,
        item_bytes_max: 3 * ITEM_BYTES / 2,
        eviction: Eviction::FirstWritten,
        has_readers: true,
    },
    fill: |owner| owner.set(KEY, 1, BYTES),
    write: |_| (),
    history: &[Some(1)],
    lookups: 1,
    seed: 1,
    readers: 1,
    asks: false,
    preemptions: 2,
    write_beside: None,
};

impl Model {
    /// Try it. All of `history` must have been seen by some lookup, or the model would show nothing.
    fn check(self) {
        let outcomes = std::sync::Arc::new(Mutex::new(BTreeSet::new()));
        let (history, asks, all) = (self.history, self.asks, std::sync::Arc::clone(&outcomes));
        in_every_order(self.preemptions, move || {
            let outcomes = self.run();
            all.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(outcomes);
        });
        let outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_seen = |step| outcomes.contains(&Some(step));
        let are_seen = (0..history.len()).all(is_seen) || asks && (0..history.len()).any(is_seen);
        assert!(
            are_seen && outcomes.contains(&None),
            "{outcomes:?} of {history:?}"
        );
    }

    /// One of the orders. Returns the steps of the history that lookups saw, or `None` where the owner was to be asked.
    fn run(&self) -> Vec<Option<usize>> {
        become_writer();
        let hasher = Hasher::new(self.seed);
        let partition = Partition::new(self.config, hasher.clone()).expect("a small partition");
        let reader = partition.reader().expect("made for readers");
        let done = Arc::new(AtomicUsize::new(0));
        let mut owner = Owner {
            hasher: hasher.clone(),
            partition,
            stored: Vec::new(),
            done: Arc::clone(&done),
            steps: 0,
        };
        (self.fill)(&mut owner);
        let (history, lookups) = (self.history, self.lookups);
        let readers: Vec<_> = (0..self.readers)
            .map(|_| {
                let (reader, hasher, done) = (reader.clone(), hasher.clone(), Arc::clone(&done));
                thread::spawn(move || {
                    look_up_beside(&reader, hasher.key(KEY), history, &done, lookups)
                })
            })
            .collect();
        let owner = Arc::new(Lock::new(owner));
        let other = self.write_beside.map(|write| {
            let owner = Arc::clone(&owner);
            thread::spawn(move || {
                become_writer();
                write(&mut owner.lock().expect("no writer failed"));
            })
        });
        (self.write)(&mut owner.lock().expect("no writer failed"));
        if let Some(other) = other {
            other.join().expect("the other writer ended");
        }
        let stored = &owner.lock().expect("no writer failed").stored;
        let mut outcomes = Vec::new();
        for (outcome, found) in readers
            .into_iter()
            .flat_map(|reader| reader.join().expect("it ended"))
        {
            assert!(
                found.is_none_or(|found| stored.contains(&found)),
                "{found:?} of {stored:?}"
            );
            outcomes.push(outcome);
        }
        match look_up(&reader, hasher.key(KEY)) {
            Some(last) => _ = step_of(history, history.len() - 1, last),
            None => assert!(self.asks || history.last() == Some(&None)),
        }
        outcomes
    }
}

/// Lookups one after the other: the step of the history that each saw, and what it found.
fn look_up_beside(
    reader: &Reader,
    key: Key<'_>,
    history: &[Option<u8>],
    done: &AtomicUsize,
    lookups: usize,
) -> Vec<(Option<usize>, Found)> {
    let mut step = 0;
    let mut look = || {
        step = step.max(done.load(Acquire));
        let found = look_up(reader, key)?;
        step = step_of(history, step, found);
        Some((step, found))
    };
    let seen = (0..lookups).map(|_| look());
    seen.map(|seen| (seen.map(|seen| seen.0), seen.and_then(|seen| seen.1)))
        .collect()
}

/// The first step from `from` on at which the key has what was found.
fn step_of(history: &[Option<u8>], from: usize, found: Found) -> usize {
    let number = found.map(|(number, _)| number);
    let step = history[from..].iter().position(|&value| value == number);
    from + step.unwrap_or_else(|| panic!("{number:?} at step {from} of {history:?}"))
}

fn in_every_order(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut checker = loom::model::Builder::new();
    checker.preemption_bound.get_or_insert(preemptions);
    checker.max_branches = 100_000;
    checker.check(run);
}
