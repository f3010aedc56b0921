//! Measurements that are asked for one by one: one JSON object a line in, one a line out.
//!
//! ```text
//! {"fill": {"access": "crew", "cores": 2, "partitions": 8}}
//! {"filled": {"partitions": 8, "log_bytes": 60817408, "index_bytes": 113770880, "huge_page_bytes": 591396864,
//!             "items": 16000000, "lost": 0, "overhead_bytes": 15.4, "seconds": 3.1}}
//! {"measure": {"access": "crew", "cores": 2, "theta": 0.99, "writes_percent": 5, "seconds": 0.4}}
//! {"measured": {"seconds": 0.4, "cpu_seconds": 0.9, "operations": [3200000, 3100000], "unsettled": 12, "missed": 0,
//!               "shares": [0.52, 0.48]}}
//! ```
//!
//! `access` is also `papaya` or `masstree`, structures by others, which are filled once for any number of cores. `log_bytes` is the length of each partition's log, `index_bytes`
//! the size of all indexes (null where there are no partitions), and `huge_page_bytes` what came in huge pages while the store
//! was filled (null where the system does not tell).
//!
//! Stores stay until the end, so that measurements of all of them can take turns; `"theta": null` is uniform.
//! `cpu_seconds` are all that this process used for the request, `operations` those of each core, `unsettled` lookups
//! that would have to ask the owner, `missed` those of items that had made room for others, and `shares` what part of the
//! requests falls to the partitions of each core where partitions belong to cores (else null). What cannot be done is answered with `{"error": "why"}`. The program
//! ends when its input does.

use crate::Error;
use crate::draw::draw;
use crate::measure::{measure, shares};
use crate::store::{Access, Store};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::time::Instant;

/// Longer ones are none of ours.
const SECONDS_MAX: f64 = 3600.0;

#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Asked {
    Fill {
        access: Access,
        cores: usize,
        partitions: usize,
    },
    Measure(Wanted),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    access: Access,
    cores: usize,
    theta: Option<f64>,
    writes_percent: u64,
    seconds: f64,
}

/// Answer every line of `input` on `output`, with stores of `items` items, until there is none. Fails only when either
/// breaks; everything else is an answer.
pub fn serve(input: impl BufRead, mut output: impl Write, items: u64) -> Result<(), Error> {
    let mut bench = Bench {
        items,
        stores: Vec::new(),
        drawn: Vec::new(),
    };
    for line in input.lines() {
        let answer = serde_json::from_str(&line?)
            .map_err(|error| Error::Request(format!("not a request: {error}")))
            .and_then(|asked| bench.answer(asked))
            .unwrap_or_else(|error| json!({"error": error.to_string()}));
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

struct Bench {
    items: u64,
    stores: Vec<Store>,
    drawn: Vec<(Option<f64>, Vec<u64>)>,
}

impl Bench {
    fn answer(&mut self, asked: Asked) -> Result<Value, Error> {
        match asked {
            Asked::Fill {
                access,
                cores,
                partitions,
            } => self.fill(access, cores, partitions),
            Asked::Measure(wanted) => self.measure(&wanted),
        }
    }

    fn fill(&mut self, access: Access, cores: usize, partitions: usize) -> Result<Value, Error> {
        let begun = Instant::now();
        let filled = self.stores.iter().find(|store| store.access == access);
        let holds = match filled {
            Some(store) if access.is_peer() => store.holds,
            _ => {
                let store = Store::filled(self.items, cores, partitions, access)?;
                let holds = store.holds;
                self.stores
                    .retain(|store| (store.access, store.cores) != (access, cores));
                self.stores.push(store);
                holds
            }
        };
        let layout = holds.layout;
        Ok(json!({"filled": {
            "partitions": layout.map(|one| one.partitions),
            "log_bytes": layout.map(|one| one.log_bytes),
            "index_bytes": layout.map(|one| one.index_bytes),
            "huge_page_bytes": holds.huge_page_bytes,
            "items": self.items,
            "lost": holds.lost,
            "overhead_bytes": holds.overhead_bytes,
            "seconds": begun.elapsed().as_secs_f64(),
        }}))
    }

    fn measure(&mut self, wanted: &Wanted) -> Result<Value, Error> {
        let &Wanted {
            access,
            cores,
            theta,
            writes_percent,
            seconds,
        } = wanted;
        if writes_percent > 100 || !(seconds > 0.0 && seconds <= SECONDS_MAX) {
            return Err(Error::Request(format!(
                "{writes_percent} % writes for {seconds} s: there are 0 to 100 %, and 0 to {SECONDS_MAX} s"
            )));
        }
        let cpu_seconds = process_cpu_seconds();
        if !self.drawn.iter().any(|(drawn, _)| *drawn == theta) {
            self.drawn.push((theta, draw(self.items, theta)?));
        }
        let ids = self.drawn.iter().find(|(drawn, _)| *drawn == theta);
        let usable = net::affinity::allowed_cores().len();
        let store = self.stores.iter_mut().find(|store| {
            let is_for_all = access.is_peer() && (1..=usable).contains(&cores);
            store.access == access && (is_for_all || store.cores == cores)
        });
        let (Some((_, ids)), Some(store)) = (ids, store) else {
            return Err(Error::Request(format!(
                "{} on {cores} cores was not filled",
                access.label()
            )));
        };
        store.cores = cores;
        let measured = measure(store, ids, writes_percent, seconds)?;
        let shares = access.has_owners().then(|| shares(store, ids));
        let operations: Vec<u64> = measured
            .by_core
            .iter()
            .map(|work| work.operations)
            .collect();
        Ok(json!({"measured": {
            "seconds": measured.seconds,
            "cpu_seconds": process_cpu_seconds() - cpu_seconds,
            "operations": operations,
            "unsettled": measured.by_core.iter().map(|work| work.unsettled).sum::<u64>(),
            "missed": measured.by_core.iter().map(|work| work.missed).sum::<u64>(),
            "shares": shares,
        }}))
    }
}

fn process_cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests;
