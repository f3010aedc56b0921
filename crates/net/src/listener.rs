use crate::{Endpoint, Error, Stream};
use rustix::io::Errno;
use rustix::net::{SocketAddrAny, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

/// How to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenOptions {
    /// Connections that may wait to be accepted; the kernel caps it at `net.core.somaxconn`.
    pub backlog: u16,
    /// Share a TCP port between listeners, among which the kernel spreads connections (`SO_REUSEPORT`).
    pub reuse_port: bool,
    /// Who may open a unix socket, as the mode of its file; `None` leaves it to the process's mask.
    pub unix_mode: Option<u32>,
}

impl Default for ListenOptions {
    /// A backlog of 1,024 and a port of one's own.
    fn default() -> Self {
        Self {
            backlog: 1024,
            reuse_port: false,
            unix_mode: None,
        }
    }
}

/// The congestion control of TCP connections that are accepted (`tcp(7)`, `TCP_CONGESTION`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Congestion {
    /// reno for peers on the loopback interface, where there is no network to be gentle with, and what paces BBR costs
    /// processor time for every answer; the system's for others. A kernel without reno keeps the system's.
    #[default]
    RenoOnLoopback,
    /// The system's (`net.ipv4.tcp_congestion_control`).
    System,
    /// This one, for all.
    Named(String),
}

/// A non-blocking listening socket. Closed when dropped; the file of a unix socket is then removed.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    endpoint: Endpoint,
    unlink: Option<PathBuf>,
    is_reno_on_loopback: bool,
}

impl Listener {
    /// Listen on `endpoint`; port 0 becomes a free port. `SO_REUSEADDR` is set, so that a restart does not wait for
    /// old connections, and the file of a unix socket that no process listens on any more is replaced.
    pub fn bind(endpoint: &Endpoint, options: ListenOptions) -> Result<Self, Error> {
        Self::try_bind(endpoint, options)
            .map_err(|errno| Error::Listen(endpoint.clone(), errno.into()))
    }

    fn try_bind(endpoint: &Endpoint, options: ListenOptions) -> Result<Self, Errno> {
        let (socket, address) = endpoint.socket()?;
        let unlink = match endpoint {
            Endpoint::Tcp(_) => {
                sockopt::set_socket_reuseaddr(&socket, true)?;
                if options.reuse_port {
                    sockopt::set_socket_reuseport(&socket, true)?;
                }
                rustix::net::bind(&socket, &address)?;
                None
            }
            Endpoint::Unix(path) => {
                match rustix::net::bind(&socket, &address) {
                    Err(Errno::ADDRINUSE) if is_abandoned(endpoint) => {
                        rustix::fs::unlink(path)?;
                        rustix::net::bind(&socket, &address)?;
                    }
                    bound => bound?,
                }
                if let Some(mode) = options.unix_mode {
                    // No client can connect before it is listened on.
                    rustix::fs::chmod(path, rustix::fs::Mode::from_raw_mode(mode))?;
                }
                Some(path.clone())
            }
        };
        let mut listener = Self {
            socket,
            endpoint: endpoint.clone(),
            unlink,
            is_reno_on_loopback: true,
        };
        rustix::net::listen(&listener.socket, options.backlog.into())?;
        if matches!(endpoint, Endpoint::Tcp(_)) {
            let local = rustix::net::getsockname(&listener.socket)?;
            listener.endpoint = Endpoint::Tcp(SocketAddr::try_from(local)?);
        }
        Ok(listener)
    }

    /// Let connections to come have this congestion control. A unix socket's have none.
    pub fn set_congestion(&mut self, congestion: &Congestion) -> Result<(), Error> {
        self.is_reno_on_loopback = *congestion == Congestion::RenoOnLoopback;
        if let (Congestion::Named(name), Endpoint::Tcp(_)) = (congestion, &self.endpoint) {
            // What is accepted has its listener's.
            sockopt::set_tcp_congestion(&self.socket, name)
                .map_err(|errno| Error::Congestion(name.clone(), errno.into()))?;
        }
        Ok(())
    }

    /// Where it listens, with the port it got.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Take one waiting connection; `None` when there is none. TCP connections get `TCP_NODELAY`. Where no descriptors
    /// are left (`EMFILE`), the connection stays in the backlog, so a server should stop watching the listener for a
    /// while.
    pub fn accept(&self) -> io::Result<Option<Stream>> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        loop {
            match rustix::net::acceptfrom_with(&self.socket, flags) {
                Ok((socket, peer)) => {
                    if matches!(self.endpoint, Endpoint::Tcp(_)) {
                        // A connection that was reset already says so at its first read.
                        _ = sockopt::set_tcp_nodelay(&socket, true);
                    }
                    let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                    if self.is_reno_on_loopback && peer.is_some_and(|peer| peer.ip().is_loopback())
                    {
                        // A kernel without it keeps what it has.
                        _ = sockopt::set_tcp_congestion(&socket, "reno");
                    }
                    return Ok(Some(Stream::from_socket(socket)));
                }
                Err(Errno::AGAIN) => return Ok(None),
                // The peer gave up, or a signal came: the next one may be there.
                Err(Errno::CONNABORTED | Errno::INTR | Errno::PROTO) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.unlink {
            // It may have been removed already; either way it is gone.
            _ = rustix::fs::unlink(path);
        }
    }
}

fn is_abandoned(endpoint: &Endpoint) -> bool {
    matches!(
        Stream::connect(endpoint, Duration::from_millis(100)),
        Err(Error::Connect(_, source)) if source.kind() == io::ErrorKind::ConnectionRefused
    ) && matches!(endpoint, Endpoint::Unix(path) if is_socket(path))
}

fn is_socket(path: &std::path::Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

impl Endpoint {
    /// A non-blocking stream socket, and the address to listen on or to connect it to.
    pub(crate) fn socket(&self) -> Result<(OwnedFd, SocketAddrAny), Errno> {
        let address: SocketAddrAny = match self {
            Self::Tcp(address) => (*address).into(),
            Self::Unix(path) => rustix::net::SocketAddrUnix::new(path)?.into(),
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let family = address.address_family();
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        Ok((socket, address))
    }
}
