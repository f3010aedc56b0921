use super::{Limits, Undelivered, carry_out, converse};
use crate::conversation::Tools;
use crate::counters::Count;
use crate::storage::Storage;
use net::{DATAGRAMS_MAX, DatagramSocket, Peer, Received, SENT_BYTES_MAX};
use std::io::ErrorKind;
use std::sync::Arc;
use wire::memcached::Datagrams;

/// Times that a socket is read in its turn; then others have theirs.
const READS_MAX: usize = 4;

/// A UDP socket that a worker serves. Others may send from it what they were handed.
pub(crate) struct Socket(pub Arc<DatagramSocket>);

/// A datagram on its way between workers.
pub(crate) struct Letter {
    undelivered: Undelivered,
    peer: Peer,
    /// What the answer is sent from.
    socket: Arc<DatagramSocket>,
}

/// What the sockets of a worker share.
#[derive(Default)]
pub(crate) struct Room {
    received: Received,
    pub answers: Datagrams,
}

impl Socket {
    /// Serve what has arrived; letters for other workers are handed to `forward`.
    pub fn serve<S: Storage>(
        &self,
        tools: &mut Tools<'_, S>,
        room: &mut Room,
        mut forward: impl FnMut(usize, Letter),
    ) {
        for _ in 0..READS_MAX {
            match self.0.receive(&mut room.received) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // Nothing is there, or what a peer that has gone away left behind.
                Err(_) => return,
            }
            room.answers.clear();
            let mut to = None;
            for message in room.received.messages() {
                let datagrams = message.datagrams().count();
                let counters = tools.context.counters;
                counters.add(Count::DatagramsReceived, datagrams as u64);
                // Answers to one peer go together, as far as one message takes them.
                if let Some(peer) = to
                    && (peer != message.peer || room.answers.len() + datagrams > DATAGRAMS_MAX)
                {
                    send(&self.0, peer, &mut room.answers, tools);
                }
                to = Some(message.peer);
                let elsewhere = |undelivered: Undelivered| {
                    let worker = undelivered.worker;
                    let letter = Letter::new(undelivered, message.peer, Arc::clone(&self.0));
                    forward(worker, letter);
                };
                let (datagrams, answers) = (message.datagrams(), &mut room.answers);
                carry_out(datagrams, Limits::SOCKETS, tools, answers, elsewhere);
            }
            if let Some(peer) = to {
                send(&self.0, peer, &mut room.answers, tools);
            }
        }
    }
}

impl Letter {
    /// To be answered to `peer` from `socket`.
    pub fn new(undelivered: Undelivered, peer: Peer, socket: Arc<DatagramSocket>) -> Self {
        Self {
            undelivered,
            peer,
            socket,
        }
    }

    /// Go on with what another worker found to be for this one, or the next.
    pub fn arrive<S: Storage>(
        self,
        tools: &mut Tools<'_, S>,
        room: &mut Room,
        forward: impl FnOnce(usize, Self),
    ) {
        let Undelivered {
            frame,
            conversation,
            commands,
            answered,
            ..
        } = self.undelivered;
        let answers = &mut room.answers;
        answers.clear();
        match converse(frame, conversation, &commands, answered, tools, answers) {
            Some(undelivered) => forward(
                undelivered.worker,
                Self {
                    undelivered,
                    ..self
                },
            ),
            None => send(&self.socket, self.peer, answers, tools),
        }
    }
}

/// Send what there is room for: nobody waits for datagrams.
fn send<S>(socket: &DatagramSocket, peer: Peer, answers: &mut Datagrams, tools: &Tools<'_, S>) {
    let counters = tools.context.counters;
    answers.gather();
    for (bytes, each, count) in answers.runs(socket.datagrams_max(), SENT_BYTES_MAX) {
        match socket.send(peer, bytes, each) {
            Ok(()) => {
                counters.add(Count::DatagramsSent, count as u64);
                counters.add(Count::BytesWritten, bytes.len() as u64);
            }
            Err(_) => counters.add(Count::DatagramsDropped, count as u64),
        }
    }
    answers.clear();
}
