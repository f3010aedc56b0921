use super::queue::Queue;
use super::window::Window;
use net::{DatagramSocket, Peer, Received, SENT_BYTES_MAX};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use wire::memcached::Datagrams;

/// What goes between one socket and one port of the server.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) link: Link,
    /// Which of the server's workers it leads to.
    pub(crate) owner: usize,
    pub(crate) window: Window,
    pub(crate) outgoing: Datagrams,
}

impl Flow {
    /// To the server's worker `owner`, with room for `slots` datagrams of `batch` requests.
    pub(crate) fn new(link: Link, owner: usize, (slots, batch): (usize, usize)) -> Self {
        Self {
            link,
            owner,
            window: Window::new(slots, batch),
            outgoing: Datagrams::default(),
        }
    }

    /// Send what was made, as long as there is room: bytes that were sent. What there is no room for is lost.
    pub(crate) fn send(&mut self) -> io::Result<u64> {
        self.outgoing.gather();
        let sent = self.link.send(&self.outgoing);
        self.outgoing.clear();
        sent
    }
}

/// What carries datagrams to the server and back.
#[derive(Debug)]
pub(crate) enum Link {
    /// A socket of the kernel's, whom it sends to, and how many at once.
    Kernel(DatagramSocket, Peer, usize),
    /// A queue of a network interface, by AF_XDP.
    Queue(Box<Queue>),
}

impl Link {
    /// A socket that sends to `address`, at most `datagrams_max` at once.
    pub(crate) fn to(address: SocketAddr, datagrams_max: usize) -> Result<Self, crate::Error> {
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = DatagramSocket::bind((any, 0).into(), false)?;
        let peer = Peer {
            address,
            local: None,
        };
        let datagrams_max = socket.datagrams_max().min(datagrams_max);
        Ok(Self::Kernel(socket, peer, datagrams_max))
    }

    /// The longest datagram that it carries, in bytes.
    pub(crate) fn datagram_bytes_max(&self) -> usize {
        match self {
            Self::Kernel(..) => SENT_BYTES_MAX,
            Self::Queue(queue) => queue.datagram_bytes_max(),
        }
    }

    fn send(&mut self, outgoing: &Datagrams) -> io::Result<u64> {
        let (socket, peer, datagrams_max) = match self {
            Self::Kernel(socket, peer, datagrams_max) => (socket, *peer, *datagrams_max),
            Self::Queue(queue) => return queue.send(outgoing),
        };
        let mut sent = 0;
        for (bytes, each, _) in outgoing.runs(datagrams_max, SENT_BYTES_MAX) {
            match socket.send(peer, bytes, each) {
                Ok(()) => sent += bytes.len() as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // What the server's host said to an earlier datagram; the next one shows whether that lasts.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    /// Hand each datagram that is there to `take`, with the number of the flow that it is for, mostly this one, `own`;
    /// and say whether there were any.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        own: usize,
        received: &mut Received,
        mut take: impl FnMut(usize, &[u8]),
    ) -> io::Result<bool> {
        let socket = match self {
            Self::Kernel(socket, ..) => socket,
            Self::Queue(queue) => return Ok(queue.receive(take)),
        };
        match socket.receive(received) {
            Ok(count) => {
                for message in received.messages() {
                    for datagram in message.datagrams() {
                        take(own, datagram);
                    }
                }
                Ok(count > 0)
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Kernel(socket, ..) => socket.as_fd(),
            Self::Queue(queue) => queue.as_fd(),
        }
    }
}
