use rustix::event::{PollFd, PollFlags, epoll};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What to report of a descriptor. Errors and hang-ups are always reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest(epoll::EventFlags);

impl Interest {
    /// There is something to read, a connection to accept, or the peer has shut down its sending side.
    pub const READ: Self = Self(epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP));
    /// It can be written to.
    pub const WRITE: Self = Self(epoll::EventFlags::OUT);
    /// Nothing but errors and hang-ups.
    pub const NONE: Self = Self(epoll::EventFlags::empty());
    /// Report changes only (`EPOLLET`): after an event, read or write until `WouldBlock`.
    pub const EDGE: Self = Self(epoll::EventFlags::ET);

    /// Both.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0.union(other.0))
    }
}

/// Something happened to a descriptor.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Event(libc::epoll_event);

impl Event {
    /// The token that the descriptor was added with.
    #[inline]
    pub fn token(&self) -> u64 {
        self.0.u64
    }

    /// A read would not block: there is data, the peer closed, or an error waits to be collected.
    #[inline]
    pub fn is_readable(&self) -> bool {
        self.has(libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR)
    }

    /// The peer will send no more than what is there to read.
    #[inline]
    pub fn is_read_closed(&self) -> bool {
        self.has(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR)
    }

    /// A write would not block: the socket takes more, or an error waits to be collected.
    #[inline]
    pub fn is_writable(&self) -> bool {
        self.has(libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR)
    }

    /// Both directions are closed, or the socket failed. There may still be data to read.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.has(libc::EPOLLHUP | libc::EPOLLERR)
    }

    #[inline]
    fn has(&self, flags: i32) -> bool {
        self.0.events & flags.cast_unsigned() != 0
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Event")
            .field("token", &self.token())
            .field("readable", &self.is_readable())
            .field("writable", &self.is_writable())
            .field("closed", &self.is_closed())
            .finish()
    }
}

/// Events of one wait, in memory that is allocated once.
#[derive(Debug, Default)]
pub struct Events {
    buffer: Vec<Event>,
    count: usize,
}

impl Events {
    /// Memory for at most `events` events a wait; more wait for their turn.
    #[must_use]
    pub fn with_capacity(events: usize) -> Self {
        let none = Event(libc::epoll_event { events: 0, u64: 0 });
        Self {
            buffer: vec![none; events.clamp(1, 65_536)],
            count: 0,
        }
    }
}

impl Deref for Events {
    type Target = [Event];
    #[inline]
    fn deref(&self) -> &[Event] {
        &self.buffer[..self.count]
    }
}

/// An epoll instance.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
}

/// Cleared for the whole process when the kernel turns out not to have `epoll_pwait2` (before Linux 5.11, or a
/// container whose seccomp filter does not know it).
static HAS_EPOLL_PWAIT2: AtomicBool = AtomicBool::new(true);

impl Poller {
    /// A poller that watches nothing yet.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        })
    }

    /// Start watching `descriptor`. Closing its last copy stops the watching by itself.
    pub fn add(&self, descriptor: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token);
        Ok(epoll::add(&self.epoll, descriptor, data, interest.0)?)
    }

    /// Change what is reported of a watched descriptor, and under which token.
    pub fn modify(&self, descriptor: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token);
        Ok(epoll::modify(&self.epoll, descriptor, data, interest.0)?)
    }

    /// Stop watching `descriptor`.
    pub fn remove(&self, descriptor: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, descriptor)?)
    }

    /// Wait until something happens, at most `timeout` (for ever when `None`), to the nanosecond as far as the
    /// kernel's timer slack goes, and put it in `events`. An interrupting signal ends the wait with no events.
    pub fn wait<'e>(
        &self,
        events: &'e mut Events,
        timeout: Option<Duration>,
    ) -> io::Result<&'e [Event]> {
        let buffer = &mut events.buffer[..];
        let waited = match timeout {
            None => self.wait_milliseconds(buffer, -1),
            Some(Duration::ZERO) => self.wait_milliseconds(buffer, 0),
            Some(timeout) => self.wait_precisely(buffer, timeout),
        };
        events.count = match waited {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            waited => waited?,
        };
        Ok(events)
    }

    fn wait_precisely(&self, buffer: &mut [Event], timeout: Duration) -> io::Result<usize> {
        if HAS_EPOLL_PWAIT2.load(Ordering::Relaxed) {
            match self.wait_pwait2(buffer, timeout) {
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                    HAS_EPOLL_PWAIT2.store(false, Ordering::Relaxed);
                }
                waited => return waited,
            }
        }
        self.wait_ppoll(buffer, timeout)
    }

    fn wait_pwait2(&self, buffer: &mut [Event], timeout: Duration) -> io::Result<usize> {
        let timeout = libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(timeout.subsec_nanos().cast_signed()),
        };
        // SAFETY: the kernel writes at most `buffer.len()` events of the layout of `libc::epoll_event` (`Event` is
        // transparent over it) into memory that we hold exclusively; `timeout` outlives the call; no signal mask.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                buffer.as_mut_ptr(),
                buffer.len(),
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// Precise without `epoll_pwait2`: an epoll descriptor is itself pollable, and `ppoll(2)` counts nanoseconds.
    fn wait_ppoll(&self, buffer: &mut [Event], timeout: Duration) -> io::Result<usize> {
        let timeout = rustix::event::Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let mut epoll = [PollFd::new(&self.epoll, PollFlags::IN)];
        if rustix::event::poll(&mut epoll, Some(&timeout))? == 0 {
            return Ok(0);
        }
        self.wait_milliseconds(buffer, 0)
    }

    fn wait_milliseconds(&self, buffer: &mut [Event], timeout: i32) -> io::Result<usize> {
        let capacity = i32::try_from(buffer.len()).unwrap_or(i32::MAX);
        // SAFETY: the kernel writes at most `capacity` events of the layout of `libc::epoll_event` (`Event` is
        // transparent over it) into memory that we hold exclusively.
        let count = unsafe {
            libc::epoll_wait(
                self.epoll.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                capacity,
                timeout,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests;
