use super::connection::Connection;
use super::connections::Arrival;
use super::datagrams::ForwardedDatagram;
use crate::engine::StorageTotals;
use crate::session::batch::Batch;
use net::Waker;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};

/// What a worker is asked to do, apart from what its clients ask for.
pub(crate) enum Message {
    /// Take on a client.
    Serve(Arrival),
    /// Go on with a client whose next command another worker found to be for this one.
    Connection(Box<Connection>),
    /// Go on with a datagram, likewise.
    Datagram(Box<ForwardedDatagram>),
    /// Carry out commands on keys of this worker, or, if it asked for that, take the replies.
    Batch(Box<Batch>),
    /// Say what its partitions hold.
    Total(Sender<StorageTotals>),
    /// End.
    End,
}

/// Bytes of datagrams that may wait in an inbox. What comes then is lost, as datagrams may be.
const DATAGRAM_BYTES_MAX: usize = 4 << 20;

/// Where a worker gets messages.
///
/// Nothing waits there without bound. A connection on its way is read by nobody, so that clients are pushed back, and
/// there is a message for each at most, and one batch from each other worker and one to it; of datagrams, which nothing
/// pushes back, a number of bytes may wait.
#[derive(Clone)]
pub(crate) struct Inbox {
    sender: Sender<Message>,
    waker: Arc<Waker>,
    state: Arc<State>,
}

/// The other end of an inbox.
pub(crate) struct Messages {
    receiver: Receiver<Message>,
    /// Messages that were taken out.
    taken: Cell<u64>,
    state: Arc<State>,
}

/// What both ends know.
///
/// No message waits for a worker that sleeps: the sender counts it and then looks whether the worker is about to sleep, the
/// worker says that it is and then looks whether something was counted. All four are one order (`SeqCst`), in which
/// whoever is second sees what the first wrote.
#[derive(Default)]
struct State {
    /// Messages that were sent.
    sent: AtomicU64,
    /// Whether the worker must be woken, and nobody did.
    is_asleep: AtomicBool,
    /// Of datagrams that wait.
    datagram_bytes: AtomicUsize,
}

impl Inbox {
    /// An inbox whose messages wake by `waker`, and its other end.
    pub fn new(waker: Arc<Waker>) -> (Self, Messages) {
        let (sender, receiver) = mpsc::channel();
        let state = Arc::new(State::default());
        let messages = Messages {
            receiver,
            taken: Cell::new(0),
            state: Arc::clone(&state),
        };
        let inbox = Self {
            sender,
            waker,
            state,
        };
        (inbox, messages)
    }

    /// Send a datagram on its way; false where too many wait, and it is lost.
    #[must_use]
    pub fn forward(&self, datagram: ForwardedDatagram) -> bool {
        let bytes = datagram.bytes();
        let waiting = &self.state.datagram_bytes;
        if waiting.fetch_add(bytes, Relaxed) + bytes > DATAGRAM_BYTES_MAX {
            waiting.fetch_sub(bytes, Relaxed);
            return false;
        }
        self.send(Message::Datagram(Box::new(datagram)));
        true
    }

    /// Send a message. One to a worker that has ended is lost: the server is about to end, as `Server::run` says why.
    pub fn send(&self, message: Message) {
        _ = self.sender.send(message);
        let State {
            sent, is_asleep, ..
        } = &*self.state;
        sent.fetch_add(1, SeqCst);
        if is_asleep.load(SeqCst) && is_asleep.swap(false, SeqCst) {
            self.waker.wake();
        }
    }
}

impl Messages {
    /// The next one, if there is one.
    pub fn next(&self) -> Result<Message, TryRecvError> {
        let message = self.receiver.try_recv()?;
        self.taken.set(self.taken.get() + 1);
        if let Message::Datagram(datagram) = &message {
            let waiting = &self.state.datagram_bytes;
            waiting.fetch_sub(datagram.bytes(), Relaxed);
        }
        Ok(message)
    }

    /// From now on, senders wake the worker. Says whether there are messages already, for which nobody does.
    pub fn fall_asleep(&self) -> bool {
        self.state.is_asleep.store(true, SeqCst);
        self.has_mail()
    }

    /// Whether there are messages.
    pub fn has_mail(&self) -> bool {
        self.state.sent.load(SeqCst) != self.taken.get()
    }

    /// The worker looks for messages before it sleeps again.
    pub fn wake_up(&self) {
        // Who still sees it asleep wakes it once too often.
        self.state.is_asleep.store(false, Relaxed);
    }
}

#[cfg(test)]
mod tests;
