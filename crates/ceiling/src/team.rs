//! Threads that start together: one a core, pinned, each with a state of its own, timed round by round.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::{Error, Result};

/// Fewest rounds that a measurement is made of, however short its budget.
pub const FEWEST_ROUNDS: usize = 3;
/// Most rounds that are kept: bounds memory when a round is very short.
const MOST_ROUNDS: usize = 100_000;

/// One round of the whole team.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// What all threads together did, in the kernel's unit.
    pub amount: u64,
    /// From the first thread's start to the last thread's end.
    pub duration: Duration,
}

impl Round {
    /// Units a second.
    pub fn rate(&self) -> f64 {
        self.amount as f64 / self.duration.as_secs_f64()
    }
}

/// The rounds of a measurement, and what each thread had at its end.
#[derive(Debug)]
pub struct Rounds<State> {
    /// The measured rounds, in order; never empty.
    pub rounds: Vec<Round>,
    /// When the first measured round began and the last one ended.
    pub window: (Instant, Instant),
    /// One a core, in the order of the cores.
    pub states: Vec<State>,
}

impl<State> Rounds<State> {
    /// Everything that was done in the measured rounds.
    pub fn amount(&self) -> u64 {
        self.rounds.iter().map(|round| round.amount).sum()
    }

    /// Time spent inside rounds.
    pub fn duration(&self) -> Duration {
        self.rounds.iter().map(|round| round.duration).sum()
    }

    /// Units a second of every round, in order.
    pub fn rates(&self) -> Vec<f64> {
        self.rounds.iter().map(Round::rate).collect()
    }
}

/// Median of `values`; the mean of the middle two when they are even in number, NaN when there are none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
    }
}

/// The cores that this process may use, in ascending order.
pub fn usable_cores() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).map_err(Error::core(0))?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&core| set.is_set(core))
        .collect())
}

/// Pins the calling thread to `core`.
pub fn pin_to(core: usize) -> Result<()> {
    if core >= CpuSet::MAX_CPU {
        return Err(Error::core(core)(std::io::ErrorKind::InvalidInput));
    }
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(Error::core(core))
}

/// Runs `round` on every core of `cores` at once, again and again until `budget` is spent.
///
/// Each thread first calls `prepare` (with its place in `cores`), where it makes and touches its own memory, and one
/// round that is not counted. `round` returns the amount that it did, which must not depend on time. The budget is
/// checked between rounds, and at least [`FEWEST_ROUNDS`] are made. Refuses `cores` that are empty or name a core
/// twice, and fails with whatever `prepare` returns.
pub fn run_together<State: Send>(
    cores: &[usize],
    budget: Duration,
    prepare: impl Fn(usize) -> Result<State> + Sync,
    round: impl Fn(&mut State) -> u64 + Sync,
) -> Result<Rounds<State>> {
    check_cores(cores)?;
    let team = Team {
        start_line: Barrier::new(cores.len()),
        failed: AtomicBool::new(false),
        rounds_to_make: AtomicUsize::new(usize::MAX),
        budget,
    };
    let (team, prepare, round) = (&team, &prepare, &round);
    let members = thread::scope(|scope| {
        // Each thread waits for its word to go, so that one which cannot be started leaves none waiting for it.
        let mut words_to_go = Vec::with_capacity(cores.len());
        let mut handles = Vec::with_capacity(cores.len());
        for (place, &core) in cores.iter().enumerate() {
            let (go, gone) = mpsc::channel::<()>();
            handles.push(spawn(scope, core, move || match gone.recv() {
                Ok(()) => team.member(place, core, prepare, round),
                Err(mpsc::RecvError) => {
                    Err(Error::Argument("another thread was not started".into()))
                }
            })?);
            words_to_go.push(go);
        }
        for go in &words_to_go {
            // A thread that is already gone took its result with it; joining tells.
            let _ = go.send(());
        }
        handles.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?;
    merge(members)
}

/// Starts a thread that is named after the core that it is for.
pub(crate) fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    core: usize,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    thread::Builder::new()
        .name(format!("ceiling-{core}"))
        .spawn_scoped(scope, work)
        .map_err(Error::thread(core))
}

/// What a thread returned; panics if that did.
pub(crate) fn join<T>(handle: ScopedJoinHandle<'_, T>) -> T {
    handle
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn check_cores(cores: &[usize]) -> Result<()> {
    if cores.is_empty() {
        return Err(Error::Argument("no core was given to measure on".into()));
    }
    let mut sorted = cores.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::Argument(format!("core {} was given twice", pair[0]))),
        None => Ok(()),
    }
}

/// What the threads share.
struct Team {
    start_line: Barrier,
    failed: AtomicBool,
    /// Set by the first thread after its last round. A number, not a flag: a slow thread may look only after a fast
    /// one has already made the next round.
    rounds_to_make: AtomicUsize,
    budget: Duration,
}

/// One thread's account: empty where another thread failed before the first round.
struct Member<State> {
    state: State,
    laps: Vec<(u64, Instant, Instant)>,
}

impl Team {
    fn member<State>(
        &self,
        place: usize,
        core: usize,
        prepare: impl Fn(usize) -> Result<State>,
        round: impl Fn(&mut State) -> u64,
    ) -> Result<Member<State>> {
        let prepared = pin_to(core).and_then(|()| prepare(place));
        if prepared.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        // The barrier orders what is stored relaxed: what was stored before a wait is seen by all after it.
        self.start_line.wait();
        let mut state = prepared?;
        let mut laps = Vec::with_capacity(MOST_ROUNDS.min(4096));
        if self.failed.load(Ordering::Relaxed) {
            return Ok(Member { state, laps });
        }
        round(&mut state);
        let began = Instant::now();
        loop {
            self.start_line.wait();
            if laps.len() >= self.rounds_to_make.load(Ordering::Relaxed) {
                return Ok(Member { state, laps });
            }
            let start = Instant::now();
            let amount = round(&mut state);
            let end = Instant::now();
            laps.push((amount, start, end));
            let enough = laps.len() >= FEWEST_ROUNDS && end.duration_since(began) >= self.budget;
            if place == 0 && (enough || laps.len() >= MOST_ROUNDS) {
                self.rounds_to_make.store(laps.len(), Ordering::Relaxed);
            }
        }
    }
}

fn merge<State>(members: Vec<Member<State>>) -> Result<Rounds<State>> {
    let round_count = members
        .iter()
        .map(|member| member.laps.len())
        .min()
        .unwrap_or(0);
    let mut rounds = Vec::with_capacity(round_count);
    let mut window: Option<(Instant, Instant)> = None;
    for index in 0..round_count {
        let laps = || members.iter().map(|member| member.laps[index]);
        let amount = laps().map(|(amount, ..)| amount).sum();
        let (Some(start), Some(end)) =
            (laps().map(|lap| lap.1).min(), laps().map(|lap| lap.2).max())
        else {
            break;
        };
        // A clock too coarse to see the round would make its rate infinite.
        let duration = end.duration_since(start).max(Duration::from_nanos(1));
        rounds.push(Round { amount, duration });
        window = Some((window.map_or(start, |(first, _)| first), end));
    }
    let window = window.ok_or_else(|| Error::Argument("no round was made".into()))?;
    Ok(Rounds {
        rounds,
        window,
        states: members.into_iter().map(|member| member.state).collect(),
    })
}

#[cfg(test)]
mod tests;
