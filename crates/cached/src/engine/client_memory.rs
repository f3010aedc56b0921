//! What the buffers of all clients may take together, apart from items: one budget for a server.
//!
//! It is paid as buffers grow, not for each request: a client whose commands come whole and that takes its replies has
//! no buffers. A worker takes more than it needs and keeps some of what it gets back, so that even growing buffers seldom
//! touch what all workers share.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Buffers that are larger go back to the system when they become empty.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// The most that a worker takes at a time beyond what it needs.
const STEP_BYTES_MAX: usize = 256 << 10;

/// All of the budget is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spent;

/// A server's budget.
pub(crate) struct ClientMemory {
    bytes_max: usize,
    taken: AtomicUsize,
    step: usize,
}

impl ClientMemory {
    pub fn new(bytes_max: usize, workers: usize) -> Self {
        Self {
            bytes_max,
            taken: AtomicUsize::new(0),
            // What workers keep by them is a small part of all.
            step: (bytes_max / (16 * workers.max(1))).min(STEP_BYTES_MAX),
        }
    }

    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// What buffers have, and workers by them.
    pub fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }

    fn take(&self, bytes: usize) -> Result<(), Spent> {
        let more = |taken: usize| {
            taken
                .checked_add(bytes)
                .filter(|&all| all <= self.bytes_max)
        };
        let taken = self.taken.fetch_update(Relaxed, Relaxed, more);
        taken.map(drop).map_err(|_| Spent)
    }

    fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Relaxed);
    }
}

/// What a worker has by it. It alone changes that.
pub(crate) struct Allowance {
    memory: Arc<ClientMemory>,
    free: AtomicUsize,
}

impl Allowance {
    pub fn of(memory: &Arc<ClientMemory>) -> Self {
        Self {
            memory: Arc::clone(memory),
            free: AtomicUsize::new(0),
        }
    }

    /// What is by this worker and nobody's.
    pub fn free(&self) -> usize {
        self.free.load(Relaxed)
    }

    fn take(&self, bytes: usize) -> Result<(), Spent> {
        let free = self.free();
        let left = match free.checked_sub(bytes) {
            Some(left) => left,
            None => {
                let (missing, step) = (bytes - free, self.memory.step);
                match self.memory.take(missing.saturating_add(step)) {
                    Ok(()) => step,
                    Err(Spent) => self.memory.take(missing).map(|()| 0)?,
                }
            }
        };
        self.free.store(left, Relaxed);
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        let mut free = self.free() + bytes;
        if free > 2 * self.memory.step {
            self.memory.give_back(free - self.memory.step);
            free = self.memory.step;
        }
        self.free.store(free, Relaxed);
    }
}

/// So many bytes that are paid for, until this is dropped.
#[derive(Default)]
pub(crate) struct Charge {
    bytes: usize,
    /// Once there was something to pay.
    memory: Option<Arc<ClientMemory>>,
}

impl Charge {
    /// Pay for `bytes` in all from now on, by the worker whose `allowance` it is. If memory is [`Spent`], it stays as
    /// it was.
    pub fn set(&mut self, bytes: usize, allowance: &Allowance) -> Result<(), Spent> {
        if bytes > self.bytes {
            allowance.take(bytes - self.bytes)?;
            self.memory
                .get_or_insert_with(|| Arc::clone(&allowance.memory));
        } else if bytes < self.bytes {
            allowance.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(memory) = &self.memory {
            memory.give_back(self.bytes);
        }
    }
}

/// Bytes that are held for a client.
#[derive(Default)]
pub(crate) struct ClientBuffer {
    bytes: Vec<u8>,
    /// For all of the capacity.
    charge: Charge,
}

impl Deref for ClientBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl ClientBuffer {
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Let there be room for `bytes` in all, and no more. If memory is [`Spent`], it stays as it was.
    #[inline]
    pub fn reserve(&mut self, bytes: usize, allowance: &Allowance) -> Result<(), Spent> {
        match bytes > self.capacity() {
            true => self.grow(bytes, allowance),
            false => Ok(()),
        }
    }

    #[cold]
    fn grow(&mut self, bytes: usize, allowance: &Allowance) -> Result<(), Spent> {
        self.charge.set(bytes, allowance)?;
        self.bytes.reserve_exact(bytes - self.bytes.len());
        Ok(())
    }

    /// Append `more`. If memory is [`Spent`], nothing is appended.
    #[inline]
    pub fn extend(&mut self, more: &[u8], allowance: &Allowance) -> Result<(), Spent> {
        let bytes = self.len() + more.len();
        if bytes > self.capacity() {
            // As a vector grows, unless there is only so much left.
            let doubled = bytes.max(2 * self.capacity());
            self.reserve(doubled, allowance)
                .or_else(|Spent| self.reserve(bytes, allowance))?;
        }
        self.bytes.extend_from_slice(more);
        Ok(())
    }

    /// Let `fill` write to `more` bytes behind what is there, and keep as many of them as it says. If memory is
    /// [`Spent`], nothing is written.
    pub fn fill<T>(
        &mut self,
        more: usize,
        allowance: &Allowance,
        fill: impl FnOnce(&mut [u8]) -> (usize, T),
    ) -> Result<T, Spent> {
        let held = self.len();
        self.reserve(held + more, allowance)?;
        self.bytes.resize(held + more, 0);
        let (filled, result) = fill(&mut self.bytes[held..]);
        self.bytes.truncate(held + filled);
        Ok(result)
    }

    /// Forget the first `bytes`.
    #[inline]
    pub fn consume(&mut self, bytes: usize, allowance: &Allowance) {
        self.bytes.drain(..bytes);
        self.release(allowance);
    }

    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Give the memory back if it is empty, and more than a short command needs.
    #[inline]
    pub fn release(&mut self, allowance: &Allowance) {
        if self.is_empty() && self.capacity() > KEPT_BYTES_MAX {
            self.bytes = Vec::new();
            // It is less, which is always had.
            _ = self.charge.set(0, allowance);
        }
    }
}

#[cfg(test)]
mod tests;
