use crate::Error;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::{SocketFlags, SocketType, sockopt};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Messages taken from the kernel at a time.
const MESSAGES: usize = 16;

/// The longest message: many datagrams of one sender that the kernel joined (`UDP_GRO`), or one.
const MESSAGE_BYTES: usize = 64 << 10;

/// Datagrams that can be sent as one message (`UDP_SEGMENT`).
pub const DATAGRAMS_MAX: usize = 64;

/// The longest message that can be sent, in bytes: what UDP's length counts, less the headers.
pub const SENT_BYTES_MAX: usize = 65_507;

/// A non-blocking UDP socket that sends and receives many datagrams with one system call (`UDP_SEGMENT` and `UDP_GRO`
/// of `udp(7)`, `recvmmsg(2)`). Closed when dropped.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    address: SocketAddr,
}

/// Who is sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Where it is.
    pub address: SocketAddr,
    /// The address of this host that it knows, where that matters.
    pub local: Option<IpAddr>,
}

/// Datagrams of one sender.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// Who sent them.
    pub peer: Peer,
    /// All of them, behind one another.
    pub bytes: &'a [u8],
    /// The length of each but the last, which may be shorter.
    pub datagram_bytes: usize,
}

impl<'a> Message<'a> {
    /// One by one.
    #[inline]
    pub fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.bytes.chunks(self.datagram_bytes.max(1))
    }
}

/// Memory for what is received.
pub struct Received {
    buffer: Box<[u8]>,
    described: [RecvMeta; MESSAGES],
    count: usize,
}

impl Default for Received {
    fn default() -> Self {
        Self {
            buffer: vec![0; MESSAGES * MESSAGE_BYTES].into(),
            described: [RecvMeta::default(); MESSAGES],
            count: 0,
        }
    }
}

impl Received {
    /// What was received last.
    #[inline]
    pub fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        let buffers = self.buffer.chunks_exact(MESSAGE_BYTES);
        let described = self.described[..self.count].iter();
        described.zip(buffers).map(|(message, buffer)| Message {
            peer: Peer {
                address: message.addr,
                local: message.dst_ip,
            },
            bytes: &buffer[..message.len.min(MESSAGE_BYTES)],
            datagram_bytes: message.stride,
        })
    }
}

impl DatagramSocket {
    /// Listen at `address`; port 0 becomes a free port. With `reuse_port`, several sockets share a port, among which
    /// the kernel spreads senders (`SO_REUSEPORT`).
    pub fn bind(address: SocketAddr, reuse_port: bool) -> Result<Self, Error> {
        Self::try_bind(address, reuse_port)
            .map_err(|source| Error::ListenForDatagrams(address, source))
    }

    fn try_bind(address: SocketAddr, reuse_port: bool) -> io::Result<Self> {
        let socket = rustix::net::socket_with(
            rustix::net::SocketAddrAny::from(address).address_family(),
            SocketType::DGRAM,
            SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            None,
        )?;
        if reuse_port {
            sockopt::set_socket_reuseport(&socket, true)?;
        }
        // As much as the host allows.
        _ = sockopt::set_socket_recv_buffer_size(&socket, BUFFER_BYTES);
        _ = sockopt::set_socket_send_buffer_size(&socket, BUFFER_BYTES);
        rustix::net::bind(&socket, &address)?;
        let socket = UdpSocket::from(socket);
        let state = UdpSocketState::new((&socket).into())?;
        // That forbade fragments, which what is longer than a packet has to be sent in.
        sockopt::set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::WANT)?;
        if socket.local_addr()?.is_ipv6() {
            sockopt::set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::WANT)?;
            allow_fragments_of_ipv6(&socket)?;
        }
        Ok(Self {
            address: socket.local_addr()?,
            state,
            socket,
        })
    }

    /// Where it listens, with the port it got.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Datagrams that the kernel takes as one message; 1 where it cannot.
    pub fn datagrams_max(&self) -> usize {
        self.state.max_gso_segments().min(DATAGRAMS_MAX)
    }

    /// Receive what there is, in place of what is in `received`. Says how many messages. `WouldBlock` when there is
    /// nothing.
    #[inline]
    pub fn receive(&self, received: &mut Received) -> io::Result<usize> {
        received.count = 0;
        let mut buffers = received.buffer.chunks_exact_mut(MESSAGE_BYTES);
        let mut slices: [IoSliceMut<'_>; MESSAGES] =
            std::array::from_fn(|_| IoSliceMut::new(buffers.next().unwrap_or_default()));
        received.count =
            self.state
                .recv((&self.socket).into(), &mut slices, &mut received.described)?;
        Ok(received.count)
    }

    /// Send `bytes`, which are datagrams of `datagram_bytes` and a last one that may be shorter: at most
    /// [`DATAGRAMS_MAX`] and [`SENT_BYTES_MAX`]. `WouldBlock` when the socket takes nothing now.
    #[inline]
    pub fn send(&self, peer: Peer, bytes: &[u8], datagram_bytes: usize) -> io::Result<()> {
        let transmit = Transmit {
            destination: peer.address,
            ecn: None,
            contents: bytes,
            segment_size: Some(datagram_bytes),
            src_ip: peer.local,
        };
        self.state.try_send((&self.socket).into(), &transmit)
    }
}

/// What is asked for to hold datagrams that wait, in bytes.
const BUFFER_BYTES: usize = 8 << 20;

/// `IPV6_DONTFRAG` of `ipv6(7)`, off.
fn allow_fragments_of_ipv6(socket: &UdpSocket) -> io::Result<()> {
    let off: libc::c_int = 0;
    // SAFETY: the kernel reads an integer from `off`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IPV6,
            libc::IPV6_DONTFRAG,
            (&raw const off).cast(),
            size_of_val(&off) as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests;
