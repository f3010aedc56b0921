use super::socket::ForwardedDatagram;
use super::{Limits, UnfinishedDatagram, carry_out};
use crate::engine::{Count, Counters, Storage};
use crate::session::Tools;
use net::{DatagramSocket, Peer};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use wire::memcached::Datagrams;
use xdp::packet::{Checksum, ETHERNET_BYTES, Packet, Verify, Version};
use xdp::{BURST, Frame};

/// Bursts that are taken from a queue in its turn; then others have theirs.
const BURSTS_MAX: usize = 4;

/// The longest headers in front of a datagram, in bytes.
const HEADER_BYTES_MAX: usize = Version::V6.header_bytes();

/// A receive queue of a network interface that a worker serves over AF_XDP.
pub(crate) struct Queue {
    socket: xdp::Socket,
    /// The longest IP packet that the interface carries, in bytes.
    mtu: usize,
    /// The server's kernel_sockets sockets, which have the same addresses and ports.
    kernel_sockets: Arc<[Arc<DatagramSocket>]>,
    arrived: Vec<Frame>,
    leaving: Vec<Frame>,
}

impl Queue {
    pub fn new(
        socket: xdp::Socket,
        mtu: usize,
        kernel_sockets: Arc<[Arc<DatagramSocket>]>,
    ) -> Self {
        Self {
            socket,
            mtu,
            kernel_sockets,
            arrived: Vec::with_capacity(BURST),
            leaving: Vec::with_capacity(BURST),
        }
    }

    /// Serve what has arrived; datagrams for other workers are handed to `forward`.
    pub fn serve<S: Storage>(
        &mut self,
        tools: &mut Tools<'_, S>,
        replies: &mut Datagrams,
        mut forward: impl FnMut(usize, ForwardedDatagram),
    ) {
        let counters = tools.context.counters;
        for _ in 0..BURSTS_MAX {
            let mut arrived = std::mem::take(&mut self.arrived);
            let count = self.socket.receive(&mut arrived, BURST);
            counters.add(Count::DatagramsReceived, count as u64);
            for frame in arrived.drain(..) {
                self.answer(frame, tools, replies, &mut forward);
            }
            self.arrived = arrived;
            self.send(counters);
            if count < BURST {
                break;
            }
        }
    }

    fn answer<S: Storage>(
        &mut self,
        frame: Frame,
        tools: &mut Tools<'_, S>,
        replies: &mut Datagrams,
        forward: &mut impl FnMut(usize, ForwardedDatagram),
    ) {
        let bytes = self.socket.packet(&frame);
        // An unfinished checksum is what comes from a socket of this host, over a virtual interface. Of what is damaged
        // on its way, as much again goes unnoticed as with the whole one: two in 65,536.
        let Some(packet) = Packet::parse(bytes, Verify::ChecksumOrOffload) else {
            return self.socket.release(frame);
        };
        replies.clear();
        let kernel_sockets = &self.kernel_sockets;
        carry_out(
            std::iter::once(&bytes[packet.payload()]),
            Limits::of_packets(self.mtu - (packet.payload().start - ETHERNET_BYTES)),
            tools,
            replies,
            |unfinished: UnfinishedDatagram| {
                // What no kernel_sockets socket has an address for is lost: the kernel would not have taken it either.
                if let Some((socket, peer)) = kernel_socket(kernel_sockets, packet, bytes) {
                    let worker = unfinished.worker;
                    forward(worker, ForwardedDatagram::new(unfinished, peer, socket));
                }
            },
        );
        self.line_up(frame, packet, replies, tools.context.counters);
    }

    /// Put the replies in line: the first in the frame that the question came in.
    fn line_up(&mut self, frame: Frame, packet: Packet, replies: &Datagrams, counters: &Counters) {
        let header_bytes = packet.payload().start;
        let mut headers = [0; HEADER_BYTES_MAX];
        if replies.len() > 1 {
            let asked = &self.socket.packet(&frame)[..header_bytes];
            headers[..header_bytes].copy_from_slice(asked);
        }
        let mut frame = Some(frame);
        for (number, (answer, ..)) in replies.runs(1, usize::MAX).enumerate() {
            if self.leaving.len() >= BURST {
                self.send(counters);
            }
            let Some(mut frame) = frame.take().or_else(|| self.socket.take()) else {
                counters.add(Count::DatagramsDropped, 1);
                continue;
            };
            let packet_bytes = self.socket.room(&mut frame);
            if number > 0 {
                packet_bytes[..header_bytes].copy_from_slice(&headers[..header_bytes]);
            }
            let written = match packet_bytes.get_mut(header_bytes..header_bytes + answer.len()) {
                Some(payload) => {
                    payload.copy_from_slice(answer);
                    packet.reply(packet_bytes, answer.len(), Checksum::Compute)
                }
                None => None,
            };
            match written {
                Some(length) => {
                    frame.set_length(length);
                    self.leaving.push(frame);
                    counters.add(Count::BytesWritten, answer.len() as u64);
                }
                None => {
                    self.socket.release(frame);
                    counters.add(Count::DatagramsDropped, 1);
                }
            }
        }
        if let Some(unanswered) = frame {
            self.socket.release(unanswered);
        }
    }

    /// Send what is in line, as far as it fits: the rest is dropped.
    fn send(&mut self, counters: &Counters) {
        let mut sent = self.socket.transmit(&mut self.leaving);
        // That the interface is down or gone: then nothing arrives either, and if it comes back, this goes on.
        _ = self.socket.wake();
        if !self.leaving.is_empty() {
            sent += self.socket.transmit(&mut self.leaving);
            _ = self.socket.wake();
        }
        counters.add(Count::DatagramsSent, sent as u64);
        counters.add(Count::DatagramsDropped, self.leaving.len() as u64);
        for frame in self.leaving.drain(..) {
            self.socket.release(frame);
        }
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The kernel_sockets socket at the address that a packet came to, and its sender as that socket knows it.
fn kernel_socket(
    kernel_sockets: &[Arc<DatagramSocket>],
    packet: Packet,
    bytes: &[u8],
) -> Option<(Arc<DatagramSocket>, Peer)> {
    let (source, destination) = (packet.source(bytes)?, packet.destination(bytes)?);
    let is_there = |socket: &&Arc<DatagramSocket>| {
        let address = socket.address();
        let is_everywhere = match address.ip() {
            IpAddr::V4(ip) => ip.is_unspecified() && destination.is_ipv4(),
            // IPv4 too, as addresses of IPv6 (RFC 4291, section 2.5.5.2).
            IpAddr::V6(ip) => ip.is_unspecified(),
        };
        address.port() == destination.port() && (is_everywhere || address.ip() == destination.ip())
    };
    let socket = kernel_sockets.iter().find(is_there)?;
    let seen = |ip: IpAddr| match ip {
        IpAddr::V4(ip) if socket.address().is_ipv6() => ip.to_ipv6_mapped().into(),
        ip => ip,
    };
    let peer = Peer {
        address: SocketAddr::new(seen(source.ip()), source.port()),
        local: Some(seen(destination.ip())),
    };
    Some((Arc::clone(socket), peer))
}
