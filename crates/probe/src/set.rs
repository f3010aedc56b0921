//! All readers of a host, read into one row.

use std::ops::Range;

use crate::clock;
use crate::host::Host;
use crate::probes::{Probe, Status, some_of};
use crate::readers::{READERS, Reader};

/// The readers of a host, the columns that they fill, and what they say of themselves.
pub struct ReaderSet {
    entries: Vec<Entry>,
    columns: Vec<String>,
    probes: Vec<Probe>,
    row: Vec<f64>,
    previous: Vec<f64>,
    counters: Vec<bool>,
    /// How often everything was read, and when each column was last readable; 0 is never.
    reads: u64,
    last_readable: Vec<u64>,
}

/// A column that was not readable for so many rows is called lost: some are read in turns.
const ROWS_UNTIL_LOST: u64 = 20;

struct Entry {
    reader: Box<dyn Reader>,
    range: Range<usize>,
    reads: u64,
    nanoseconds: u64,
    /// Steps backwards of counters, and where the first was.
    backward_steps: u64,
    backward_column: usize,
}

impl ReaderSet {
    /// Sets up every reader and reads it twice: a reader learns its columns and its cost from that. What is missing
    /// is said by [`ReaderSet::probes`].
    pub fn new(host: &Host) -> Self {
        let mut entries = Vec::new();
        let mut columns = Vec::new();
        for build in READERS {
            for reader in build(host) {
                let start = columns.len();
                for probe in reader.probes() {
                    if probe.status != Status::Missing {
                        columns.extend(probe.columns);
                    }
                }
                let range = start..columns.len();
                entries.push(Entry {
                    reader,
                    range,
                    reads: 0,
                    nanoseconds: 0,
                    backward_steps: 0,
                    backward_column: 0,
                });
            }
        }
        let counters = columns.iter().map(|name| is_counter(name)).collect();
        let blank = vec![f64::NAN; columns.len()];
        let last_readable = vec![0; columns.len()];
        let mut set = Self {
            entries,
            columns,
            probes: Vec::new(),
            row: blank.clone(),
            previous: blank,
            counters,
            reads: 0,
            last_readable,
        };
        set.read();
        for entry in &mut set.entries {
            // The first reading finds cold caches and buffers still growing.
            entry.reads = 0;
            entry.nanoseconds = 0;
        }
        set.read();
        set.refresh_probes();
        set
    }

    /// The metric names, in the order of the values of a row.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// What the probes said when [`ReaderSet::refresh_probes`] was last called.
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// Reads everything once. Nothing is allocated as long as the host's devices and processes stay the same.
    pub fn read(&mut self) -> &[f64] {
        std::mem::swap(&mut self.row, &mut self.previous);
        self.row.fill(f64::NAN);
        self.reads += 1;
        let mut start = clock::monotonic();
        for entry in &mut self.entries {
            let row = &mut self.row[entry.range.clone()];
            if row.is_empty() {
                continue;
            }
            entry.reader.read(row);
            let end = clock::monotonic();
            entry.reads += 1;
            entry.nanoseconds += end - start;
            start = end;
            for (offset, value) in row.iter().enumerate() {
                let column = entry.range.start + offset;
                if !value.is_nan() {
                    self.last_readable[column] = self.reads;
                }
                if self.counters[column] && *value < self.previous[column] {
                    if entry.backward_steps == 0 {
                        entry.backward_column = column;
                    }
                    entry.backward_steps += 1;
                }
            }
        }
        &self.row
    }

    /// Asks every reader anew what it has to say.
    pub fn refresh_probes(&mut self) {
        self.probes.clear();
        for entry in &self.entries {
            let mut column = entry.range.start;
            for mut probe in entry.reader.probes() {
                if probe.status != Status::Missing {
                    let range = column..column + probe.columns.len();
                    column = range.end;
                    let (never, lost) = self.unreadable(range.clone());
                    if !never.is_empty() && probe.reason.is_empty() {
                        probe.note(format!("not readable here: {}", some_of(&never)));
                    }
                    if !lost.is_empty() {
                        probe.note(format!("no longer readable: {}", some_of(&lost)));
                    }
                    if entry.backward_steps > 0 && range.contains(&entry.backward_column) {
                        probe = probe.untrusted(format!(
                            "counters went backwards {} times, first {}",
                            entry.backward_steps, self.columns[entry.backward_column]
                        ));
                    }
                    if entry.reads > 0 {
                        probe.seconds_per_read =
                            entry.nanoseconds as f64 / entry.reads as f64 * 1e-9;
                    }
                }
                self.probes.push(probe);
            }
        }
    }
}

impl ReaderSet {
    /// Columns that were never readable, and those that were but have not been for a while.
    fn unreadable(&self, range: Range<usize>) -> (Vec<String>, Vec<String>) {
        let select = |wanted: &dyn Fn(u64) -> bool| -> Vec<String> {
            let columns = range
                .clone()
                .filter(|column| wanted(self.last_readable[*column]));
            columns.map(|column| self.columns[column].clone()).collect()
        };
        (
            select(&|last| last == 0),
            select(&|last| last > 0 && self.reads - last >= ROWS_UNTIL_LOST),
        )
    }
}

/// Whether a column only ever grows; its name says so.
fn is_counter(column: &str) -> bool {
    column
        .split('{')
        .next()
        .is_some_and(|name| name.ends_with("_total"))
}
