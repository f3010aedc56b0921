//! What a probe says of itself, and how its columns are named.

use serde::Serialize;

/// Whether a probe's samples can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Read, and as the kernel documents it.
    Ok,
    /// Not readable here: its columns are not sampled.
    Missing,
    /// Read, but incomplete or approximate: the reason says how.
    Untrusted,
}

/// A source of samples.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
        self.reason = join(std::mem::take(&mut self.reason), reason.as_ref());
    }
}

/// Two sentences, either of which may be empty.
pub(crate) fn join(mut first: String, second: &str) -> String {
    if !first.is_empty() && !second.is_empty() {
        first.push_str("; ");
    }
    first + second
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

/// The columns of metrics that may have a label of their own, with one more that they share.
pub(crate) fn labelled(
    metrics: &[(&str, Option<(&str, &str)>)],
    shared: (&str, &str),
) -> Vec<String> {
    metrics
        .iter()
        .map(|(name, own)| {
            let labels: Vec<_> = [shared].into_iter().chain(*own).collect();
            column(name, &labels)
        })
        .collect()
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
mod tests;
