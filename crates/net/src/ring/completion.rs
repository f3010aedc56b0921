use super::Filled;
use crate::Stream;
use std::io;

/// How to send. Whichever it is, there is one completion, which gives the bytes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendMode {
    /// What the socket takes at once.
    Immediate,
    /// Wait until the socket takes more, and send that.
    Patient,
}

/// Something that was done.
#[derive(Debug)]
pub enum Completion {
    /// Bytes came.
    Received {
        /// Whose.
        token: u64,
        /// Where they are; [`Ring::bytes`](super::Ring::bytes) shows them, until
        /// [`Ring::give_back`](super::Ring::give_back).
        received: Filled,
    },
    /// Nothing more will be received.
    Ended {
        /// Of whom.
        token: u64,
        /// Why, unless the peer said so by closing.
        error: Option<io::Error>,
    },
    /// What was to be sent was, or as much as the socket took.
    Sent {
        /// By whom.
        token: u64,
        /// As given to [`Ring::send`](super::Ring::send).
        bytes: Vec<u8>,
        /// How many were sent, of those that were to be.
        sent: io::Result<usize>,
    },
    /// A removed stream, with which the kernel is done. Its token may be given to another one from now on.
    Removed {
        /// What its token was.
        token: u64,
        /// The stream, still open.
        stream: Stream,
    },
    /// A thread called [`Waker::wake`](crate::Waker::wake).
    Woken,
}
