//! Mapped memory and its owner: zeroed pages from the system, or a file that is shared with other processes.
//!
//! A [`Mapping`] is seen as atomic words, which is always sound, or as a raw pointer, whose users have their own rules.
//! [`Words`] are plain numbers of one owner.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::AtomicU64;

/// Huge pages of x86-64, and of aarch64 with pages of 4 KiB.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// What may be done with the pages of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// They are read.
    Read,
    /// They are read and written.
    ReadWrite,
}

/// Memory of the system's, given back when this is dropped.
///
/// Invariant: the `bytes` from `start` on lie within the `mapped_bytes` from `mapped` on, which this value alone unmaps.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    mapped: NonNull<c_void>,
    mapped_bytes: usize,
    /// Whole words that may be written: none of a mapping for reading.
    words: usize,
}

// SAFETY: plain memory; the safe methods touch it with atomic or volatile accesses only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `bytes` zeros, which take memory as they are first touched. They begin at a page, and at a huge page if they fill
    /// one: kernels before 6.7 do not align large mappings by themselves.
    pub fn zeroed(bytes: usize) -> io::Result<Self> {
        let padding = match bytes < HUGE_PAGE_BYTES {
            true => 0,
            false => HUGE_PAGE_BYTES,
        };
        let mapped_bytes = bytes
            .max(1)
            .checked_add(padding)
            .ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: no address is asked for, so the kernel picks a range that nothing else uses.
        let mapped = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                mapped_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        let skip = match padding {
            0 => 0,
            _ => mapped.align_offset(HUGE_PAGE_BYTES),
        };
        Self::of(mapped, mapped_bytes, skip, bytes, Access::ReadWrite)
    }

    /// `bytes` of `file` from `offset` (a multiple of the page size) on, shared with everybody who maps it. All of it is
    /// read at once if `populate` says so. A file that is made shorter later ends the process that touches its lost
    /// pages (SIGBUS).
    pub fn of_file(
        file: impl AsFd,
        offset: u64,
        bytes: usize,
        access: Access,
        populate: bool,
    ) -> io::Result<Self> {
        let protection = match access {
            Access::Read => ProtFlags::READ,
            Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        };
        let flags = match populate {
            true => MapFlags::SHARED | MapFlags::POPULATE,
            false => MapFlags::SHARED,
        };
        // SAFETY: no address is asked for, so the kernel picks a range that nothing else uses.
        let mapped = unsafe { mmap(ptr::null_mut(), bytes, protection, flags, file, offset) }?;
        Self::of(mapped, bytes, 0, bytes, access)
    }

    fn of(
        mapped: *mut c_void,
        mapped_bytes: usize,
        skip: usize,
        bytes: usize,
        access: Access,
    ) -> io::Result<Self> {
        let mapped = NonNull::new(mapped).ok_or(io::ErrorKind::OutOfMemory)?;
        assert!(skip <= mapped_bytes && bytes <= mapped_bytes - skip);
        Ok(Self {
            // SAFETY: within the mapping, as was just checked.
            start: unsafe { mapped.byte_add(skip) }.cast(),
            bytes,
            mapped,
            mapped_bytes,
            words: match access {
                Access::Read => 0,
                Access::ReadWrite => bytes / 8,
            },
        })
    }

    /// Its length.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where it lies: valid for [`bytes`](Self::bytes) as long as `self` lives. Who reads or writes there sees to it
    /// that others do not at the same time, and that a mapping for reading is not written.
    #[inline]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Have huge pages from now on, where the system has them: for what is going to be filled.
    pub fn use_huge_pages(&self) {
        if self.bytes >= HUGE_PAGE_BYTES {
            self.advise(Advice::LinuxHugepage);
        }
    }

    /// Have one page read for each that is touched, instead of more ahead of it.
    pub fn expect_random_access(&self) {
        self.advise(Advice::Random);
    }

    fn advise(&self, advice: Advice) {
        // SAFETY: both kinds of advice leave what is in the pages as it is. Where one is refused, it goes without.
        _ = unsafe { madvise(self.start.as_ptr().cast(), self.bytes, advice) };
    }

    /// All whole words of it; none where it is for reading only. Other processes that map a file may change them at any
    /// time.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped for as long as `self` lives, aligned to a page, initialised by the system.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.words) }
    }

    /// Read the byte at `offset`, whatever it is, so that its page is in memory.
    ///
    /// # Panics
    /// If it lies outside.
    #[inline]
    pub fn touch(&self, offset: usize) {
        assert!(offset < self.bytes);
        // SAFETY: in bounds. Volatile, so that it is read although its value is not used.
        _ = unsafe { self.start.add(offset).read_volatile() };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value's own range, and everything that borrows from it is gone.
        _ = unsafe { munmap(self.mapped.as_ptr(), self.mapped_bytes) };
    }
}

/// Zeroed numbers in memory of their own.
///
/// Pages are placed by the thread that writes them first, so one that makes and fills its own words has them on its own
/// NUMA node.
#[derive(Debug)]
pub struct Words {
    mapping: Mapping,
    count: usize,
}

impl Words {
    /// `count` zeros, at a huge page, and in huge pages where the system has them.
    pub fn zeroed(count: usize) -> io::Result<Self> {
        let bytes = count.checked_mul(8).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Mapping::zeroed(bytes.max(HUGE_PAGE_BYTES))?;
        mapping.use_huge_pages();
        Ok(Self { mapping, count })
    }
}

impl Deref for Words {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        // SAFETY: mapped, aligned, zeroed, and only this value reaches the private mapping.
        unsafe { slice::from_raw_parts(self.mapping.start.as_ptr().cast(), self.count) }
    }
}

impl DerefMut for Words {
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above, and `&mut self` makes this the only reference.
        unsafe { slice::from_raw_parts_mut(self.mapping.start.as_ptr().cast(), self.count) }
    }
}

#[cfg(test)]
mod tests;
