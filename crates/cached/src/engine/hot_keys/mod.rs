//! Which keys are used most (`stats hotkeys`, where `--hot-keys` asks for it).
//!
//! Each worker looks at one key of 64, chosen at random, and counts those it looks at in a sketch of bounded size. What
//! `stats` lists puts the sketches together, with how far each count may be from the truth.

mod sketch;

use self::sketch::SpaceSaving;
use mica::Key;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt::Display;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use wire::memcached::server::reply;

/// One key of so many is looked at.
const SAMPLED_SHARE: u64 = 64;

/// Counters for each key that is listed: a key's count may be wrong by as much as all together have for one of them.
const COUNTERS_PER_KEY: usize = 16;

/// The fewest counters.
const COUNTERS_MIN: usize = 256;

/// The most keys that can be asked for.
pub const HOT_KEYS_MAX: usize = 1000;

/// What one worker counts of the keys that it is asked for.
pub(crate) struct HotKeys {
    /// Keys to pass over before the next one to look at. For the worker alone, as is `random`.
    left: AtomicU64,
    random: AtomicU64,
    /// The worker never waits for a reader of it: what it would count meanwhile is left out.
    sketch: Mutex<Sketch>,
}

struct Sketch {
    keys: SpaceSaving,
    noted: u64,
}

impl HotKeys {
    /// To find `limit` keys.
    pub fn new(limit: usize) -> Self {
        Self::with_seed(limit, RandomState::new().hash_one(limit))
    }

    fn with_seed(limit: usize, seed: u64) -> Self {
        let hot = Self {
            left: AtomicU64::new(0),
            // Never 0, from which nothing but 0 follows.
            random: AtomicU64::new(seed | 1),
            sketch: Mutex::new(Sketch {
                keys: SpaceSaving::new((limit * COUNTERS_PER_KEY).max(COUNTERS_MIN)),
                noted: 0,
            }),
        };
        hot.left.store(hot.pause(), Relaxed);
        hot
    }

    /// Count some of `count` keys that were used, of which `key` gives each by its number. Most often none of
    /// them is to be looked at.
    #[inline]
    pub fn sample<'k>(&self, count: usize, key: impl Fn(usize) -> Key<'k>) {
        let (left, count) = (self.left.load(Relaxed), count as u64);
        if count <= left {
            self.left.store(left - count, Relaxed);
        } else {
            self.look(left, count, |number| key(number as usize));
        }
    }

    #[cold]
    fn look<'k>(&self, left: u64, count: u64, key: impl Fn(u64) -> Key<'k>) {
        let mut at = left;
        let mut sketch = self.try_lock();
        while at < count {
            let key = key(at);
            // What has no key is not looked at.
            if let Some(sketch) = &mut sketch
                && !key.bytes().is_empty()
            {
                sketch.keys.add(key.hash(), key.bytes());
                sketch.noted += 1;
            }
            at += 1 + self.pause();
        }
        self.left.store(at - count, Relaxed);
    }

    /// How many keys to pass over, such that each is looked at with the same probability, whatever was before it: a
    /// geometric distribution (by inversion).
    fn pause(&self) -> u64 {
        // xorshift64 (Marsaglia 2003).
        let mut random = self.random.load(Relaxed);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.store(random, Relaxed);
        // In (0, 1]: the logarithm is finite.
        let uniform = ((random >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        (uniform.ln() / (-1.0 / SAMPLED_SHARE as f64).ln_1p()) as u64
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Sketch>> {
        match self.sketch.try_lock() {
            Ok(sketch) => Some(sketch),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sketch> {
        self.sketch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begin anew.
    pub fn reset(&self) {
        let mut sketch = self.lock();
        sketch.keys.clear();
        sketch.noted = 0;
    }
}

/// Hand the `limit` keys that are used most to `each`, by all of `workers` together.
pub(crate) fn statistics<'w>(
    workers: impl Iterator<Item = &'w HotKeys>,
    limit: usize,
    each: &mut dyn FnMut(&str, &dyn Display),
) {
    let (hottest, noted) = hottest(workers, limit);
    each("hotkeys:enabled", &"yes");
    each("hotkeys:uses", &(noted * SAMPLED_SHARE));
    for (number, hot) in (1..).zip(hottest) {
        each(&format!("hotkeys:{number}:key"), &encoded(&hot.key));
        each(&format!("hotkeys:{number}:count"), &hot.count());
        each(&format!("hotkeys:{number}:error"), &hot.error());
    }
}

/// A key, and between which numbers of notes it had.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hot {
    key: Vec<u8>,
    at_least: u64,
    at_most: u64,
}

impl Hot {
    /// How often the key was used, rather too often than not.
    fn count(&self) -> u64 {
        self.at_most * SAMPLED_SHARE
    }

    /// How far that may be from the truth: what the sketch may have counted too much, and two standard errors of looking
    /// at one of 64, the square root of 63 for each use.
    fn error(&self) -> u64 {
        let sampling = 2.0 * ((SAMPLED_SHARE - 1) as f64 * self.count() as f64).sqrt();
        (self.at_most - self.at_least) * SAMPLED_SHARE + sampling.ceil() as u64
    }
}

/// The keys that were noted most, and how many notes there were. Sketches are put together as in Agarwal and others,
/// "Mergeable summaries" (PODS 2012): where one has no counter for a key, it noted that at most as often as its least.
fn hottest<'w>(workers: impl Iterator<Item = &'w HotKeys>, limit: usize) -> (Vec<Hot>, u64) {
    let mut bounds = HashMap::<Vec<u8>, (u64, u64)>::new();
    let (mut unseen_max, mut noted) = (0, 0);
    for worker in workers {
        let sketch = worker.lock();
        let unseen = sketch.keys.unseen_max();
        for one in sketch.keys.counted() {
            let (at_least, more) = bounds.entry(one.key.to_vec()).or_default();
            *at_least += one.count - one.error;
            *more += one.count - unseen;
        }
        unseen_max += unseen;
        noted += sketch.noted;
    }
    let mut hottest: Vec<Hot> = bounds
        .into_iter()
        .map(|(key, (at_least, more))| Hot {
            key,
            at_least,
            at_most: unseen_max + more,
        })
        .collect();
    hottest.sort_by(|one, other| {
        let by_count = other.at_most.cmp(&one.at_most);
        by_count.then_with(|| one.key.cmp(&other.key))
    });
    hottest.truncate(limit);
    (hottest, noted)
}

/// A key as one word of text, as memcached writes those of its logs.
fn encoded(key: &[u8]) -> String {
    let mut text = Vec::new();
    reply::percent_encoded(&mut text, key);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests;
