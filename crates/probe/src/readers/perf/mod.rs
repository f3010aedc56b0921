//! Hardware counters through perf events: cycles, instructions, last-level cache misses and fills from DRAM, of the whole
//! host or of the tree of the process that is labelled `system` (perf_event_open(2)).

pub(super) mod access;
mod group;
mod model;
pub(super) mod open;

use rustix::io::Errno;

use self::access::Access;
use self::group::{Group, MOST_EVENTS, Progress};
use self::model::MemoryEvents;
use self::open::{Event, Target};
use crate::host::Host;
use crate::probes::{Probe, column, join};
use crate::readers::Reader;
use crate::readers::process;

const NEEDS: &str = "hardware counters; for the whole host CAP_PERFMON or kernel.perf_event_paranoid <= 0, for own processes <= 2";

/// The process tree whose events are counted apart.
const SYSTEM: &str = "system";

/// More threads than this are not counted when they run already; those that they start later are.
const MOST_THREADS: usize = 128;

/// The columns of each of the two probes of a scope.
const CORE_COLUMNS: [&str; 3] = [
    "perf_cycles_total",
    "perf_instructions_total",
    "perf_running_ratio",
];
const MEMORY_COLUMNS: [&str; 2] = ["perf_llc_misses_total", "perf_dram_fills_total"];
const CORE_EVENTS: [Event; 2] = [Event::CYCLES, Event::INSTRUCTIONS];
const RATIO: usize = 2;

pub(super) fn build(host: &Host) -> Vec<Box<dyn Reader>> {
    let mut scopes = vec![("host", None)];
    scopes.extend(
        host.processes
            .iter()
            .filter(|(label, _)| label == SYSTEM)
            .map(|(_, pid)| (SYSTEM, Some(*pid))),
    );
    let access = Access::of(host);
    scopes
        .into_iter()
        .map(|(scope, pid)| follow(host, &access, scope, pid))
        .collect()
}

fn follow(host: &Host, access: &Access, scope: &'static str, pid: Option<u32>) -> Box<dyn Reader> {
    let missing = |reason: &str| -> Box<dyn Reader> {
        let both = probes(scope).map(|probe| probe.missing(reason));
        Box::new(both.to_vec())
    };
    if !host.perf {
        return missing("switched off");
    }
    if let Some(reason) = access.no_counters() {
        return missing(&reason);
    }
    if !host.is_live() {
        return missing("a recorded tree has no counters to open");
    }
    let (targets, mut note) = match pid {
        None => (online_cpus(host), String::new()),
        Some(pid) => threads_of(host, pid),
    };
    let memory = MemoryEvents::of(access.cpu.model);
    let mut events = CORE_EVENTS.to_vec();
    events.extend(memory.llc_misses);
    events.extend(
        memory
            .dram_fills
            .filter(|event| memory.llc_misses != Some(*event)),
    );
    let opened = open_with_what_is_permitted(&targets, &events, pid.is_none());
    let Counters {
        sets,
        groups,
        user_only,
        ..
    } = match opened {
        Ok(counters) => counters,
        Err(errno) => return missing(&access.explain(errno, pid.is_none())),
    };
    if user_only {
        let sentence =
            "counts user space only: more needs CAP_PERFMON or kernel.perf_event_paranoid <= 1";
        note = join(note, sentence);
    }
    let position = |event: Option<Event>| {
        let event = event?;
        sets.iter()
            .enumerate()
            .find_map(|(set, events)| Some((set, events.iter().position(|known| *known == event)?)))
    };
    Box::new(Scope {
        scope,
        sources: [
            position(Some(Event::CYCLES)),
            position(Some(Event::INSTRUCTIONS)),
            position(memory.llc_misses),
            position(memory.dram_fills),
        ],
        known: [memory.llc_misses.is_some(), memory.dram_fills.is_some()],
        totals: vec![Total::default(); sets.len()],
        groups,
        note,
        untrusted: user_only,
        caveat: memory.caveat,
    })
}

fn probes(scope: &str) -> [Probe; 2] {
    let columns = |names: &[&str]| {
        names
            .iter()
            .map(|name| column(name, &[("scope", scope)]))
            .collect()
    };
    [
        Probe::new(format!("perf:{scope}"), NEEDS, columns(&CORE_COLUMNS)),
        Probe::new(
            format!("perf_memory:{scope}"),
            NEEDS,
            columns(&MEMORY_COLUMNS),
        ),
    ]
}

fn online_cpus(host: &Host) -> Vec<Target> {
    let mut cpus = host.cpus("sys/devices/system/cpu/online");
    if cpus.is_empty() {
        let count = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
        cpus.extend(0..count);
    }
    cpus.into_iter().map(Target::Cpu).collect()
}

fn threads_of(host: &Host, pid: u32) -> (Vec<Target>, String) {
    let threads = process::threads_of_tree(host, pid);
    let mut note = String::new();
    if threads.len() > MOST_THREADS {
        note = format!(
            "{} of the {} threads that ran at the start are counted",
            MOST_THREADS,
            threads.len()
        );
    }
    let counted = threads.into_iter().take(MOST_THREADS);
    (counted.map(Target::Thread).collect(), note)
}

