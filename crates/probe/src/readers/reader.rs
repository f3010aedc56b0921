//! What a reader is.

use crate::probes::Probe;

/// Reads one kind of source into its columns of a row.
pub trait Reader: Send {
    /// What this reader says of itself. The columns of the probes that are not missing, one after the other, are the
    /// columns of the row; neither they nor which probes are missing change after construction.
    fn probes(&self) -> Vec<Probe>;

    /// Fills the row, which holds NaN; what cannot be read stays NaN.
    fn read(&mut self, row: &mut [f64]);
}

/// A reader of which everything is missing.
impl Reader for Vec<Probe> {
    fn probes(&self) -> Vec<Probe> {
        self.clone()
    }

    fn read(&mut self, _row: &mut [f64]) {}
}

impl Probe {
    /// A reader of this probe alone, which is missing.
    pub(crate) fn missing_reader(self, reason: impl AsRef<str>) -> Box<dyn Reader> {
        Box::new(vec![self.missing(reason)])
    }
}
