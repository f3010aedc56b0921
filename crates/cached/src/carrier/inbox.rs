use super::connection::Connection;
use super::connections::Arrival;
use super::datagrams::ForwardedDatagram;
use crate::engine::StorageTotals;
use net::Waker;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

/// What a worker is asked to do, apart from what its clients ask for.
pub(crate) enum Message {
    /// Take on a client.
    Serve(Arrival),
    /// Go on with a client whose next command another worker found to be for this one.
    Connection(Box<Connection>),
    /// Go on with a datagram, likewise.
    Datagram(Box<ForwardedDatagram>),
    /// Send their lines to clients that watch.
    Deliver,
    /// Say what its partitions hold.
    Total(Sender<StorageTotals>),
    /// End.
    End,
}

/// Where a worker gets messages.
#[derive(Clone)]
pub(crate) struct Inbox {
    sender: Sender<Message>,
    waker: Arc<Waker>,
}

impl Inbox {
    /// An inbox whose messages wake by `waker`, and its other end.
    pub fn new(waker: Arc<Waker>) -> (Self, Receiver<Message>) {
        let (sender, receiver) = mpsc::channel();
        (Self { sender, waker }, receiver)
    }

    /// Send a message. One to a worker that has ended is lost: the server is about to end, as `Server::run` says why.
    pub fn send(&self, message: Message) {
        _ = self.sender.send(message);
        self.waker.wake();
    }
}
