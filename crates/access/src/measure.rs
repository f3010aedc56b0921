//! One measurement: every core asks for what it may ask for, in bursts, for a while.

use crate::Error;
use crate::store::{Access, Store, set, value_of};
use mica::{Key, Lookup};
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Lookups that are under way together, as in a burst of packets.
pub const BURST: usize = 32;

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
                    let prepared = prepare(store, core, on, ids);
                    // Reached in any case: the others wait for it.
                    start_line.wait();
                    prepared.map(|asked| work(store, core, &asked, sets, is_over))
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

/// What a core asks for: ids to read, and as many to write.
struct Asked {
    reads: Vec<u64>,
    writes: Vec<u64>,
}

/// Under EREW each core is given its own keys, as by a client that knows the partitions; under CREW it is given its own
/// to write, the nearest to those that were drawn.
fn prepare(store: &Store, core: usize, on: Option<usize>, ids: &[u64]) -> Result<Asked, Error> {
    if let Some(on) = on {
        net::affinity::pin_current_thread(on)?;
    }
    let is_own = |id: &u64| store.owner(*id) == core;
    let reads: Vec<u64> = ids
        .iter()
        .copied()
        .filter(|id| store.access != Access::Erew || is_own(id))
        .collect();
    if reads.len() < BURST {
        return Err(Error::Request(format!(
            "core {core} owns {} of the keys that are asked for: there are too few items",
            reads.len()
        )));
    }
    let own = |id: u64| (0..=id).rev().find(is_own).unwrap_or(id);
    let writes = match store.access {
        Access::Crew => reads.iter().copied().map(own).collect(),
        Access::Erew | Access::Crcw => reads.clone(),
    };
    Ok(Asked { reads, writes })
}

fn work(store: &Store, core: usize, asked: &Asked, sets: u64, is_over: &AtomicBool) -> Work {
    let partitions = store.partitions.len();
    let mut done = Work::default();
    let mut at = core * 7919 * BURST % asked.reads.len();
    let mut names = [[0; 8]; BURST];
    let mut out = Vec::with_capacity(64);
    // Held throughout: who owns a partition alone writes to it without a lock.
    let mut owned = (store.access != Access::Crcw)
        .then(|| store.partitions[core].lock().expect("nobody failed"));
    while !is_over.load(Relaxed) {
        if at + BURST > asked.reads.len() {
            at = 0;
        }
        let operations = done.operations;
        let is_set = |number: usize| {
            (number as u64 * 100 + operations) % (BURST as u64 * 100) < sets * BURST as u64
        };
        let burst: [u64; BURST] = std::array::from_fn(|number| {
            if is_set(number) {
                asked.writes[at + number]
            } else {
                asked.reads[at + number]
            }
        });
        at += BURST;
        for (name, id) in names.iter_mut().zip(burst) {
            *name = id.to_le_bytes();
        }
        let keys: [Key<'_>; BURST] = std::array::from_fn(|number| store.hasher.key(&names[number]));
        if let (Some(partition), Access::Erew) = (&mut owned, store.access) {
            partition.prefetched(&keys, |partition, number, key| {
                if is_set(number) {
                    set(partition, key, burst[number]);
                } else {
                    let item = partition.get(key, 1).expect("it was stored");
                    assert_eq!(item.value, value_of(burst[number]));
                }
            });
        } else {
            for &key in &keys {
                if let Some(reader) = &store.readers[key.partition(partitions)] {
                    reader.prefetch_bucket(key);
                }
            }
            for &key in &keys {
                if let Some(reader) = &store.readers[key.partition(partitions)] {
                    reader.prefetch_item(key);
                }
            }
            for (number, &key) in keys.iter().enumerate() {
                let at = key.partition(partitions);
                let id = burst[number];
                if is_set(number) {
                    match &mut owned {
                        Some(partition) => set(partition, key, id),
                        None => {
                            let mut partition = store.partitions[at].lock().expect("nobody failed");
                            set(&mut partition, key, id);
                        }
                    }
                } else if let Some(reader) = &store.readers[at] {
                    out.clear();
                    let found = reader.get(key, 1, &mut out, |_, _| ());
                    if matches!(found, Lookup::Hit { .. }) {
                        assert_eq!(out, value_of(id));
                    } else {
                        assert!(found == Lookup::Ask, "it was stored");
                        done.unsettled += 1;
                    }
                    black_box(&out);
                }
            }
        }
        done.operations += BURST as u64;
    }
    done
}
