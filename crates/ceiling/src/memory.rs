//! Memory straight from the kernel: page-aligned, huge pages advised, not touched until its owner touches it.

use std::ffi::c_void;
use std::fs;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::{self, NonNull};
use std::slice;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::{Error, Result};

/// Size and alignment of a huge page on x86-64 and on aarch64 with 4 KiB pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;
const WORD_BYTES: usize = size_of::<u64>();

/// Zeroed words in an anonymous mapping of its own, aligned to 2 MiB.
///
/// Pages are placed by whoever writes them first, so a thread that creates and fills its own `Buffer` has it on its
/// own NUMA node.
#[derive(Debug)]
pub struct Buffer {
    mapping: NonNull<c_void>,
    mapping_bytes: usize,
    words: NonNull<u64>,
    word_count: usize,
}

impl Buffer {
    /// Maps `word_count` zeroed words. Fails with [`Error::Memory`] when the kernel does not give them.
    pub fn zeroed(word_count: usize) -> Result<Self> {
        let refused = |bytes, source: rustix::io::Errno| Error::Memory {
            bytes,
            source: source.into(),
        };
        // Room for the alignment: kernels before 6.7 do not align large mappings to huge pages by themselves.
        let mapping_bytes = word_count
            .checked_mul(WORD_BYTES)
            .and_then(|bytes| bytes.checked_add(HUGE_PAGE_BYTES))
            .ok_or_else(|| refused(usize::MAX, rustix::io::Errno::NOMEM))?;
        // SAFETY: no address is asked for, so the kernel picks a range that nothing else uses.
        let mapping = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                mapping_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }
        .map_err(|source| refused(mapping_bytes, source))?;
        // SAFETY: the range is exactly the mapping made above. Huge pages are a wish: a kernel without them refuses
        // the advice, and the mapping works as well without.
        let _ = unsafe { madvise(mapping, mapping_bytes, Advice::LinuxHugepage) };
        let padding = mapping.align_offset(HUGE_PAGE_BYTES);
        let Some(mapping) = NonNull::new(mapping) else {
            return Err(refused(mapping_bytes, rustix::io::Errno::NOMEM));
        };
        // SAFETY: the padding is below HUGE_PAGE_BYTES, by which the mapping is longer than the words.
        let words = unsafe { mapping.byte_add(padding) }.cast();
        Ok(Self {
            mapping,
            mapping_bytes,
            words,
            word_count,
        })
    }
}

/// Bytes of the mappings that hold `buffers` that huge pages back at the moment; `None` where the kernel does not say.
#[must_use]
pub fn huge_page_bytes<'a>(buffers: impl IntoIterator<Item = &'a Buffer>) -> Option<u64> {
    let maps = fs::read_to_string("/proc/self/smaps").ok()?;
    let addresses: Vec<u64> = buffers
        .into_iter()
        .map(|buffer| buffer.words.as_ptr() as u64)
        .collect();
    huge_page_bytes_in(&maps, &addresses)
}

impl Deref for Buffer {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        // SAFETY: the words lie inside the mapping, are aligned, initialised (anonymous pages are zero) and owned.
        unsafe { slice::from_raw_parts(self.words.as_ptr(), self.word_count) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as for `deref`, and `&mut self` makes this the only reference.
        unsafe { slice::from_raw_parts_mut(self.words.as_ptr(), self.word_count) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the mapping made in `zeroed`, and no reference into it outlives `self`.
        // Failure is impossible for such a range, and could not be acted on here.
        let _ = unsafe { munmap(self.mapping.as_ptr(), self.mapping_bytes) };
    }
}

// SAFETY: a Buffer owns its mapping alone, as a Vec<u64> owns its heap block.
unsafe impl Send for Buffer {}

// SAFETY: a shared Buffer is only read; writing takes `&mut`.
unsafe impl Sync for Buffer {}

/// `AnonHugePages` of the mappings that hold `addresses`, each mapping once (the kernel joins neighbours), from the
/// text of `/proc/PID/smaps` (proc(5)).
fn huge_page_bytes_in(smaps: &str, addresses: &[u64]) -> Option<u64> {
    let mut inside = false;
    let mut total: Option<u64> = None;
    for line in smaps.lines() {
        if let Some(size) = line.strip_prefix("AnonHugePages:") {
            if inside {
                let kilobytes: u64 = size.trim().strip_suffix("kB")?.trim().parse().ok()?;
                total = Some(total.unwrap_or(0) + kilobytes.checked_mul(1024)?);
            }
        } else if let Some(range) = address_range(line) {
            inside = addresses.iter().any(|address| range.contains(address));
        }
    }
    total
}

/// The range that a mapping's first line begins with: `7f0000000000-7f0000400000 rw-p ...`.
fn address_range(line: &str) -> Option<Range<u64>> {
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}

#[cfg(test)]
mod tests;
