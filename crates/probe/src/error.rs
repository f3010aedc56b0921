//! What can go wrong, with the path, line and item where it did.

use std::io;
use std::path::{Path, PathBuf};

/// A failure to set up a reader or to read a sample.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A file could not be opened.
    #[error("cannot open {path}: {1}", path = .0.display())]
    Open(PathBuf, #[source] io::Error),
    /// A file that was open could not be read.
    #[error("cannot read {path}: {1}", path = .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// A file holds something other than its format says.
    #[error("{path}, {1}", path = .0.display())]
    Parse(PathBuf, Fault),
    /// The sampling interval, in seconds, is outside of what is supported.
    #[error("a sampling interval of {0} s is outside of 0.01 s to 1 s (100 to 1 samples a second)")]
    Interval(f64),
    /// A sampler that was started before, that does not run, or whose thread ended by itself.
    #[error("{0}")]
    State(&'static str),
    /// The sampling thread could not be started.
    #[error("cannot start the sampling thread: {0}")]
    Thread(#[source] io::Error),
}

impl ProbeError {
    /// Whether the file, or the process that it tells of, is not there (any more).
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Open(_, error) | Self::Read(_, error)
            if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH))
    }
}

/// What is wrong with an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("is missing")]
    Missing,
    #[error("is not a number")]
    NotANumber,
    #[error("is a number of more than 64 bits")]
    TooLarge,
    #[error("is cut off: the file ends in the middle of a line")]
    CutOff,
    #[error("is missing: the file is empty")]
    Empty,
    #[error("has an unknown form")]
    Unknown,
}

/// Where a parser stopped; cheap to make, so that a failing file costs nothing per tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {item} {problem}")]
pub struct Fault {
    /// Counted from 1.
    pub line: u32,
    /// What was looked for.
    pub item: &'static str,
    pub problem: Problem,
}

impl Fault {
    pub(crate) fn at(self, path: &Path) -> ProbeError {
        ProbeError::Parse(path.to_owned(), self)
    }
}
