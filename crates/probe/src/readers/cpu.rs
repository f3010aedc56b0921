//! CPU time by state, per core too, and what the scheduler does: `/proc/stat` and `/proc/loadavg` (proc(5)).

use std::fs;

use crate::error::{Fault, Problem};
use crate::host::Host;
use crate::parse::{self, Fields, Line, Lines};
use crate::probes::{Probe, column};
use crate::readers::Reader;
use crate::source::Source;

const NEEDS: &str = "/proc/stat and /proc/loadavg";

/// The states of a CPU in the order of `/proc/stat`. Time of guests follows them and is part of `user` and `nice`.
const STATES: [&str; 8] = [
    "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
];

/// What the kernel may take back (proc(5): "may decrease in certain conditions"); held at its highest, so that it stays
/// a counter.
const MAY_DECREASE: [usize; 2] = [3, 4];

/// Columns that are not CPU time, in their order in a row.
const COUNTERS: [(&str, &[u8]); 4] = [
    ("context_switches_total", b"ctxt"),
    ("interrupts_total", b"intr"),
    ("processes_created_total", b"processes"),
    ("processes_blocked", b"procs_blocked"),
];
const RUN_QUEUE: usize = STATES.len() + COUNTERS.len();
const FIRST_CORE: usize = RUN_QUEUE + 1;

struct Cpu {
    stat: Source,
    load: Result<Source, String>,
    /// The number of each core that has columns.
    cores: Vec<u32>,
    /// The highest idle and iowait seen: of the host, then of each core.
    highest: Vec<[f64; 2]>,
    ticks_per_second: f64,
    /// A core that came after the start, and has no columns.
    late_core: Option<u32>,
}

pub(super) fn build(host: &Host) -> Vec<Box<dyn Reader>> {
    let cores = cores(host);
    let stat = match Source::open(host.path("proc/stat")) {
        Ok(stat) => stat,
        Err(error) => {
            let probe = Probe::new("cpu", NEEDS, columns(&cores));
            return vec![probe.missing_reader(error.to_string())];
        }
    };
    vec![Box::new(Cpu {
        stat,
        load: Source::open_small(host.path("proc/loadavg")).map_err(|error| error.to_string()),
        highest: vec![[0.0; 2]; cores.len() + 1],
        cores,
        ticks_per_second: host.clock_ticks_per_second as f64,
        late_core: None,
    })]
}

/// The cores that are here, also those that are offline now: they may come online.
fn cores(host: &Host) -> Vec<u32> {
    let mut cores = host.cpus("sys/devices/system/cpu/present");
    let stat = fs::read(host.path("proc/stat")).unwrap_or_default();
    let mut lines = Lines::new(&stat);
    while let Ok(Some(line)) = lines.next() {
        match core_line(line) {
            Some((CoreLine::Core(core), _)) if core < 8192 => cores.push(core),
            Some(_) => {}
            None => break,
        }
    }
    cores.sort_unstable();
    cores.dedup();
    cores
}

fn columns(cores: &[u32]) -> Vec<String> {
    let mut columns: Vec<String> = STATES
        .iter()
        .map(|state| column("cpu_seconds_total", &[("state", state)]))
        .collect();
    columns.extend(COUNTERS.iter().map(|(name, _)| (*name).to_owned()));
    columns.push("run_queue_length".to_owned());
    for core in cores {
        let core = core.to_string();
        columns.extend(STATES.iter().map(|state| {
            column(
                "cpu_core_seconds_total",
                &[("core", &core), ("state", state)],
            )
        }));
    }
    columns
}

enum CoreLine {
    Host,
    Core(u32),
}

/// The fields of a `cpu` or `cpuN` line, or None if it is another line.
fn core_line(line: Line<'_>) -> Option<(CoreLine, Fields<'_>)> {
    if !line.text.starts_with(b"cpu") {
        return None;
    }
    let mut fields = line.fields();
    match fields.next()? {
        b"cpu" => Some((CoreLine::Host, fields)),
        name => {
            let number = parse::unsigned(&name[3..]).ok()?;
            Some((CoreLine::Core(u32::try_from(number).ok()?), fields))
        }
    }
}

