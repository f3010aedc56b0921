//! A file that stays open and is read again from its start at each tick.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::error::{Fault, ProbeError};

/// What a file holds at first; it doubles when a file no longer fits, and never truncates one.
const FIRST_CAPACITY: usize = 8 * 1024;

/// No file that is read here comes near this; it bounds what a file that never ends could take.
const LARGEST_CAPACITY: usize = 64 * 1024 * 1024;

/// An open file, the buffer that it is read into, and what went wrong while reading it.
pub(crate) struct Source {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    reads: u64,
    failed_reads: u64,
    first_failure: Option<ProbeError>,
}

impl Source {
    /// Opens the file and keeps it open.
    pub(crate) fn open(path: impl Into<PathBuf>) -> Result<Self, ProbeError> {
        Self::open_sized(path, FIRST_CAPACITY)
    }

    /// Like [`Source::open`], for a file that is known to be small.
    pub(crate) fn open_small(path: impl Into<PathBuf>) -> Result<Self, ProbeError> {
        Self::open_sized(path, 512)
    }

    fn open_sized(path: impl Into<PathBuf>, capacity: usize) -> Result<Self, ProbeError> {
        let path = path.into();
        let opened = File::open(&path).and_then(|file| {
            // A folder opens but does not read; say so now and not at every tick.
            if file.metadata()?.is_dir() {
                Err(io::Error::from(io::ErrorKind::IsADirectory))
            } else {
                Ok(file)
            }
        });
        match opened {
            Ok(file) => Ok(Self {
                path,
                file,
                buffer: vec![0; capacity],
                reads: 0,
                failed_reads: 0,
                first_failure: None,
            }),
            Err(error) => Err(ProbeError::Open(path, error)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// All of the file, for a file that may vanish without that being a failure.
    pub(crate) fn contents(&mut self) -> Result<&[u8], Errno> {
        let length = self.fill()?;
        Ok(&self.buffer[..length])
    }

    /// Reads all of the file and hands it to `parse`. True when both went well; else the failure is kept for
    /// [`Source::complaint`], and what `parse` had stored before it stopped is right.
    pub(crate) fn read(&mut self, parse: impl FnOnce(&[u8]) -> Result<(), Fault>) -> bool {
        self.reads += 1;
        let failure = match self.fill() {
            Ok(length) => match parse(&self.buffer[..length]) {
                Ok(()) => return true,
                Err(fault) if self.first_failure.is_none() => Some(fault.at(&self.path)),
                Err(_) => None,
            },
            Err(errno) if self.first_failure.is_none() => {
                Some(ProbeError::Read(self.path.clone(), errno.into()))
            }
            Err(_) => None,
        };
        self.failed_reads += 1;
        if failure.is_some() {
            self.first_failure = failure;
        }
        false
    }

    fn fill(&mut self) -> Result<usize, Errno> {
        fill(&self.file, &mut self.buffer)
    }

    /// Itself if it can be read: some files are there, open, and refuse.
    pub(crate) fn readable(mut self) -> Result<Self, ProbeError> {
        match self.fill() {
            Ok(_) => Ok(self),
            Err(errno) => Err(ProbeError::Read(self.path, errno.into())),
        }
    }

    /// What went wrong so far, in a sentence; empty when nothing did.
    pub(crate) fn complaint(&self) -> String {
        match &self.first_failure {
            None => String::new(),
            Some(failure) if self.reads == self.failed_reads => failure.to_string(),
            Some(failure) => format!(
                "{} of {} readings failed, the first: {failure}",
                self.failed_reads, self.reads
            ),
        }
    }
}

/// Reads all of a file into the buffer, which grows if it must, and returns its length.
pub(crate) fn fill(file: impl AsFd, buffer: &mut Vec<u8>) -> Result<usize, Errno> {
    let mut length = 0;
    loop {
        if length == buffer.len() {
            if length >= LARGEST_CAPACITY {
                return Err(Errno::FBIG);
            }
            buffer.resize(length * 2, 0);
        }
        // Only a read of nothing ends a file: the kernel hands many of these out in pieces of a page.
        match rustix::io::pread(&file, &mut buffer[length..], length as u64) {
            Ok(0) => return Ok(length),
            Ok(more) => length += more,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// What went wrong with any of several files: of the first in full, of the others how many.
pub(crate) fn complaints<'a>(sources: impl Iterator<Item = &'a Source>) -> String {
    let mut complaints = sources
        .map(Source::complaint)
        .filter(|complaint| !complaint.is_empty());
    let Some(mut first) = complaints.next() else {
        return String::new();
    };
    let others = complaints.count();
    if others > 0 {
        first.push_str(&format!(" (and {others} more files)"));
    }
    first
}

#[cfg(test)]
mod tests;
