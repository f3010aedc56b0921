use crate::{Interest, Poller, Ring};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Ends a [`Poller::wait`] or a [`Ring::wait`] of another thread (`eventfd(2)`).
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// A waker whose events carry `token`.
    pub fn new(poller: &Poller, token: u64) -> io::Result<Self> {
        let waker = Self(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        poller.add(&waker, token, Interest::READ)?;
        Ok(waker)
    }

    /// A waker whose wakes are a ring's [`Completion::Woken`](crate::Completion::Woken).
    pub fn for_ring(ring: &mut Ring) -> io::Result<Self> {
        let waker = Self(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        ring.watch(&waker)?;
        Ok(waker)
    }

    /// Wake the thread that waits, now or at its next wait.
    pub fn wake(&self) {
        // The only failure is a counter that is full, and then the poller is awake already.
        _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Take note of all wakes so far, so that the next wait sleeps.
    pub fn reset(&self) {
        // The only failure is a counter that is zero: nothing to take note of.
        _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests;
