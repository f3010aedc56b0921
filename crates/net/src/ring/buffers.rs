use io_uring::Submitter;
use io_uring::types::BufRingEntry;
use mapping::Mapping;
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

/// The group that requests name; a [`Ring`](super::Ring) has one.
pub(super) const GROUP: u16 = 0;

/// What entries and buffers start at a multiple of.
const PAGE_BYTES: usize = 4096;

/// Bytes that a provided buffer holds. It is out of use until [`Ring::give_back`](super::Ring::give_back).
#[derive(Debug)]
#[must_use = "the kernel gets its buffer back only from `Ring::give_back`"]
pub struct Filled {
    pub(super) buffer: u16,
    pub(super) length: u32,
}

impl Filled {
    /// How many they are; at least one.
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// Memory that the kernel receives into, whichever of its buffers is next (`io_uring_provided_buffers(7)`).
///
/// A buffer is either the kernel's, which may write to it at any time, or lent to us, and `lent` says which. Only a
/// completion makes it ours; [`give_back`](Self::give_back) makes it the kernel's.
pub(super) struct Buffers {
    /// An entry for each buffer, then the buffers.
    memory: Mapping,
    data: usize,
    buffer_bytes: u32,
    /// Entries written so far, modulo 2^16, as the kernel counts them.
    tail: u16,
    lent: Box<[bool]>,
}

impl Buffers {
    /// `count` buffers, a power of two up to 32,768, made known to the kernel, which must be done with them before they
    /// are dropped. All of them are its own.
    pub fn new(count: u16, buffer_bytes: u32, submitter: &Submitter<'_>) -> io::Result<Self> {
        let entries_bytes = usize::from(count) * size_of::<BufRingEntry>();
        let data = entries_bytes.next_multiple_of(PAGE_BYTES);
        let memory_bytes = data + usize::from(count) * buffer_bytes as usize;
        let mut buffers = Self {
            memory: Mapping::zeroed(memory_bytes)?,
            data,
            buffer_bytes,
            tail: 0,
            lent: vec![true; usize::from(count)].into(),
        };
        let entries = buffers.memory.start().as_ptr() as u64;
        // SAFETY: the entries are mapped and zero, so the kernel sees no buffer yet. They stay mapped until this is
        // dropped, which `Ring` does after the last request that could use them.
        unsafe { submitter.register_buf_ring_with_flags(entries, count, GROUP, 0) }?;
        for buffer in 0..count {
            buffers.give_back(buffer);
        }
        Ok(buffers)
    }

    /// The kernel has written to `buffer`, and no longer does.
    pub fn lend(&mut self, buffer: u16) {
        if let Some(lent) = self.lent.get_mut(usize::from(buffer)) {
            *lent = true;
        }
    }

    /// What is in a buffer that is lent to us; nothing if it is not.
    pub fn bytes(&self, received: &Filled) -> &[u8] {
        let place = usize::from(received.buffer);
        if !self.lent.get(place).is_some_and(|&lent| lent) {
            return &[];
        }
        let length = received.length.min(self.buffer_bytes) as usize;
        let start = self.data + place * self.buffer_bytes as usize;
        // SAFETY: within the mapping, because `place` is one of its buffers; zero or what the kernel wrote. The kernel
        // writes to a lent buffer no more, and `give_back` needs `self` exclusively.
        unsafe { std::slice::from_raw_parts(self.memory.start().as_ptr().add(start), length) }
    }

    /// Let the kernel have a buffer that is lent to us.
    pub fn give_back(&mut self, buffer: u16) {
        let place = usize::from(buffer);
        match self.lent.get_mut(place) {
            Some(lent) if *lent => *lent = false,
            _ => return,
        }
        let address = self.memory.start().as_ptr() as u64
            + (self.data + place * self.buffer_bytes as usize) as u64;
        let entries: *mut BufRingEntry = self.memory.start().as_ptr().cast();
        let at = usize::from(self.tail) & (self.lent.len() - 1);
        // SAFETY: `at` is within the entries, which are mapped and suitably aligned. The kernel does not look at this
        // one before the tail says so: there are as many entries as buffers, so one whose buffer is ours is free.
        let entry = unsafe { &mut *entries.add(at) };
        entry.set_addr(address);
        entry.set_len(self.buffer_bytes);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail lies in a field of the first entry that nothing else writes, two bytes at a multiple of two.
        // The kernel reads it with acquire, so what the entry says is there before it.
        unsafe {
            let tail = BufRingEntry::tail(entries).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}
