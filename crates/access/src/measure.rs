//! One measurement: every core asks for what it may ask for, in bursts, for a while.

use crate::Error;
use crate::store::{Access, Store, set, value_of};
use mica::{Key, Lookup};
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Requests that are at hand together, as those of the packets that a network card hands over at once.
pub const BURST: usize = 256;

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Wall-clock time.
    pub seconds: f64,
    /// What each core did.
    pub by_core: Vec<Work>,
}

/// What one core did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Lookups and writes.
    pub operations: u64,
    /// Lookups that found their item being written time and again, and would have to ask its owner.
    pub unsettled: u64,
    /// Lookups of items that had made room for others: what a cache is allowed, and a full small one has to do.
    pub missed: u64,
}

impl Measured {
    /// Operations a second of all cores together.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let operations: u64 = self.by_core.iter().map(|work| work.operations).sum();
        operations as f64 / self.seconds
    }
}

/// The share of the requests for `ids` that falls to each core, where partitions belong to cores.
#[must_use]
pub fn shares(store: &Store, ids: &[u64]) -> Vec<f64> {
    let mut counts = vec![0_u64; store.partitions.len()];
    for &id in ids {
        counts[store.owner(id)] += 1;
    }
    counts
        .iter()
        .map(|&count| count as f64 / ids.len() as f64)
        .collect()
}

/// Ask for `ids`, `sets` of a hundred times to write, for `seconds`, by one thread a core, each kept there.
///
/// # Errors
/// [`Error::Pin`] when a thread could not be kept on its core, [`Error::Request`] when a core owns none of `ids`.
pub fn measure(store: &Store, ids: &[u64], sets: u64, seconds: f64) -> Result<Measured, Error> {
    let is_over = AtomicBool::new(false);
    let start_line = Barrier::new(store.cores + 1);
    let usable = net::affinity::allowed_cores();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..store.cores)
            .map(|core| {
                let (is_over, start_line, on) = (&is_over, &start_line, usable.get(core).copied());
                scope.spawn(move || {
                    let prepared = prepare(store, core, on, ids, sets);
                    // Reached in any case: the others wait for it.
                    start_line.wait();
                    prepared.map(|asked| work(store, core, &asked, is_over))
                })
            })
            .collect();
        start_line.wait();
        let begun = Instant::now();
        while begun.elapsed().as_secs_f64() < seconds {
            std::thread::sleep(Duration::from_millis(5));
        }
        is_over.store(true, Relaxed);
        let by_core: Vec<Result<Work, Error>> = threads
            .into_iter()
            .map(|thread| thread.join().expect("a worker that checks what it reads"))
            .collect();
        Ok(Measured {
            seconds: begun.elapsed().as_secs_f64(),
            by_core: by_core.into_iter().collect::<Result<_, _>>()?,
        })
    })
}

/// What a core asks for.
#[derive(Clone, Copy)]
struct Request {
    id: u64,
    is_set: bool,
}

/// Under EREW each core is given its own keys, as by a client that knows the partitions; under CREW it is given its own
/// to write, the nearest to those that were drawn.
fn prepare(
    store: &Store,
    core: usize,
    on: Option<usize>,
    ids: &[u64],
    sets: u64,
) -> Result<Vec<Request>, Error> {
    if let Some(on) = on {
        net::affinity::pin_current_thread(on)?;
    }
    let is_own = |id: &u64| store.owner(*id) == core;
    let drawn: Vec<u64> = ids
        .iter()
        .copied()
        .filter(|id| store.access != Access::Erew || is_own(id))
        .collect();
    if drawn.len() < BURST {
        return Err(Error::Request(format!(
            "core {core} owns {} of the keys that are asked for: there are too few items",
            drawn.len()
        )));
    }
    let own = |id: u64| (0..=id).rev().find(is_own).unwrap_or(id);
    // 61 has no divisor with 100 in common: of any 100 that follow each other, `sets` are for writing.
    let requests = drawn.iter().zip(0_u64..).map(|(&id, number)| {
        let is_set = number * 61 % 100 < sets;
        let id = if is_set && store.access == Access::Crew {
            own(id)
        } else {
            id
        };
        Request { id, is_set }
    });
    Ok(requests.collect())
}

fn work(store: &Store, core: usize, asked: &[Request], is_over: &AtomicBool) -> Work {
    let partitions = store.partitions.len();
    let mut done = Work::default();
    let mut at = core * 7919 * BURST % asked.len();
    let mut names = [[0; 8]; BURST];
    let mut out = Vec::with_capacity(64);
    // Held throughout: who owns a partition alone writes to it without a lock.
    let mut owned = (store.access != Access::Crcw)
        .then(|| store.partitions[core].lock().expect("nobody failed"));
    while !is_over.load(Relaxed) {
        if at + BURST > asked.len() {
            at = 0;
        }
        let burst = &asked[at..at + BURST];
        at += BURST;
        for (name, request) in names.iter_mut().zip(burst) {
            *name = request.id.to_le_bytes();
        }
        let keys: [Key<'_>; BURST] = std::array::from_fn(|number| store.hasher.key(&names[number]));
        if let (Some(partition), Access::Erew) = (&mut owned, store.access) {
            partition.prefetched(&keys, |partition, number, key| {
                let Request { id, is_set } = burst[number];
                if is_set {
                    set(partition, key, id);
                } else if let Some(item) = partition.get(key, 1) {
                    // Not assert_eq: to show the item it would be kept in memory, each time.
                    assert!(item.value == value_of(id), "the value of another key");
                } else {
                    done.missed += 1;
                }
            });
        } else {
            let reader_of = |key: Key<'_>| store.readers[key.partition(partitions)].as_ref();
            let bucket = |_: &(), key: Key<'_>| {
                if let Some(reader) = reader_of(key) {
                    reader.prefetch_bucket(key);
                }
            };
            let item = |_: &(), key: Key<'_>| {
                reader_of(key).is_some_and(|reader| reader.prefetch_item(key))
            };
            let further = |_: &(), key: Key<'_>| {
                if let Some(reader) = reader_of(key) {
                    reader.prefetch_further(key);
                }
            };
            let carry_out = |(): &mut (), number, key: Key<'_>| {
                let Request { id, is_set } = burst[number];
                let at = key.partition(partitions);
                if is_set {
                    match &mut owned {
                        Some(partition) => set(partition, key, id),
                        None => {
                            let mut partition = store.partitions[at].lock().expect("nobody failed");
                            set(&mut partition, key, id);
                        }
                    }
                } else if let Some(reader) = &store.readers[at] {
                    out.clear();
                    match reader.get(key, 1, &mut out, |_, _| ()) {
                        Lookup::Hit { .. } => assert_eq!(out, value_of(id)),
                        Lookup::Miss => done.missed += 1,
                        Lookup::Ask => done.unsettled += 1,
                    }
                    black_box(&out);
                }
            };
            mica::burst(&mut (), &keys, bucket, item, further, carry_out);
        }
        done.operations += BURST as u64;
    }
    done
}
