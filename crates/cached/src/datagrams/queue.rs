use super::socket::Letter;
use super::{Limits, Undelivered, carry_out};
use crate::conversation::Tools;
use crate::counters::{Count, Counters};
use crate::storage::Storage;
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

/// A receive queue of a network interface that a worker serves past the kernel.
pub(crate) struct Queue {
    socket: xdp::Socket,
    /// The longest IP packet that the interface carries, in bytes.
    mtu: usize,
    /// The server's ordinary sockets, which have the same addresses and ports.
    ordinary: Arc<[Arc<DatagramSocket>]>,
    arrived: Vec<Frame>,
    leaving: Vec<Frame>,
}

impl Queue {
    pub fn new(socket: xdp::Socket, mtu: usize, ordinary: Arc<[Arc<DatagramSocket>]>) -> Self {
        Self {
            socket,
            mtu,
            ordinary,
            arrived: Vec::with_capacity(BURST),
            leaving: Vec::with_capacity(BURST),
        }
    }

    /// Serve what has arrived; letters for other workers are handed to `forward`.
    pub fn serve<S: Storage>(
        &mut self,
        tools: &mut Tools<'_, S>,
        answers: &mut Datagrams,
        mut forward: impl FnMut(usize, Letter),
    ) {
        let counters = tools.context.counters;
        for _ in 0..BURSTS_MAX {
            let mut arrived = std::mem::take(&mut self.arrived);
            let count = self.socket.receive(&mut arrived, BURST);
            counters.add(Count::DatagramsReceived, count as u64);
            for frame in arrived.drain(..) {
                self.answer(frame, tools, answers, &mut forward);
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
        answers: &mut Datagrams,
        forward: &mut impl FnMut(usize, Letter),
    ) {
        let bytes = self.socket.packet(&frame);
        // An unfinished checksum is what comes from a socket of this host, over a virtual interface. Of what is damaged
        // on its way, as much again goes unnoticed as with the whole one: two in 65,536.
        let Some(packet) = Packet::parse(bytes, Verify::ChecksumOrOffload) else {
            return self.socket.release(frame);
        };
        answers.clear();
        let ordinary = &self.ordinary;
        carry_out(
            std::iter::once(&bytes[packet.payload()]),
            Limits::of_packets(self.mtu - (packet.payload().start - ETHERNET_BYTES)),
            tools,
            answers,
            |undelivered: Undelivered| {
                // What no ordinary socket has an address for is lost: the kernel would not have taken it either.
                if let Some((socket, peer)) = ordinary_way(ordinary, packet, bytes) {
                    forward(undelivered.worker, Letter::new(undelivered, peer, socket));
                }
            },
        );
        self.line_up(frame, packet, answers, tools.context.counters);
    }

    /// Put the answers in line: the first in the frame that the question came in.
    fn line_up(&mut self, frame: Frame, packet: Packet, answers: &Datagrams, counters: &Counters) {
        let header_bytes = packet.payload().start;
        let mut headers = [0; HEADER_BYTES_MAX];
        if answers.len() > 1 {
            let asked = &self.socket.packet(&frame)[..header_bytes];
            headers[..header_bytes].copy_from_slice(asked);
        }
        let mut frame = Some(frame);
        for (number, (answer, ..)) in answers.runs(1, usize::MAX).enumerate() {
            if self.leaving.len() >= BURST {
                self.send(counters);
            }
            let Some(mut frame) = frame.take().or_else(|| self.socket.take()) else {
                counters.add(Count::DatagramsDropped, 1);
                continue;
            };
            let room = self.socket.room(&mut frame);
            if number > 0 {
                room[..header_bytes].copy_from_slice(&headers[..header_bytes]);
            }
            let written = match room.get_mut(header_bytes..header_bytes + answer.len()) {
                Some(payload) => {
                    payload.copy_from_slice(answer);
                    packet.reply(room, answer.len(), Checksum::Compute)
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

    /// Send what is in line, as far as there is room: nobody waits for datagrams.
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

/// The ordinary socket at the address that a packet came to, and its sender as that socket knows it.
fn ordinary_way(
    ordinary: &[Arc<DatagramSocket>],
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
    let socket = ordinary.iter().find(is_there)?;
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
