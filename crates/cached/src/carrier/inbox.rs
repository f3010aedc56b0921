use super::connection::Connection;
use super::connections::Arrival;
use super::datagrams::ForwardedDatagram;
use crate::engine::StorageTotals;
use net::Waker;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};

/// What a worker is asked to do, apart from what its clients ask for.
pub(crate) enum Message {
    /// Take on a client.
    Serve(Arrival),
    /// Go on with a client whose next command another worker found to be for this one.
    Connection(Box<Connection>),
    /// Go on with a datagram, likewise.
    Datagram(Box<ForwardedDatagram>),
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
/// there is a message for each at most; of datagrams, which nothing pushes back, a number of bytes may wait.
#[derive(Clone)]
pub(crate) struct Inbox {
    sender: Sender<Message>,
    waker: Arc<Waker>,
    /// Of datagrams that wait.
    datagram_bytes: Arc<AtomicUsize>,
}

/// The other end of an inbox.
pub(crate) struct Messages {
    receiver: Receiver<Message>,
    datagram_bytes: Arc<AtomicUsize>,
}

impl Inbox {
    /// An inbox whose messages wake by `waker`, and its other end.
    pub fn new(waker: Arc<Waker>) -> (Self, Messages) {
        let (sender, receiver) = mpsc::channel();
        let datagram_bytes = Arc::new(AtomicUsize::new(0));
        let messages = Messages {
            receiver,
            datagram_bytes: Arc::clone(&datagram_bytes),
        };
        let inbox = Self {
            sender,
            waker,
            datagram_bytes,
        };
        (inbox, messages)
    }

    /// Send a datagram on its way; false where too many wait, and it is lost.
    #[must_use]
    pub fn forward(&self, datagram: ForwardedDatagram) -> bool {
        let bytes = datagram.bytes();
        if self.datagram_bytes.fetch_add(bytes, Relaxed) + bytes > DATAGRAM_BYTES_MAX {
            self.datagram_bytes.fetch_sub(bytes, Relaxed);
            return false;
        }
        self.send(Message::Datagram(Box::new(datagram)));
        true
    }

    /// Send a message. One to a worker that has ended is lost: the server is about to end, as `Server::run` says why.
    pub fn send(&self, message: Message) {
        _ = self.sender.send(message);
        self.waker.wake();
    }
}

impl Messages {
    /// The next one, if there is one.
    pub fn next(&self) -> Result<Message, TryRecvError> {
        let message = self.receiver.try_recv()?;
        if let Message::Datagram(datagram) = &message {
            self.datagram_bytes.fetch_sub(datagram.bytes(), Relaxed);
        }
        Ok(message)
    }
}

#[cfg(test)]
mod tests;
