//! Memory of a partition: pages from the system, seen as atomic words or as bytes that readers may race for.
//!
//! `unsafe` code of this crate is here, in two calls in `log`, and in a comparison of bytes in `table`.

use crate::Error;
use mapping::Mapping;
use std::sync::atomic::AtomicU64;

/// Zeroed memory that does not move. The system gives pages as they are first touched.
pub(crate) struct Memory(Mapping);

impl Memory {
    /// `bytes` zeros, at a multiple of 64.
    pub fn zeroed(bytes: usize) -> Result<Self, Error> {
        Mapping::zeroed(bytes)
            .map(Self)
            .map_err(|_| Error::OutOfMemory { bytes })
    }

    #[inline]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    #[inline]
    fn start(&self) -> *mut u8 {
        self.0.start().as_ptr()
    }

    /// As [`Mapping::use_huge_pages`].
    pub fn use_huge_pages(&self) {
        self.0.use_huge_pages();
    }

    /// All of it as cache lines of words. Nobody may use the methods for bytes on the same memory.
    #[inline]
    pub fn lines(&self) -> &[[AtomicU64; 8]] {
        self.0.words().as_chunks().0
    }

    #[inline]
    fn check(&self, at: usize, bytes: usize) {
        if at > self.bytes() || bytes > self.bytes() - at {
            out_of_bounds(at, bytes, self.bytes());
        }
    }

    /// Bytes of it.
    ///
    /// # Safety
    /// Nobody may write to them while the slice lives.
    #[inline]
    pub unsafe fn slice(&self, at: usize, bytes: usize) -> &[u8] {
        self.check(at, bytes);
        // SAFETY: in bounds, and the caller knows that there are no writes.
        unsafe { std::slice::from_raw_parts(self.start().add(at), bytes) }
    }

    /// Copy `from` to `at` while readers may [`load`](Self::load).
    ///
    /// # Safety
    /// One thread at a time may write, and nobody may hold a slice of these bytes.
    #[inline]
    pub unsafe fn store(&self, at: usize, from: &[u8]) {
        self.check(at, from.len());
        // SAFETY: in bounds; racing loads are of the same kind.
        unsafe { racing_copy(from.as_ptr(), self.start().add(at), from.len()) }
    }

    /// Append `bytes` bytes from `at` to `to`; what is being written meanwhile comes out torn, and it is the caller's
    /// to notice.
    #[inline]
    pub fn load(&self, at: usize, bytes: usize, to: &mut Vec<u8>) {
        self.check(at, bytes);
        to.reserve(bytes);
        // SAFETY: in bounds of the memory and of the room just reserved, which is initialised by the copy. Racing
        // stores are of the same kind.
        unsafe {
            racing_copy(self.start().add(at), to.as_mut_ptr().add(to.len()), bytes);
            to.set_len(to.len() + bytes);
        }
    }

    /// Fill `to` from `at`; torn as in [`load`](Self::load).
    #[inline]
    pub fn load_into(&self, at: usize, to: &mut [u8]) {
        self.check(at, to.len());
        // SAFETY: in bounds of both; racing stores are of the same kind.
        unsafe { racing_copy(self.start().add(at), to.as_mut_ptr(), to.len()) }
    }

    /// Whether the bytes at `at` are `these`; meaningless when they are being written, as the caller must notice.
    #[inline]
    pub fn equals(&self, at: usize, these: &[u8]) -> bool {
        let mut window = [0; 32];
        let mut at = at;
        these.chunks(window.len()).all(|part| {
            let found = &mut window[..part.len()];
            self.load_into(at, found);
            at += part.len();
            found == part
        })
    }

    /// Have the cache line of `at` fetched; out of bounds, nothing happens.
    #[inline]
    pub fn prefetch(&self, at: usize) {
        prefetch(self.start().wrapping_add(at));
    }
}

/// Apart and by value, so that those who ask need not keep the numbers in memory for the message.
#[cold]
#[inline(never)]
fn out_of_bounds(at: usize, bytes: usize, of: usize) -> ! {
    panic!("{bytes} bytes at {at} of {of}")
}

/// Copy bytes that another thread may be copying too, as if by one relaxed atomic access a byte.
///
/// # Safety
/// Both places are valid for `bytes` bytes and do not overlap; concurrent accesses are by this function only.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn racing_copy(from: *const u8, to: *mut u8, bytes: usize) {
    // Two moves that may overlap do for all lengths from one move's to twice that. A call of memcpy, which could not
    // race anyway, and `rep movsb` take longer than that to begin.
    macro_rules! two_moves {
        ($move:literal, $class:ident, $width:literal) => {
            // SAFETY: in assembly, which the language's memory model sees as the atomic accesses it could be; each
            // move is within the `bytes` bytes, of which there are enough.
            unsafe {
                std::arch::asm!(
                    concat!($move, " {first}, [{from}]"),
                    concat!($move, " {last}, [{from} + {bytes} - ", $width, "]"),
                    concat!($move, " [{to}], {first}"),
                    concat!($move, " [{to} + {bytes} - ", $width, "], {last}"),
                    from = in(reg) from,
                    to = in(reg) to,
                    bytes = in(reg) bytes,
                    first = out($class) _,
                    last = out($class) _,
                    options(nostack, preserves_flags),
                );
            }
        };
    }
    match bytes {
        16..=32 => two_moves!("movdqu", xmm_reg, 16),
        8..16 => two_moves!("mov", reg, 8),
        0 => {}
        // SAFETY: as above; the flag that gives the direction is clear by the calling convention.
        _ => unsafe {
            std::arch::asm!(
                "rep movsb",
                inout("rcx") bytes => _,
                inout("rsi") from => _,
                inout("rdi") to => _,
                options(nostack, preserves_flags),
            );
        },
    }
}

/// As above, without assembly.
///
/// # Safety
/// As above.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
unsafe fn racing_copy(from: *const u8, to: *mut u8, bytes: usize) {
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
    for at in 0..bytes {
        // SAFETY: valid and accessed atomically by everybody.
        unsafe {
            let byte = AtomicU8::from_ptr(from.add(at).cast_mut()).load(Relaxed);
            AtomicU8::from_ptr(to.add(at)).store(byte, Relaxed);
        }
    }
}

/// Have the cache line of `address` fetched. Any address will do: a prefetch never faults.
#[inline]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a hint.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, readonly, preserves_flags));
    };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

#[cfg(test)]
mod tests;