impl Reader for Cpu {
    fn probes(&self) -> Vec<Probe> {
        let mut probe =
            Probe::new("cpu", NEEDS, columns(&self.cores)).untrusted_if(self.stat.complaint());
        probe = match &self.load {
            Ok(load) => probe.untrusted_if(load.complaint()),
            Err(reason) => probe.untrusted(reason),
        };
        if let Some(core) = self.late_core {
            probe.note(format!(
                "core {core} appeared after the start and is not sampled"
            ));
        }
        vec![probe]
    }

    fn read(&mut self, row: &mut [f64]) {
        let Self {
            stat,
            load,
            cores,
            highest,
            ticks_per_second,
            late_core,
        } = self;
        stat.read(|text| {
            let mut lines = Lines::new(text);
            let host = lines.expect("cpu")?;
            let Some((CoreLine::Host, fields)) = core_line(host) else {
                return Err(host.fault("cpu", Problem::Missing));
            };
            times(
                fields,
                *ticks_per_second,
                &mut row[..STATES.len()],
                &mut highest[0],
            )?;
            let mut next_core = 0;
            while let Some(line) = lines.next()? {
                let Some((CoreLine::Core(core), fields)) = core_line(line) else {
                    counter(line, row)?;
                    continue;
                };
                // In order, save for those that are offline.
                while cores.get(next_core).is_some_and(|known| *known < core) {
                    next_core += 1;
                }
                if cores.get(next_core) == Some(&core) {
                    let start = FIRST_CORE + next_core * STATES.len();
                    let columns = &mut row[start..start + STATES.len()];
                    times(
                        fields,
                        *ticks_per_second,
                        columns,
                        &mut highest[next_core + 1],
                    )?;
                } else {
                    *late_core = Some(core);
                }
            }
            Ok(())
        });
        if let Ok(load) = load {
            load.read(|text| {
                row[RUN_QUEUE] = runnable(text)?;
                Ok(())
            });
        }
    }
}

/// Stores the CPU times of a line, in seconds.
fn times(
    mut fields: Fields<'_>,
    ticks_per_second: f64,
    row: &mut [f64],
    highest: &mut [f64; 2],
) -> Result<(), Fault> {
    for (value, state) in row.iter_mut().zip(STATES) {
        *value = fields.number(state)? as f64 / ticks_per_second;
    }
    for (highest, state) in highest.iter_mut().zip(MAY_DECREASE) {
        *highest = highest.max(row[state]);
        row[state] = *highest;
    }
    Ok(())
}

/// Stores what a line of one counter says.
fn counter(line: Line<'_>, row: &mut [f64]) -> Result<(), Fault> {
    for (position, (name, key)) in COUNTERS.iter().enumerate() {
        if let Some(rest) = line.text.strip_prefix(*key)
            && rest.first() == Some(&b' ')
        {
            row[STATES.len() + position] = Fields::new(rest, line.number).number(name)? as f64;
            break;
        }
    }
    Ok(())
}

/// The runnable threads of `/proc/loadavg` (its fourth field: runnable/all), without the one that reads it.
fn runnable(text: &[u8]) -> Result<f64, Fault> {
    let line = Lines::new(text).expect("runnable threads")?;
    let mut fields = line.fields();
    fields.skip(3);
    let field = fields
        .next()
        .ok_or(line.fault("runnable threads", Problem::Missing))?;
    let slash =
        memchr::memchr(b'/', field).ok_or(line.fault("runnable threads", Problem::Unknown))?;
    let number = parse::unsigned(&field[..slash])
        .map_err(|problem| line.fault("runnable threads", problem))?;
    Ok(number.saturating_sub(1) as f64)
}

#[cfg(test)]
mod tests;
