//! The clock frequency of each core: `/sys/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq`
//! (Documentation/admin-guide/pm/cpufreq.rst).
//!
//! Kernels before 5.18 may ask each core by an interrupt, and sleep 10 ms for an answer. So reading is kept to a small
//! share of the time: a core that was not asked for a row is NaN there.

use crate::clock::{self, Throttle};
use crate::host::Host;
use crate::parse;
use crate::probes::{Probe, column};
use crate::readers::Reader;
use crate::source::{Source, complaints};

const FOLDER: &str = "sys/devices/system/cpu";
const NEEDS: &str = "a cpufreq driver, which guests usually do not have";

/// Cores are asked until one part of the interval in so many is spent, and the next ones for the next row.
const SHARE: u64 = 500;
/// A kernel that takes this long sleeps for its answer: it is asked less often.
const SLEEP_NANOSECONDS: u64 = 1_000_000;

struct Frequency {
    cores: Vec<(u32, Source)>,
    next: usize,
    budget: u64,
    /// A row that takes longer than this many nanoseconds was slept for.
    awake: u64,
    /// Whether a row did not get round all cores.
    in_turns: bool,
    throttle: Throttle,
}

pub(super) fn build(host: &Host) -> Vec<Box<dyn Reader>> {
    let mut cores = Vec::new();
    for name in host.names(FOLDER) {
        let path = host.path(&format!("{FOLDER}/{name}/cpufreq/scaling_cur_freq"));
        if let Some(number) = name
            .strip_prefix("cpu")
            .and_then(|number| number.parse().ok())
            && let Ok(source) = Source::open_small(path)
        {
            cores.push((number, source));
        }
    }
    cores.sort_by_key(|(number, _)| *number);
    if cores.is_empty() {
        let probe = Probe::new("frequency", NEEDS, Vec::new());
        let reason = "this kernel tells no core's frequency (no cpufreq driver)";
        return vec![probe.missing_reader(reason)];
    }
    // Nobody is asked for what a recorded tree says: there is nothing to save, however busy this machine is.
    let (budget, awake) = if host.is_live() {
        (host.interval.as_nanos() as u64 / SHARE, SLEEP_NANOSECONDS)
    } else {
        (u64::MAX, u64::MAX)
    };
    vec![Box::new(Frequency {
        cores,
        next: 0,
        budget,
        awake,
        in_turns: false,
        throttle: Throttle::new(0, SHARE),
    })]
}

impl Reader for Frequency {
    fn probes(&self) -> Vec<Probe> {
        let columns = self
            .cores
            .iter()
            .map(|(core, _)| column("cpu_frequency_hertz", &[("core", &core.to_string())]))
            .collect();
        let complaint = complaints(self.cores.iter().map(|(_, source)| source));
        let mut probe = Probe::new("frequency", NEEDS, columns).untrusted_if(complaint);
        if self.in_turns {
            probe.note("asking costs so much here that the cores are asked in turns");
        }
        vec![probe]
    }

    fn read(&mut self, row: &mut [f64]) {
        let start = clock::monotonic();
        if !self.throttle.is_due(start) {
            return;
        }
        let mut end = start;
        for _ in 0..self.cores.len() {
            let position = self.next;
            self.next = (self.next + 1) % self.cores.len();
            self.cores[position].1.read(|text| {
                row[position] = parse::only_number(text, "frequency")? as f64 * 1e3;
                Ok(())
            });
            end = clock::monotonic();
            if end - start > self.budget {
                self.in_turns = self.cores.len() > 1;
                break;
            }
        }
        if end - start > self.awake {
            self.throttle.done(start, end);
        }
    }
}

#[cfg(test)]
mod tests;
