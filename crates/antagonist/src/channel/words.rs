//! The few words of a channel, shared by every process that maps its file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use mapping::{Access, Mapping};

use crate::{Error, Result};

/// The start of a channel's file; its last digit is the version of the layout.
const MAGIC: u64 = u64::from_le_bytes(*b"rschann1");
const FILE_BYTES: usize = 4096;

/// The words of a mapped channel, in the order in which the file has them.
#[derive(Debug)]
pub(super) struct Words(Mapping);

impl Words {
    fn magic(&self) -> &AtomicU64 {
        &self.0.words()[0]
    }

    /// What the channel carries when nothing is taken away.
    pub fn bytes_per_second(&self) -> &AtomicU64 {
        &self.0.words()[1]
    }

    /// `CLOCK_MONOTONIC` in nanoseconds, when everything that was let through so far has passed.
    pub fn free_at_ns(&self) -> &AtomicU64 {
        &self.0.words()[2]
    }

    /// Millionths of the bandwidth that are taken away, until `held_until_ns`.
    pub fn held_millionths(&self) -> &AtomicU64 {
        &self.0.words()[3]
    }

    /// `CLOCK_MONOTONIC` in nanoseconds; the process that takes a part away puts this off again and again.
    pub fn held_until_ns(&self) -> &AtomicU64 {
        &self.0.words()[4]
    }

    /// Bytes that were let through since the file was made.
    pub fn carried_bytes(&self) -> &AtomicU64 {
        &self.0.words()[5]
    }

    /// Makes the file anew; one that is there is replaced.
    pub fn create(path: &Path, bytes_per_second: u64) -> Result<Self> {
        let failed = |source| Error::channel_file(path, "made")(source);
        // Whoever still maps an old file keeps it: it is not written over.
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        file.write_all(&[0; FILE_BYTES]).map_err(failed)?;
        let mapping = Self::map(path, &file)?;
        mapping
            .bytes_per_second()
            .store(bytes_per_second, Ordering::Relaxed);
        // Last: a file without it is none yet.
        mapping.magic().store(MAGIC, Ordering::Release);
        Ok(mapping)
    }

    pub fn open(path: &Path) -> Result<Self> {
        let failed = |source| Error::channel_file(path, "opened")(source);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let not_one = || {
            Error::Argument(format!(
                "{} is not a regulated channel of this version",
                path.display()
            ))
        };
        if !metadata.is_file() || metadata.len() != FILE_BYTES as u64 {
            return Err(not_one());
        }
        let mapping = Self::map(path, &file)?;
        if mapping.magic().load(Ordering::Acquire) != MAGIC
            || mapping.bytes_per_second().load(Ordering::Relaxed) == 0
        {
            return Err(not_one());
        }
        Ok(mapping)
    }

    fn map(path: &Path, file: &File) -> Result<Self> {
        Mapping::of_file(file, 0, FILE_BYTES, Access::ReadWrite, false)
            .map(Self)
            .map_err(Error::channel_file(path, "mapped"))
    }
}
