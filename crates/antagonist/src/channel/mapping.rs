//! The few words of a channel, shared by every process that maps its file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::{Error, Result};

/// The start of a channel's file; its last digit is the version of the layout.
const MAGIC: u64 = u64::from_le_bytes(*b"rschann1");
const FILE_BYTES: usize = 4096;

/// What the file begins with. Only atomics, so that any bytes are a valid value.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Words {
    magic: AtomicU64,
    /// What the channel carries when nothing is taken away.
    pub bytes_per_second: AtomicU64,
    /// `CLOCK_MONOTONIC` in nanoseconds, when everything that was let through so far has passed.
    pub free_at_ns: AtomicU64,
    /// Millionths of the bandwidth that are taken away, until `held_until_ns`.
    pub held_millionths: AtomicU64,
    /// `CLOCK_MONOTONIC` in nanoseconds; whoever takes a part away puts this off again and again.
    pub held_until_ns: AtomicU64,
    /// Bytes that were let through since the file was made.
    pub carried_bytes: AtomicU64,
}

/// A mapped channel.
#[derive(Debug)]
pub(super) struct Mapping {
    words: NonNull<Words>,
}

impl Mapping {
    /// Makes the file anew; one that is there is replaced.
    pub fn create(path: &Path, bytes_per_second: u64) -> Result<Self> {
        let failed = |source: io::Error| Error::ChannelFile {
            path: path.to_owned(),
            done: "made",
            source,
        };
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
        let words = mapping.words();
        words
            .bytes_per_second
            .store(bytes_per_second, Ordering::Relaxed);
        // Last: a file without it is none yet.
        words.magic.store(MAGIC, Ordering::Release);
        Ok(mapping)
    }

    pub fn open(path: &Path) -> Result<Self> {
        let failed = |source: io::Error| Error::ChannelFile {
            path: path.to_owned(),
            done: "opened",
            source,
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let not_one = || Error::NotAChannel {
            path: path.to_owned(),
        };
        if !metadata.is_file() || metadata.len() != FILE_BYTES as u64 {
            return Err(not_one());
        }
        let mapping = Self::map(path, &file)?;
        let words = mapping.words();
        if words.magic.load(Ordering::Acquire) != MAGIC
            || words.bytes_per_second.load(Ordering::Relaxed) == 0
        {
            return Err(not_one());
        }
        Ok(mapping)
    }

    fn map(path: &Path, file: &File) -> Result<Self> {
        // SAFETY: no address is asked for, so the kernel picks a range that nothing else uses. The file has
        // FILE_BYTES bytes, and no part of this program makes it shorter.
        let mapping = unsafe {
            mmap(
                ptr::null_mut(),
                FILE_BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file,
                0,
            )
        };
        let refused = |source: io::Error| Error::ChannelFile {
            path: path.to_owned(),
            done: "mapped",
            source,
        };
        let address = mapping.map_err(|error| refused(error.into()))?;
        let words = NonNull::new(address.cast::<Words>())
            .ok_or_else(|| refused(io::ErrorKind::OutOfMemory.into()))?;
        Ok(Self { words })
    }

    pub fn words(&self) -> &Words {
        // SAFETY: the mapping is page-aligned, longer than Words, lives as long as `self`, and holds atomics only.
        unsafe { self.words.as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the one mapped, and no reference into it outlives `self`.
        let _ = unsafe { munmap(self.words.as_ptr().cast(), FILE_BYTES) };
    }
}

// SAFETY: a Mapping gives access to atomics only, and owns its range.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}
