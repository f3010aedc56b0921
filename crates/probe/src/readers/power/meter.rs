//! What a meter is and says of itself.

use super::sheet::{Channel, Sheet};
use crate::probes::Probe;
use crate::readers::Reader;

/// How the reason begins of a meter that this host does not have, rather than one that cannot be read.
pub(super) const ABSENT: &str = "not present: ";

/// Reads a meter into its sheet.
pub(super) trait Meter: Send {
    /// One reading. What is not said of a channel is missing.
    fn read(&mut self, sheet: &mut Sheet);

    /// What went wrong so far, where the meter keeps that itself.
    fn complaint(&self) -> String {
        String::new()
    }
}

/// What a meter says of itself.
#[derive(Clone)]
pub(super) struct About {
    /// As in the label of its columns.
    pub meter: &'static str,
    /// Tells it from others of its kind.
    pub which: String,
    pub needs: &'static str,
    /// What is worth knowing.
    pub note: String,
    /// The column that every meter of the kind gives that works.
    expected: Option<Box<str>>,
}

impl About {
    pub fn new(meter: &'static str, needs: &'static str) -> Self {
        Self {
            meter,
            which: String::new(),
            needs,
            note: String::new(),
            expected: None,
        }
    }

    /// Tells it from others of its kind.
    pub fn of(mut self, which: &str) -> Self {
        self.which = which.to_owned();
        self
    }

    /// With the channel that every meter of the kind gives that works.
    pub fn expecting(mut self, channel: &Channel) -> Self {
        self.expected = Some(channel.column(self.meter).into());
        self
    }

    pub fn probe(&self, columns: Vec<String>) -> Probe {
        let name = if self.which.is_empty() {
            format!("power:{}", self.meter)
        } else {
            format!("power:{}:{}", self.meter, self.which)
        };
        let mut probe = Probe::new(name, self.needs, columns);
        probe.note(&self.note);
        probe
    }

    pub fn missing(&self, reason: impl AsRef<str>) -> Box<dyn Reader> {
        let columns = self.expected.as_deref().map(str::to_owned);
        let probe = self.probe(columns.into_iter().collect());
        probe.missing_reader(reason)
    }
}
