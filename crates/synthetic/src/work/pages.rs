//! Pages of a mapped file: what is touched must be in memory, and comes from the disk again where it had to go.

use super::error::Error;
use super::files::{failed, write_file};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::path::Path;
use std::ptr::{self, NonNull};

const PAGE_BYTES: usize = 4096;

/// A mapped file. It is in the page cache when it is made, so that touching is cheap until memory becomes short.
#[derive(Debug)]
pub(super) struct PageFile {
    start: NonNull<u8>,
    bytes: usize,
}

impl PageFile {
    pub fn create(path: &Path, bytes: u64) -> Result<Self, Error> {
        let file = write_file(path, bytes)?;
        // The file is kept by its mapping, and nobody else can open it to make it shorter.
        std::fs::remove_file(path).map_err(failed(path, "removed"))?;
        let bytes = bytes as usize / PAGE_BYTES * PAGE_BYTES;
        // SAFETY: no address is asked for, so the kernel picks a range that nothing else uses; the file has as many
        // bytes and keeps them, because it has no name by which it could be truncated.
        let mapping = unsafe {
            mmap(
                ptr::null_mut(),
                bytes,
                ProtFlags::READ,
                MapFlags::SHARED,
                &file,
                0,
            )
        };
        let mapping = mapping.map_err(|error| failed(path, "mapped")(error.into()))?;
        // A page that is missing is to cost one page, not a read-ahead. Only advice: what is refused is left out.
        // SAFETY: the range is exactly the one mapped.
        let _ = unsafe { madvise(mapping, bytes, Advice::Random) };
        let start = NonNull::new(mapping.cast())
            .ok_or_else(|| failed(path, "mapped")(std::io::ErrorKind::OutOfMemory.into()))?;
        Ok(Self { start, bytes })
    }

    /// Read a byte of each of `pages` pages that `random` picks.
    pub fn touch(&self, pages: u64, mut random: impl FnMut() -> u64) {
        let count = (self.bytes / PAGE_BYTES) as u64;
        for _ in 0..pages {
            let offset = (random() % count) as usize * PAGE_BYTES;
            // SAFETY: the offset is below `bytes`, which are mapped as long as `self` lives. Volatile, so that the
            // read is made although nobody wants the byte.
            let _ = unsafe { self.start.add(offset).read_volatile() };
        }
    }
}

impl Drop for PageFile {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the one mapped, and no reference into it exists.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

// SAFETY: the mapping is only read, and owned by the one PageFile.
unsafe impl Send for PageFile {}
// SAFETY: as above.
unsafe impl Sync for PageFile {}
