use super::{Limits, UnfinishedDatagram, carry_out, run_text};
use crate::engine::{Count, Storage};
use crate::session::Tools;
use net::{DATAGRAMS_MAX, DatagramSocket, Peer, Received, SENT_BYTES_MAX};
use std::io::ErrorKind;
use std::sync::Arc;
use wire::memcached::Datagrams;

/// Times that a socket is read in its turn; then the next has its own.
const READS_MAX: usize = 4;

/// A UDP socket that a worker serves. Another worker may send from it the reply to a datagram that was forwarded.
pub(crate) struct Socket(pub Arc<DatagramSocket>);

/// A datagram on its way between workers.
pub(crate) struct ForwardedDatagram {
    unfinished: UnfinishedDatagram,
    peer: Peer,
    /// What the reply is sent from.
    socket: Arc<DatagramSocket>,
}

/// What the sources of a worker share.
#[derive(Default)]
pub(crate) struct Buffers {
    received: Received,
    pub replies: Datagrams,
}

impl Socket {
    /// Serve what has arrived; datagrams for other workers are handed to `forward`.
    pub fn serve<S: Storage>(
        &self,
        tools: &mut Tools<'_, S>,
        buffers: &mut Buffers,
        mut forward: impl FnMut(usize, ForwardedDatagram),
    ) {
        for _ in 0..READS_MAX {
            match self.0.receive(&mut buffers.received) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // Nothing is there, or what a peer that has gone away left behind.
                Err(_) => return,
            }
            buffers.replies.clear();
            let mut to = None;
            for message in buffers.received.messages() {
                let datagrams = message.datagrams().count();
                let counters = tools.context.counters;
                counters.add(Count::DatagramsReceived, datagrams as u64);
                // Answers to one peer go together, as far as one message takes them.
                if let Some(peer) = to
                    && (peer != message.peer || buffers.replies.len() + datagrams > DATAGRAMS_MAX)
                {
                    send(&self.0, peer, &mut buffers.replies, tools);
                }
                to = Some(message.peer);
                let forward = |unfinished: UnfinishedDatagram| {
                    let (worker, socket) = (unfinished.worker, Arc::clone(&self.0));
                    let datagram = ForwardedDatagram::new(unfinished, message.peer, socket);
                    forward(worker, datagram);
                };
                let (datagrams, replies) = (message.datagrams(), &mut buffers.replies);
                carry_out(datagrams, Limits::SOCKETS, tools, replies, forward);
            }
            if let Some(peer) = to {
                send(&self.0, peer, &mut buffers.replies, tools);
            }
        }
    }
}

impl ForwardedDatagram {
    /// To be replied to `peer` from `socket`.
    pub fn new(unfinished: UnfinishedDatagram, peer: Peer, socket: Arc<DatagramSocket>) -> Self {
        Self {
            unfinished,
            peer,
            socket,
        }
    }

    /// What it takes while it waits, in bytes.
    pub fn bytes(&self) -> usize {
        let UnfinishedDatagram {
            commands, replied, ..
        } = &self.unfinished;
        size_of::<Self>() + commands.capacity() + replied.capacity()
    }

    /// One that asks for something in so many bytes.
    #[cfg(test)]
    pub fn of(command_bytes: usize, peer: Peer, socket: &Arc<DatagramSocket>) -> Self {
        let options = crate::options::Options::default();
        let clock = crate::engine::Clock::start();
        let state = crate::engine::ServerState::new(
            options,
            1 << 20,
            crate::engine::state::Addresses::default(),
            clock,
            None,
        );
        let unfinished = UnfinishedDatagram {
            frame: wire::memcached::datagram::Frame::single(
                1,
                wire::memcached::datagram::Format::Text,
            ),
            worker: 0,
            session: crate::session::Session::new(&state, true),
            commands: vec![0; command_bytes],
            replied: Vec::new(),
        };
        Self::new(unfinished, peer, Arc::clone(socket))
    }

    /// Go on with what another worker found to be for this one, or the next.
    pub fn resume<S: Storage>(
        self,
        tools: &mut Tools<'_, S>,
        buffers: &mut Buffers,
        forward: impl FnOnce(usize, Self),
    ) {
        let UnfinishedDatagram {
            frame,
            session,
            commands,
            replied,
            ..
        } = self.unfinished;
        let replies = &mut buffers.replies;
        replies.clear();
        match run_text(frame, session, &commands, replied, tools, replies) {
            Some(unfinished) => forward(unfinished.worker, Self { unfinished, ..self }),
            None => send(&self.socket, self.peer, replies, tools),
        }
    }
}

/// Send what the socket takes; datagrams that do not fit are dropped.
fn send<S>(socket: &DatagramSocket, peer: Peer, replies: &mut Datagrams, tools: &Tools<'_, S>) {
    let counters = tools.context.counters;
    replies.gather();
    for (bytes, each, count) in replies.runs(socket.datagrams_max(), SENT_BYTES_MAX) {
        match socket.send(peer, bytes, each) {
            Ok(()) => {
                counters.add(Count::DatagramsSent, count as u64);
                counters.add(Count::BytesWritten, bytes.len() as u64);
            }
            Err(_) => counters.add(Count::DatagramsDropped, count as u64),
        }
    }
    replies.clear();
}
