//! The rings that a socket shares with the kernel: one side writes entries and the producer index, the other reads them
//! and writes the consumer index (Documentation/networking/af_xdp.rst, and `net/xdp/xsk_queue.h` on the orderings).

use mapping::{Access, Mapping};
use rustix::fd::BorrowedFd;
use rustix::net::xdp::{XdpRingFlags, XdpRingOffset};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, fence};

/// A ring of entries of `T`, whose size is a power of two. The indices count on for ever, modulo 2^32.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    _mapping: Mapping,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: Option<NonNull<AtomicU32>>,
    entries: NonNull<T>,
    size: u32,
}

// SAFETY: the pointers are into the ring's own mapping; `Producer` and `Consumer`, which alone use them, take `&mut self`.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Map the ring that the kernel made for `socket` at `page_offset`. The kernel tells the layout in `offsets`.
    ///
    /// # Safety
    /// `socket` is an AF_XDP socket whose ring at `page_offset` has `size` entries (a power of two) of the layout of
    /// `T`, which has no invalid values, laid out as in `offsets`; nobody else maps this ring.
    pub unsafe fn map(
        socket: BorrowedFd<'_>,
        page_offset: u64,
        offsets: &XdpRingOffset,
        size: u32,
    ) -> io::Result<Self> {
        let entries_bytes = size as usize * size_of::<T>();
        let bytes = offset(offsets.desc)? + entries_bytes;
        let mapping = Mapping::of_file(socket, page_offset, bytes, Access::ReadWrite, true)?;
        // SAFETY: the kernel tells these places, and that the mapping is as long, is checked by its making.
        let (producer, consumer, flags, entries) = unsafe {
            let start = mapping.start();
            (
                start.byte_add(offset(offsets.producer)?).cast(),
                start.byte_add(offset(offsets.consumer)?).cast(),
                match offsets.flags {
                    Some(flags) => Some(start.byte_add(offset(flags)?).cast()),
                    None => None,
                },
                start.byte_add(offset(offsets.desc)?).cast(),
            )
        };
        Ok(Self {
            _mapping: mapping,
            producer,
            consumer,
            flags,
            entries,
            size,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: mapped for as long as `self` lives, aligned by the kernel, and only accessed atomically.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    fn entry(&self, index: u32) -> NonNull<T> {
        let position = index & (self.size - 1);
        // SAFETY: the size is a power of two, so that the position is in the mapping.
        unsafe { self.entries.add(position as usize) }
    }

    /// Whether the kernel waits for a system call before it looks at this ring again. Before Linux 5.4 it always does.
    fn needs_wakeup(&self) -> bool {
        // The kernel says that it waits after it has looked at the ring. Without the fence, this could be read before
        // the ring's index is written: each side would believe that the other will act.
        fence(std::sync::atomic::Ordering::SeqCst);
        self.flags.is_none_or(|flags| {
            // SAFETY: as for the indices.
            let flags = unsafe { flags.as_ref() }.load(Relaxed);
            flags & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
        })
    }
}

/// A place in the mapping.
fn offset(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(io::Error::other)
}

/// The writing end: of the fill and the transmit ring.
#[derive(Debug)]
pub(crate) struct Producer<T> {
    ring: Ring<T>,
    /// Where the next entry goes; the kernel knows up to the last [`submit`](Self::submit).
    head: u32,
    /// The other side's index as last read.
    tail: u32,
}

impl<T: Copy> Producer<T> {
    /// The writing end of a ring that the kernel reads.
    pub fn new(ring: Ring<T>) -> Self {
        let (head, tail) = (ring.producer().load(Relaxed), ring.consumer().load(Acquire));
        Self { ring, head, tail }
    }

    /// How many entries have room, at least `wanted` if they do.
    #[inline]
    pub fn room(&mut self, wanted: u32) -> u32 {
        if self.cached_room() < wanted {
            // Acquire: the other side has read the entries that we may now write over.
            self.tail = self.ring.consumer().load(Acquire);
        }
        self.cached_room()
    }

    #[inline]
    fn cached_room(&self) -> u32 {
        self.ring
            .size
            .saturating_sub(self.head.wrapping_sub(self.tail))
    }

    /// Write the next entry, if there is room for it. The other side sees it after [`submit`](Self::submit).
    #[inline]
    #[must_use]
    pub fn push(&mut self, entry: T) -> bool {
        if self.room(1) == 0 {
            return false;
        }
        // SAFETY: in the mapping, and the other side reads no entry that was not submitted.
        unsafe { self.ring.entry(self.head).write(entry) };
        self.head = self.head.wrapping_add(1);
        true
    }

    /// Let the other side see what was pushed.
    #[inline]
    pub fn submit(&mut self) {
        // Release: the entries, and the frames that they are about, are written.
        self.ring.producer().store(self.head, Release);
    }

    /// How many entries the other side has not read yet.
    #[inline]
    pub fn pending(&mut self) -> u32 {
        self.tail = self.ring.consumer().load(Acquire);
        self.head.wrapping_sub(self.tail)
    }

    #[inline]
    pub fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// The reading end: of the receive and the completion ring.
#[derive(Debug)]
pub(crate) struct Consumer<T> {
    ring: Ring<T>,
    /// The other side's index as last read.
    head: u32,
    /// The next entry to read; the kernel knows up to the last [`release`](Self::release).
    tail: u32,
}

impl<T: Copy> Consumer<T> {
    /// The reading end of a ring that the kernel writes.
    pub fn new(ring: Ring<T>) -> Self {
        let tail = ring.consumer().load(Relaxed);
        Self {
            ring,
            head: tail,
            tail,
        }
    }

    /// The next entry. The other side may write over it after [`release`](Self::release).
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.head == self.tail {
            // Acquire: the entries, and the frames that they are about, are written.
            let head = self.ring.producer().load(Acquire);
            if head.wrapping_sub(self.tail) > self.ring.size {
                // No such number of entries can be there.
                return None;
            }
            self.head = head;
        }
        if self.head == self.tail {
            return None;
        }
        // SAFETY: in the mapping, submitted by the other side and not released; `T` has no invalid values.
        let entry = unsafe { self.ring.entry(self.tail).read() };
        self.tail = self.tail.wrapping_add(1);
        Some(entry)
    }

    /// Let the other side use the places of what was popped.
    #[inline]
    pub fn release(&mut self) {
        // Release: the entries have been read.
        self.ring.consumer().store(self.tail, Release);
    }
}

#[cfg(test)]
mod tests;
