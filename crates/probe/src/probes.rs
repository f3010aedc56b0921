//! What a probe says of itself, and how its columns are named.

use std::fmt;

/// Whether a probe's samples can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Read, and as the kernel documents it.
    Ok,
    /// Not readable here: its columns are not sampled.
    Missing,
    /// Read, but incomplete or approximate: the reason says how.
    Untrusted,
}

impl Status {
    /// The word that crosses to Python.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Missing => "missing",
            Status::Untrusted => "untrusted",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A source of samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Its name, such as `memory`.
    pub name: String,
    /// The rights and kernel features that it needs.
    pub needs: &'static str,
    /// Whether it can be used here.
    pub status: Status,
    /// Why the status is not `Ok`, or what is worth knowing although it is; empty when there is nothing to say.
    pub reason: String,
    /// The columns that it gives, or would give if it were not missing.
    pub columns: Vec<String>,
    /// What one reading of the reader behind it takes, in seconds; NaN before the first.
    pub seconds_per_read: f64,
}

impl Probe {
    pub(crate) fn new(name: impl Into<String>, needs: &'static str, columns: Vec<String>) -> Self {
        Self {
            name: name.into(),
            needs,
            status: Status::Ok,
            reason: String::new(),
            columns,
            seconds_per_read: f64::NAN,
        }
    }

    pub(crate) fn missing(mut self, reason: impl AsRef<str>) -> Self {
        self.status = Status::Missing;
        self.note(reason);
        self
    }

    pub(crate) fn untrusted(mut self, reason: impl AsRef<str>) -> Self {
        if self.status == Status::Ok {
            self.status = Status::Untrusted;
        }
        self.note(reason);
        self
    }

    /// Untrusted if there is a complaint.
    pub(crate) fn untrusted_if(self, complaint: String) -> Self {
        if complaint.is_empty() {
            self
        } else {
            self.untrusted(complaint)
        }
    }

    /// Adds a sentence to the reason.
    pub(crate) fn note(&mut self, reason: impl AsRef<str>) {
        let reason = reason.as_ref();
        if reason.is_empty() {
            return;
        }
        if !self.reason.is_empty() {
            self.reason.push_str("; ");
        }
        self.reason.push_str(reason);
    }
}

/// The column of a metric: its name and, in braces, its labels sorted by name, their values quoted.
pub(crate) fn column(name: &str, labels: &[(&str, &str)]) -> String {
    let mut sorted = labels.to_vec();
    sorted.sort_unstable();
    let mut text = name.to_owned();
    for (position, (label, value)) in sorted.iter().enumerate() {
        text.push(if position == 0 { '{' } else { ',' });
        text.push_str(label);
        text.push_str("=\"");
        for character in value.chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                other => text.push(other),
            }
        }
        text.push('"');
    }
    if !sorted.is_empty() {
        text.push('}');
    }
    text
}

/// `a, b, c and 4 more`: names in a reason, which should stay one line.
pub(crate) fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_and_quoted() {
        assert_eq!(column("interrupts_total", &[]), "interrupts_total");
        assert_eq!(
            column(
                "cpu_core_seconds_total",
                &[("state", "user"), ("core", "0")]
            ),
            r#"cpu_core_seconds_total{core="0",state="user"}"#
        );
        assert_eq!(
            column("a", &[("b", "say \"\\\"\n")]),
            "a{b=\"say \\\"\\\\\\\"\\n\"}"
        );
    }

    #[test]
    fn long_lists_are_shortened() {
        let names: Vec<String> = (0..6).map(|number| number.to_string()).collect();
        assert_eq!(some_of(&names[..2]), "0, 1");
        assert_eq!(some_of(&names), "0, 1, 2, 3 and 2 more");
    }

    #[test]
    fn a_missing_probe_stays_missing_when_more_is_found_wrong() {
        let probe = Probe::new("disk", "", vec![])
            .missing("no disks")
            .untrusted("odd");
        assert_eq!(
            (probe.status, probe.reason.as_str()),
            (Status::Missing, "no disks; odd")
        );
    }
}