/// Open groups: every set of events on every target.
struct Counters {
    sets: Vec<Vec<Event>>,
    /// Each with the set that it counts.
    groups: Vec<(usize, Group)>,
    user_only: bool,
}

/// Opens with the kernel's own work included or, where that is not permitted, without it.
fn open_with_what_is_permitted(
    targets: &[Target],
    events: &[Event],
    whole_host: bool,
) -> Result<Counters, Errno> {
    match open_all(targets, events, false) {
        Err(Errno::ACCESS | Errno::PERM) if !whole_host => open_all(targets, events, true),
        result => result,
    }
}

fn open_all(targets: &[Target], events: &[Event], user_only: bool) -> Result<Counters, Errno> {
    let (first, rest) = targets.split_first().ok_or(Errno::SRCH)?;
    let sets = sets(*first, events, user_only)?;
    let mut groups = Vec::new();
    for target in std::iter::once(first).chain(rest) {
        for (set, events) in sets.iter().enumerate() {
            match Group::open(events, *target, user_only) {
                Ok(group) => groups.push((set, group)),
                // A thread that has ended meanwhile, a CPU that went offline.
                Err(Errno::SRCH | Errno::NODEV) if target != first => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(Counters {
        sets,
        groups,
        user_only,
    })
}

/// Which events can be counted together: all in one set if they fit, else in turns. What this CPU does not have is left
/// out; the first event, which every CPU with counters has, must be there.
fn sets(target: Target, events: &[Event], user_only: bool) -> Result<Vec<Vec<Event>>, Errno> {
    let (first, rest) = events.split_first().ok_or(Errno::INVAL)?;
    Group::open(&[*first], target, user_only)?;
    let mut sets = vec![vec![*first]];
    for event in rest {
        if Group::open(&[*event], target, user_only).is_err() {
            continue;
        }
        let last = sets.len() - 1;
        let mut together = sets[last].clone();
        together.push(*event);
        if together.len() <= MOST_EVENTS && Group::open(&together, target, user_only).is_ok() {
            sets[last] = together;
        } else {
            sets.push(vec![*event]);
        }
    }
    Ok(sets)
}

/// Events of one scope.
struct Scope {
    scope: &'static str,
    /// Set and place in it of cycles, instructions, last-level cache misses and fills from DRAM; None if this CPU does
    /// not count it.
    sources: [Option<(usize, usize)>; 4],
    /// Whether an event for each of the memory columns is known of this CPU.
    known: [bool; 2],
    groups: Vec<(usize, Group)>,
    totals: Vec<Total>,
    note: String,
    untrusted: bool,
    caveat: &'static str,
}

/// What a set of events counted on all targets.
#[derive(Debug, Clone, Copy, Default)]
struct Total {
    values: [f64; MOST_EVENTS],
    /// Nanoseconds in which it ran since the start; nothing is known of events that never ran.
    ran: u64,
}

impl Total {
    fn add(&mut self, progress: &Progress) {
        for (value, more) in self.values.iter_mut().zip(progress.values) {
            *value += more;
        }
        self.ran += progress.running;
    }
}

impl Reader for Scope {
    fn probes(&self) -> Vec<Probe> {
        let [mut core, mut memory] = probes(self.scope);
        if self.untrusted {
            core = core.untrusted(&self.note);
            memory = memory.untrusted(&self.note);
        } else {
            core.note(&self.note);
        }
        if self.sources[1].is_none() {
            core.note("this CPU does not count instructions");
        }
        memory = memory.untrusted_if(self.caveat.to_owned());
        for (place, name) in [(2, "last-level cache misses"), (3, "fills from DRAM")] {
            match (self.sources[place], self.known[place - 2]) {
                (Some(_), _) => {}
                (None, true) => memory.note(format!(
                    "this CPU, or its hypervisor, refuses the event of {name}"
                )),
                (None, false) => {
                    memory.note(format!("no event of this CPU is known that counts {name}"))
                }
            }
        }
        if self.sources[2].is_none() && self.sources[3].is_none() {
            memory = memory.missing("");
        }
        vec![core, memory]
    }

    fn read(&mut self, row: &mut [f64]) {
        let (mut enabled, mut running) = (0, 0);
        for (set, group) in &mut self.groups {
            if let Some(progress) = group.advance() {
                self.totals[*set].add(&progress);
                enabled += progress.enabled;
                running += progress.running;
            }
        }
        let value = |source: Option<(usize, usize)>| match source {
            Some((set, place)) if self.totals[set].ran > 0 => self.totals[set].values[place],
            _ => f64::NAN,
        };
        row[0] = value(self.sources[0]);
        row[1] = value(self.sources[1]);
        row[RATIO] = if enabled > 0 {
            running as f64 / enabled as f64
        } else {
            f64::NAN
        };
        if let Some(memory) = row
            .get_mut(CORE_COLUMNS.len()..)
            .filter(|memory| memory.len() == MEMORY_COLUMNS.len())
        {
            memory[0] = value(self.sources[2]);
            memory[1] = value(self.sources[3]);
        }
    }
}

#[cfg(test)]
mod tests;
