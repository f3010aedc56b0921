//! What can go wrong, with the path, line and item where it did.

use std::io;
use std::path::{Path, PathBuf};

/// A failure to set up a reader or to read a sample.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A file could not be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A file that was open could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A file holds something other than its format says.
    #[error("{}, line {line}: {item} {problem}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u32,
        /// What was looked for.
        item: &'static str,
        /// What is wrong with it.
        problem: Problem,
    },
    /// The sampling interval is outside of what is supported.
    #[error(
        "a sampling interval of {seconds} s is outside of 0.01 s to 1 s (100 to 1 samples a second)"
    )]
    Interval {
        /// The interval that was asked for, in seconds.
        seconds: f64,
    },
    /// A sampler that was started before, that does not run, or whose thread ended by itself.
    #[error("{0}")]
    State(&'static str),
    /// The sampling thread could not be started.
    #[error("cannot start the sampling thread: {source}")]
    Thread {
        /// What the kernel said.
        source: io::Error,
    },
}

impl ProbeError {
    /// Whether the file, or the process that it tells of, is not there (any more).
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Open { source, .. } | Self::Read { source, .. } => {
                source.kind() == io::ErrorKind::NotFound
                    || source.raw_os_error() == Some(libc::ESRCH)
            }
            _ => false,
        }
    }
}

/// What is wrong with an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The item is not there.
    #[error("is missing")]
    Missing,
    /// The item is not the number that it should be.
    #[error("is not a number")]
    NotANumber,
    /// The number is larger than 64 bits hold.
    #[error("is a number of more than 64 bits")]
    TooLarge,
    /// The file ends within the item.
    #[error("is cut off: the file ends in the middle of a line")]
    CutOff,
    /// The file is empty.
    #[error("is missing: the file is empty")]
    Empty,
    /// The line has another form than the format says.
    #[error("has an unknown form")]
    Unknown,
}

/// Where a parser stopped; cheap to make, so that a failing file costs nothing per tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub line: u32,
    pub item: &'static str,
    pub problem: Problem,
}

impl Fault {
    pub(crate) fn at(self, path: &Path) -> ProbeError {
        ProbeError::Parse {
            path: path.to_owned(),
            line: self.line,
            item: self.item,
            problem: self.problem,
        }
    }
}
