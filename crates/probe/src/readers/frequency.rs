//! The clock frequency of each core: `/sys/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq`
//! (Documentation/admin-guide/pm/cpufreq.rst).
//!
//! Kernels before 5.18 may ask each core by an interrupt, and sleep 10 ms for an answer. So reading is kept to a small
//! share of the time: a core that was not asked for a row is NaN there.

use std::fs;

use crate::clock::{self, Throttle};
use crate::host::Host;
use crate::parse;
use crate::probes::{Probe, column};
use crate::readers::{MissingReader, Reader, Registration};
use crate::source::{Source, complaints};

pub(crate) const REGISTRATION: Registration = Registration {
    name: "frequency",
    build,
};

const NEEDS: &str = "a cpufreq driver, which guests usually do not have";

/// Cores are asked until one part of the interval in so many is spent, and the next ones for the next row.
const SHARE: u64 = 500;
/// A kernel that takes this long sleeps for its answer: it is asked less often.
const SLEEP_NANOSECONDS: u64 = 1_000_000;

struct Frequency {
    cores: Vec<(u32, Source)>,
    next: usize,
    budget: u64,
    /// Whether a row did not get round all cores.
    in_turns: bool,
    throttle: Throttle,
}

fn build(host: &Host) -> Vec<Box<dyn Reader>> {
    let mut cores = Vec::new();
    let folder = host.path("sys/devices/system/cpu");
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix("cpu"))
            .and_then(|number| number.parse().ok());
        let path = entry.path().join("cpufreq/scaling_cur_freq");
        if let Some(number) = number
            && let Ok(source) = Source::open_small(path)
        {
            cores.push((number, source));
        }
    }
    cores.sort_by_key(|(number, _)| *number);
    if cores.is_empty() {
        return vec![Box::new(MissingReader(
            Probe::new("frequency", NEEDS, Vec::new())
                .missing("this kernel tells no core's frequency (no cpufreq driver)"),
        ))];
    }
    vec![Box::new(Frequency {
        cores,
        next: 0,
        budget: host.interval.as_nanos() as u64 / SHARE,
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
        if end - start > SLEEP_NANOSECONDS {
            self.throttle.done(start, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;
    use crate::readers::testing::{Tree, sample};

    #[test]
    fn frequencies_are_hertz_and_cores_in_order() {
        let tree = Tree::empty();
        for core in [0, 2, 10] {
            let path = format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq");
            tree.write(&path, &format!("{}\n", 2_000_000 + core));
        }
        tree.write("sys/devices/system/cpu/cpufreq/ondemand/x", "");
        tree.write("sys/devices/system/cpu/cpu1/topology/core_id", "1\n");
        let mut reader = build(&tree.host()).remove(0);
        let row = sample(&mut *reader);
        assert_eq!(row.get(r#"cpu_frequency_hertz{core="2"}"#), 2_000_002_000.0);
        let columns: Vec<_> = row.0.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            columns,
            [
                r#"cpu_frequency_hertz{core="0"}"#,
                r#"cpu_frequency_hertz{core="2"}"#,
                r#"cpu_frequency_hertz{core="10"}"#
            ]
        );
    }

    #[test]
    fn guests_have_none() {
        assert_eq!(
            build(&Tree::empty().host())[0].probes().remove(0).status,
            Status::Missing
        );
    }
}
