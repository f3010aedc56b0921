//! What a meter's reading becomes: one value a channel, or none, with what was wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::energy::{Counter, Energy, Step};
use crate::probes::column;

/// Nothing that is measured here takes more: a server is below 20 kW, a rack below 100 kW.
pub(super) const MOST_WATTS: f64 = 100_000.0;

/// One value of a meter.
pub(super) struct Channel {
    /// What is measured, such as `package-0` or `server`.
    pub domain: String,
    pub gives: Gives,
}

/// What a channel's numbers are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Gives {
    /// Watts. Where something is known to be there, 0 W is a meter that does not work.
    Watts { never_zero: bool },
    /// A counter of energy.
    Energy(Counter),
}

impl Channel {
    pub(super) fn watts(domain: impl Into<String>) -> Self {
        Self {
            domain: domain.into(),
            gives: Gives::Watts { never_zero: false },
        }
    }

    /// Of something that is known to be there: 0 W is a meter that does not work.
    pub(super) fn watts_above_zero(domain: impl Into<String>) -> Self {
        Self {
            domain: domain.into(),
            gives: Gives::Watts { never_zero: true },
        }
    }

    pub(super) fn energy(domain: impl Into<String>, counter: Counter) -> Self {
        Self {
            domain: domain.into(),
            gives: Gives::Energy(counter),
        }
    }

    pub(super) fn column(&self, meter: &str) -> String {
        let name = match self.gives {
            Gives::Watts { .. } => "power_watts",
            Gives::Energy(_) => "energy_joules_total",
        };
        column(name, &[("domain", &self.domain), ("meter", meter)])
    }
}

/// `domain`, or with the first number behind it that none of `channels` has.
pub(super) fn distinct(domain: &str, channels: &[Channel]) -> String {
    let numbered = (1..).map(|number| format!("{domain}-{number}"));
    std::iter::once(domain.to_owned())
        .chain(numbered)
        .find(|name| !channels.iter().any(|known| known.domain == *name))
        .unwrap_or_default()
}

/// What was said of a channel in the reading under way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Said {
    /// Nothing: the meter did not answer.
    Nothing,
    /// Something that cannot be true.
    Nonsense,
    Value(f64),
}

struct Cell {
    gives: Gives,
    energy: Option<Energy>,
    said: Said,
}

/// The channels of a meter and what was said of them; nothing is allocated while readings go well.
pub(super) struct Sheet {
    columns: Vec<String>,
    cells: Vec<Cell>,
    now: u64,
    readings: u64,
    failed: u64,
    first_failure: Option<String>,
    implausible: u64,
    first_implausible: Option<String>,
    failed_now: bool,
    stop: Arc<AtomicBool>,
}

impl Sheet {
    pub(super) fn new(meter: &str, channels: &[Channel]) -> Self {
        Self {
            columns: channels
                .iter()
                .map(|channel| channel.column(meter))
                .collect(),
            cells: channels
                .iter()
                .map(|channel| Cell {
                    gives: channel.gives,
                    energy: match channel.gives {
                        Gives::Energy(counter) => Some(Energy::new(counter)),
                        Gives::Watts { .. } => None,
                    },
                    said: Said::Nothing,
                })
                .collect(),
            now: 0,
            readings: 0,
            failed: 0,
            first_failure: None,
            implausible: 0,
            first_implausible: None,
            failed_now: false,
            stop: Arc::default(),
        }
    }

    pub(super) fn columns(&self) -> &[String] {
        &self.columns
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Set when the reading is to stop: a meter that waits for something looks at it.
    pub(super) fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// A reading begins at `now`, in nanoseconds.
    pub(super) fn begin(&mut self, now: u64) {
        self.now = now;
        self.readings += 1;
        self.failed_now = false;
        for cell in &mut self.cells {
            cell.said = Said::Nothing;
        }
    }

    /// Watts, or joules counted, whichever the channel gives; `range` is where a counter begins again.
    pub(super) fn say(&mut self, channel: usize, number: f64, range: Option<f64>) {
        let Some(cell) = self.cells.get_mut(channel) else {
            return;
        };
        let now = self.now;
        cell.said = match (&mut cell.energy, cell.gives) {
            (Some(energy), _) => match energy.step(number, range, now) {
                Step::Joules(joules) => Said::Value(joules),
                Step::Still => Said::Nothing,
                Step::Implausible => Said::Nonsense,
            },
            (None, Gives::Watts { never_zero }) => {
                let least = if never_zero { f64::MIN_POSITIVE } else { 0.0 };
                if (least..=MOST_WATTS).contains(&number) {
                    Said::Value(number)
                } else {
                    Said::Nonsense
                }
            }
            (None, Gives::Energy(_)) => Said::Nothing,
        };
        if cell.said == Said::Nonsense {
            self.implausible += 1;
            if self.first_implausible.is_none() {
                self.first_implausible = Some(format!("{} read {number}", self.columns[channel]));
            }
        }
    }

    /// The meter, or a part of it, could not be read.
    pub(super) fn fail(&mut self, why: impl FnOnce() -> String) {
        self.note_failure();
        if self.first_failure.is_none() {
            self.first_failure = Some(why());
        }
    }

    /// The same, where the reason is kept elsewhere.
    pub(super) fn note_failure(&mut self) {
        if !self.failed_now {
            self.failed_now = true;
            self.failed += 1;
        }
    }

    pub(super) fn said(&self) -> impl Iterator<Item = Said> + '_ {
        self.cells.iter().map(|cell| cell.said)
    }

    /// Whether anything was told in the reading under way.
    pub(super) fn has_value(&self) -> bool {
        self.said().any(|said| matches!(said, Said::Value(_)))
    }

    /// The values of the last reading; what was not told is NaN.
    pub(super) fn write(&self, row: &mut [f64]) {
        for (value, said) in row.iter_mut().zip(self.said()) {
            *value = match said {
                Said::Value(number) => number,
                Said::Nothing | Said::Nonsense => f64::NAN,
            };
        }
    }

    /// What went wrong so far, in a sentence; empty when nothing did.
    pub(super) fn complaint(&self) -> String {
        let mut parts = Vec::new();
        if let Some(first) = &self.first_failure {
            parts.push(if self.failed == self.readings {
                first.clone()
            } else {
                format!(
                    "{} of {} readings failed, the first: {first}",
                    self.failed, self.readings
                )
            });
        }
        if let Some(first) = &self.first_implausible {
            parts.push(format!(
                "{} values of {} readings cannot be true and are left out, the first: {first}",
                self.implausible, self.readings
            ));
        }
        let still: Vec<&str> = self.still().collect();
        if let Some(first) = still.first().filter(|_| self.readings > STILL_READINGS) {
            parts.push(format!(
                "{first} does not count (nothing is connected to it)"
            ));
        }
        parts.join("; ")
    }

    /// Counters that have not moved although they should.
    fn still(&self) -> impl Iterator<Item = &str> {
        self.cells
            .iter()
            .zip(&self.columns)
            .filter(|(cell, _)| cell.energy.is_some_and(|energy| energy.is_still()))
            .map(|(_, column)| column.as_str())
    }
}

/// After so many readings a counter of the processor has moved if it ever does.
const STILL_READINGS: u64 = 20;

#[cfg(test)]
mod tests;
