//! One measurement: every core asks for what it may ask for, in bursts, for a while.

use crate::Error;
use crate::draw::{Request, value_of};
use crate::peers::{Shared, Structure};
use crate::store::{Access, Storages, Store, set};
use cached::Clock;
use cached::storage::{Read, Storage};
use mica::{Hasher, Key};
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
    /// Lookups of another core's items that its owner would have to be asked for: they found the item being written time and
    /// again, or about to make room for others.
    pub unsettled: u64,
    /// Lookups of items that had made room for others: what a cache is allowed, and a full small one has to do.
    pub missed: u64,
}

impl Measured {
    /// Operations a second of all cores together.
    pub fn rate(&self) -> f64 {
        let operations: u64 = self.by_core.iter().map(|work| work.operations).sum();
        operations as f64 / self.seconds
    }
}

/// The share of the requests for `ids` that falls to each core, where partitions belong to cores.
#[must_use]
pub fn shares(store: &Store, ids: &[u64]) -> Vec<f64> {
    let mut counts = vec![0_u64; store.cores];
    for &id in ids {
        counts[store.owner(id)] += 1;
    }
    counts
        .iter()
        .map(|&count| count as f64 / ids.len() as f64)
        .collect()
}

/// Ask for `ids`, `sets` of a hundred times to write, for `seconds`, by one thread a core, each kept there. A core that
/// owns none of `ids` is refused.
pub fn measure(store: &mut Store, ids: &[u64], sets: u64, seconds: f64) -> Result<Measured, Error> {
    let task = Task {
        hasher: &store.hasher,
        clock: store.clock,
        reads_all: store.access != Access::Erew,
        ids,
        sets,
        seconds,
    };
    match &mut store.storages {
        Storages::Erew(storages) => task.measure(storages),
        Storages::Crew(storages) => task.measure(storages),
        Storages::Crcw(storages) => task.measure(storages),
        Storages::Papaya(views) => task.measure(&mut views[..store.cores]),
        Storages::Masstree(views) => task.measure(&mut views[..store.cores]),
    }
}

/// A store as one core works on it.
trait View {
    /// Whether it is the core's own to write.
    fn is_own(&self, key: Key<'_>) -> bool;

    /// Do what is asked, and check what is read. `out` is for values, so that none is made for each.
    fn carry_out(
        &mut self,
        hasher: &Hasher,
        now: u32,
        burst: &[Request],
        done: &mut Work,
        out: &mut Vec<u8>,
    );
}

/// What all cores are to do.
struct Task<'t> {
    hasher: &'t Hasher,
    clock: Clock,
    /// Whether a core reads what others own.
    reads_all: bool,
    ids: &'t [u64],
    sets: u64,
    seconds: f64,
}

impl Task<'_> {
    fn measure<V: View + Send>(&self, views: &mut [V]) -> Result<Measured, Error> {
        let is_over = AtomicBool::new(false);
        let start_line = Barrier::new(views.len() + 1);
        let usable = net::affinity::allowed_cores();
        std::thread::scope(|scope| {
            let threads: Vec<_> = views
                .iter_mut()
                .enumerate()
                .map(|(core, view)| {
                    let (is_over, start_line) = (&is_over, &start_line);
                    let on = usable.get(core).copied();
                    scope.spawn(move || {
                        let prepared = self.prepare(view, core, on);
                        // Reached in any case: the others wait for it.
                        start_line.wait();
                        prepared.map(|asked| self.work(view, core, &asked, is_over))
                    })
                })
                .collect();
            start_line.wait();
            let begun = Instant::now();
            while begun.elapsed().as_secs_f64() < self.seconds {
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

    /// Under EREW each core is given its own keys, as by a client that knows the partitions; under CREW it is given its
    /// own to write, the nearest to those that were drawn.
    fn prepare<V: View>(
        &self,
        view: &V,
        core: usize,
        on: Option<usize>,
    ) -> Result<Vec<Request>, Error> {
        if let Some(on) = on {
            net::affinity::pin_current_thread(on)?;
        }
        let is_own = |id: &u64| {
            let name = id.to_le_bytes();
            view.is_own(self.hasher.key(&name))
        };
        let drawn: Vec<u64> = self
            .ids
            .iter()
            .copied()
            .filter(|id| self.reads_all || is_own(id))
            .collect();
        let first_own = drawn.iter().copied().find(is_own);
        let (Some(first_own), BURST..) = (first_own, drawn.len()) else {
            return Err(Error::Request(format!(
                "core {core} owns too few of the keys that are asked for: there are too few items"
            )));
        };
        let own = |id: u64| (0..=id).rev().find(is_own).unwrap_or(first_own);
        // 61 has no divisor with 100 in common: of any 100 that follow each other, `sets` are for writing.
        let requests = drawn.iter().zip(0_u64..).map(|(&id, number)| {
            let is_set = number * 61 % 100 < self.sets;
            let id = if is_set { own(id) } else { id };
            Request { id, is_set }
        });
        Ok(requests.collect())
    }

    fn work<V: View>(
        &self,
        view: &mut V,
        core: usize,
        asked: &[Request],
        is_over: &AtomicBool,
    ) -> Work {
        let mut done = Work::default();
        let mut at = core * 7919 * BURST % asked.len();
        let mut out = Vec::with_capacity(64);
        loop {
            if at + BURST > asked.len() {
                at = 0;
            }
            let burst = &asked[at..at + BURST];
            at += BURST;
            // As a worker does for all that a wake-up brings.
            let now = self.clock.now();
            view.carry_out(self.hasher, now, burst, &mut done, &mut out);
            done.operations += BURST as u64;
            if is_over.load(Relaxed) {
                return done;
            }
        }
    }
}

impl<S: Storage> View for S {
    fn is_own(&self, key: Key<'_>) -> bool {
        self.other_worker(key).is_none()
    }

    fn carry_out(
        &mut self,
        hasher: &Hasher,
        now: u32,
        burst: &[Request],
        done: &mut Work,
        out: &mut Vec<u8>,
    ) {
        let mut names = [[0; 8]; BURST];
        for (name, request) in names.iter_mut().zip(burst) {
            *name = request.id.to_le_bytes();
        }
        let keys: [Key<'_>; BURST] = std::array::from_fn(|number| hasher.key(&names[number]));
        let carry_out = |storage: &mut S, number: usize, key: Key<'_>| {
            let Request { id, is_set } = burst[number];
            if is_set {
                return set(storage, key, now, id);
            }
            out.clear();
            match storage.read(key, now, out, |_, _| ()) {
                // Not assert_eq: to show the value it would be kept in memory, each time.
                Read::Hit => assert!(*out == value_of(id), "the value of another key"),
                Read::Miss => done.missed += 1,
                Read::OtherWorker(_) => done.unsettled += 1,
            }
            black_box(&out);
        };
        mica::burst(
            self,
            &keys,
            S::prefetch_bucket,
            S::prefetch_item,
            S::prefetch_further,
            carry_out,
        );
    }
}

impl<S: Structure> View for Shared<S> {
    fn is_own(&self, _: Key<'_>) -> bool {
        true
    }

    fn carry_out(
        &mut self,
        _: &Hasher,
        _: u32,
        burst: &[Request],
        done: &mut Work,
        _: &mut Vec<u8>,
    ) {
        done.missed += self.0.carry_out(burst);
    }
}
