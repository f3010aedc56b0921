//! Measurements that are asked for one by one: one JSON object a line in, one a line out.
//!
//! ```text
//! {"fill": {"access": "crew", "cores": 2}}
//! {"filled": {"partitions": 2, "items": 16000000, "lost": 0, "overhead_bytes": 15.4, "seconds": 3.1}}
//! {"measure": {"access": "crew", "cores": 2, "theta": 0.99, "writes_percent": 5, "seconds": 0.4}}
//! {"measured": {"seconds": 0.4, "cpu_seconds": 0.9, "operations": [3200000, 3100000], "unsettled": 12, "missed": 0,
//!               "shares": [0.52, 0.48]}}
//! ```
//!
//! Stores stay until the end, so that measurements of all of them can take turns; `"theta": null` is uniform.
//! `cpu_seconds` are all that this process used for the request, `operations` those of each core, `unsettled` lookups
//! that would have to ask the owner, `missed` those of items that had made room for others, and `shares` what part of the requests falls to the partitions of each core where
//! partitions belong to cores (null under CRCW). What cannot be done is answered with `{"error": "why"}`. The program
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
    },
    Measure {
        access: Access,
        cores: usize,
        theta: Option<f64>,
        writes_percent: u64,
        seconds: f64,
    },
}

/// Answer every line of `input` on `output`, with stores of `items` items, until there is none.
///
/// # Errors
/// [`Error::Io`] when either breaks; everything else is an answer.
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
            Asked::Fill { access, cores } => self.fill(access, cores),
            Asked::Measure {
                access,
                cores,
                theta,
                writes_percent,
                seconds,
            } => self.measure(access, cores, theta, writes_percent, seconds),
        }
    }

    fn fill(&mut self, access: Access, cores: usize) -> Result<Value, Error> {
        let begun = Instant::now();
        let store = Store::filled(self.items, cores, access)?;
        let holds = store.holds;
        self.stores
            .retain(|store| (store.access, store.cores) != (access, cores));
        self.stores.push(store);
        Ok(json!({"filled": {
            "partitions": holds.partitions,
            "items": self.items,
            "lost": holds.lost,
            "overhead_bytes": holds.overhead_bytes,
            "seconds": begun.elapsed().as_secs_f64(),
        }}))
    }

    fn measure(
        &mut self,
        access: Access,
        cores: usize,
        theta: Option<f64>,
        writes_percent: u64,
        seconds: f64,
    ) -> Result<Value, Error> {
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
        let store = self
            .stores
            .iter()
            .find(|store| (store.access, store.cores) == (access, cores));
        let (Some((_, ids)), Some(store)) = (ids, store) else {
            return Err(Error::Request(format!(
                "{} on {cores} cores was not filled",
                access.label()
            )));
        };
        let measured = measure(store, ids, writes_percent, seconds)?;
        let shares = (access != Access::Crcw).then(|| shares(store, ids));
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
mod tests {
    use super::*;

    fn answers(lines: &str) -> Vec<Value> {
        let mut output = Vec::new();
        serve(lines.as_bytes(), &mut output, 20_000).expect("memory to write to");
        let text = String::from_utf8(output).expect("JSON is text");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }

    #[test]
    fn every_access_mode_answers_for_every_mix_and_checks_what_it_reads() {
        for access in ["erew", "crew", "crcw"] {
            for writes in [0, 5, 50, 100] {
                let [filled, measured] = &answers(&format!(
                    "{{\"fill\": {{\"access\": \"{access}\", \"cores\": 1}}}}\n\
                     {{\"measure\": {{\"access\": \"{access}\", \"cores\": 1, \"theta\": 0.99, \
                     \"writes_percent\": {writes}, \"seconds\": 0.01}}}}\n"
                ))[..] else {
                    panic!("two answers");
                };
                assert_eq!(filled["filled"]["lost"], 0, "{filled}");
                let measured = &measured["measured"];
                assert!(measured["operations"][0].as_u64() > Some(0), "{measured}");
                assert!(measured["seconds"].as_f64() >= Some(0.01));
                if access == "crcw" {
                    assert!(measured["shares"].is_null());
                } else {
                    assert_eq!(measured["shares"], json!([1.0]));
                }
            }
        }
    }

    #[test]
    fn cores_own_shares_that_sum_to_one() {
        if net::affinity::allowed_cores().len() < 2 {
            return;
        }
        let [_, measured] = &answers(
            "{\"fill\": {\"access\": \"erew\", \"cores\": 2}}\n\
             {\"measure\": {\"access\": \"erew\", \"cores\": 2, \"theta\": null, \"writes_percent\": 50, \
             \"seconds\": 0.01}}\n",
        )[..] else {
            panic!("two answers");
        };
        let measured = &measured["measured"];
        let share = |core: usize| measured["shares"][core].as_f64().expect("a share");
        assert!((share(0) + share(1) - 1.0).abs() < 1e-9);
        assert!((share(0) - 0.5).abs() < 0.02);
        assert_eq!(measured["operations"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn what_cannot_be_done_is_an_answer_and_the_next_one_is_taken() {
        let lines = [
            "nonsense",
            r#"{"measure": {"access": "erew", "cores": 1, "theta": null, "writes_percent": 5, "seconds": 0.01}}"#,
            r#"{"fill": {"access": "erew", "cores": 100000}}"#,
            r#"{"fill": {"access": "erow", "cores": 1}}"#,
            r#"{"fill": {"access": "erew", "cores": 1}}"#,
            r#"{"measure": {"access": "erew", "cores": 1, "theta": 1.5, "writes_percent": 5, "seconds": 0.01}}"#,
            r#"{"measure": {"access": "erew", "cores": 1, "theta": null, "writes_percent": 101, "seconds": 0.01}}"#,
            r#"{"measure": {"access": "erew", "cores": 1, "theta": null, "writes_percent": 5, "seconds": -1}}"#,
        ];
        let answers = answers(&lines.join("\n"));
        assert_eq!(answers.len(), lines.len());
        for (number, answer) in answers.iter().enumerate() {
            assert_eq!(answer.get("error").is_some(), number != 4, "{answer}");
        }
        let said = |number: usize| answers[number]["error"].as_str().unwrap_or_default();
        assert!(said(1).contains("EREW on 1 cores was not filled"));
        assert!(said(2).contains("100000 cores were asked for"));
    }
}
