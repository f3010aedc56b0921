//! What a reader is and how it is found.

use crate::host::Host;
use crate::probes::Probe;

/// Reads one kind of source into its columns of a row.
pub trait Reader: Send {
    /// What this reader says of itself. The columns of the probes that are not missing, one after the other, are the
    /// columns of the row; neither they nor which probes are missing change after construction.
    fn probes(&self) -> Vec<Probe>;

    /// Fills the row, which holds NaN; what cannot be read stays NaN.
    fn read(&mut self, row: &mut [f64]);
}

/// How a reader is found.
pub struct Registration {
    /// The reader's name, which its probes carry too.
    pub name: &'static str,
    /// Sets up the reader, or several where there are several things to follow. What is missing is said by
    /// [`Reader::probes`].
    pub build: fn(&Host) -> Vec<Box<dyn Reader>>,
}

/// A reader of which everything is missing.
pub(crate) struct MissingReader(pub(crate) Probe);

impl Reader for MissingReader {
    fn probes(&self) -> Vec<Probe> {
        vec![self.0.clone()]
    }

    fn read(&mut self, _row: &mut [f64]) {}
}
