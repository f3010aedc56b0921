use crate::{Endpoint, Error};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, sockopt};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A connected, non-blocking TCP or unix stream socket; closed when dropped.
///
/// Reads and writes that cannot be done at once fail with [`io::ErrorKind::WouldBlock`]; watch the stream with a
/// [`Poller`](crate::Poller). A write to a closed connection is an error, never a signal.
#[derive(Debug)]
pub struct Stream {
    socket: OwnedFd,
}

/// How long to wait before asking again where a unix listener's backlog is full: the kernel does not report when it
/// no longer is.
const BACKLOG_RETRY: Duration = Duration::from_millis(1);

impl Stream {
    /// Connect to `endpoint`, waiting at most `timeout`. TCP connections get `TCP_NODELAY`.
    pub fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<Self, Error> {
        let deadline = Instant::now() + timeout;
        Self::connect_until(endpoint, deadline).map_err(|errno| match errno {
            Errno::TIMEDOUT => Error::ConnectTimeout(endpoint.clone(), timeout),
            errno => Error::Connect(endpoint.clone(), errno.into()),
        })
    }

    fn connect_until(endpoint: &Endpoint, deadline: Instant) -> Result<Self, Errno> {
        let (socket, address) = endpoint.socket()?;
        loop {
            match rustix::net::connect(&socket, &address) {
                Ok(()) => break,
                Err(Errno::INPROGRESS | Errno::INTR) => {
                    wait_connected(&socket, deadline)?;
                    break;
                }
                Err(Errno::AGAIN) if Instant::now() < deadline => {
                    std::thread::sleep(BACKLOG_RETRY);
                }
                Err(Errno::AGAIN) => return Err(Errno::TIMEDOUT),
                Err(errno) => return Err(errno),
            }
        }
        let stream = Self { socket };
        if matches!(endpoint, Endpoint::Tcp(_)) {
            sockopt::set_tcp_nodelay(&stream.socket, true)?;
        }
        Ok(stream)
    }

    /// A connection within this process: one end as such a stream, the other as the standard library has it, to wait
    /// on.
    pub fn pair() -> io::Result<(Self, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok((Self::from_socket(ours.into()), theirs))
    }

    pub(crate) fn from_socket(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// Read what there is, at most `buffer.len()` bytes; 0 means that the peer will send no more.
    #[inline]
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(&self.socket, buffer, RecvFlags::empty())?.0)
    }

    /// Write what the socket takes, possibly less than all of `bytes`.
    #[inline]
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL)?)
    }

    /// Write several slices (at most 1,024) in order with one system call, possibly less than all of them.
    #[inline]
    pub fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut no_ancillary = SendAncillaryBuffer::default();
        let flags = SendFlags::NOSIGNAL;
        Ok(rustix::net::sendmsg(
            &self.socket,
            slices,
            &mut no_ancillary,
            flags,
        )?)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn wait_connected(socket: &OwnedFd, deadline: Instant) -> Result<(), Errno> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match rustix::event::poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&timeout)) {
            Ok(0) => return Err(Errno::TIMEDOUT),
            Ok(_) => return sockopt::socket_error(socket)?,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}
