use crate::operation::Operation;
use net::{DatagramSocket, Interest, Peer, Poller, Received, SENT_BYTES_MAX};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use wire::memcached::Datagrams;
use wire::memcached::datagram::Frame;

/// Bits of a request's number that tell its slot; the others tell a late answer to what the slot held before.
const SLOT_BITS: u32 = 10;

/// Datagrams that may be on their way in a flow.
pub(crate) const SLOTS_MAX: usize = 1 << SLOT_BITS;

/// A request on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) operation: Operation,
    pub(crate) id: u64,
    /// The least version that a read may see.
    pub(crate) floor: u64,
}

/// A datagram on its way, or room for one.
#[derive(Debug)]
pub(crate) struct Slot {
    generation: u16,
    pub(crate) sent: u64,
    /// In order; empty where there is room.
    pub(crate) requests: Vec<Sent>,
    pub(crate) answered: usize,
}

/// What goes between one socket and one port of the server.
#[derive(Debug)]
pub(crate) struct Flow {
    socket: DatagramSocket,
    peer: Peer,
    /// Which of the server's workers it leads to.
    pub(crate) owner: usize,
    slots: Vec<Slot>,
    free: Vec<u16>,
    pub(crate) outgoing: Datagrams,
}

impl Flow {
    /// To the server's worker `owner` at `address`, with room for `slots` datagrams of `batch` requests; watched under
    /// `token`.
    pub(crate) fn open(
        address: SocketAddr,
        owner: usize,
        (slots, batch): (usize, usize),
        poller: &Poller,
        token: u64,
    ) -> Result<Self, crate::Error> {
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = DatagramSocket::bind((any, 0).into(), false)?;
        poller
            .add(&socket, token, Interest::READ)
            .map_err(crate::Error::system("watch a socket"))?;
        let slot = |_| Slot {
            generation: 0,
            sent: 0,
            requests: Vec::with_capacity(batch),
            answered: 0,
        };
        Ok(Self {
            socket,
            peer: Peer {
                address,
                local: None,
            },
            owner,
            slots: (0..slots).map(slot).collect(),
            free: (0..slots as u16).rev().collect(),
            outgoing: Datagrams::default(),
        })
    }

    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Room for a datagram, and the number of the request that it makes.
    pub(crate) fn take_slot(&mut self) -> Option<(u16, &mut Slot)> {
        let index = self.free.pop()?;
        let slot = self.slots.get_mut(usize::from(index))?;
        slot.answered = 0;
        Some((slot.generation << SLOT_BITS | index, slot))
    }

    /// What an answer is to, if that still waits for it.
    #[inline]
    pub(crate) fn slot(&mut self, frame: Frame) -> Option<&mut Slot> {
        let index = usize::from(frame.request) & (SLOTS_MAX - 1);
        let slot = self.slots.get_mut(index)?;
        let is_awaited = slot.generation << SLOT_BITS | index as u16 == frame.request
            && !slot.requests.is_empty();
        is_awaited.then_some(slot)
    }

    /// Nothing is awaited in the slot of `request` any more.
    pub(crate) fn release(&mut self, request: u16) {
        let index = request & (SLOTS_MAX - 1) as u16;
        if let Some(slot) = self.slots.get_mut(usize::from(index)) {
            slot.generation = slot.generation.wrapping_add(1) & (u16::MAX >> SLOT_BITS);
            slot.requests.clear();
            self.free.push(index);
        }
    }

    /// The number of a request that was sent before `time` and still waits.
    pub(crate) fn overdue(&self, time: u64) -> Option<u16> {
        (0..).zip(&self.slots).find_map(|(index, slot)| {
            let is_overdue = !slot.requests.is_empty() && slot.sent < time;
            is_overdue.then_some(slot.generation << SLOT_BITS | index)
        })
    }

    /// Requests that wait in the slot of `request`.
    pub(crate) fn waiting(&mut self, request: u16) -> &mut Slot {
        &mut self.slots[usize::from(request) & (SLOTS_MAX - 1)]
    }

    /// Send what was made, as long as there is room: bytes that were sent. What there is no room for is lost.
    pub(crate) fn send(&mut self) -> io::Result<u64> {
        let mut sent = 0;
        self.outgoing.gather();
        let runs = self
            .outgoing
            .runs(self.socket.datagrams_max(), SENT_BYTES_MAX);
        for (bytes, each, _) in runs {
            match self.socket.send(self.peer, bytes, each) {
                Ok(()) => sent += bytes.len() as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // What the server's host said to an earlier datagram; the next one shows whether that lasts.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
        }
        self.outgoing.clear();
        Ok(sent)
    }

    /// Receive what there is: how many messages.
    pub(crate) fn receive(&self, received: &mut Received) -> io::Result<usize> {
        match self.socket.receive(received) {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(0)
            }
            received => received,
        }
    }
}
