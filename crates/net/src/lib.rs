//! How bytes get there: non-blocking TCP, unix stream and UDP sockets, epoll, io_uring, and thread affinity.
//!
//! Everything here is a thin, safe wrapper over one or two system calls. Set-up functions ([`Stream::connect`],
//! [`Listener::bind`], [`affinity::pin_current_thread`]) return [`Error`], which says what was attempted and where;
//! functions of the request path ([`Stream::read`], [`Stream::write`], [`Poller::wait`], [`Ring::wait`]) return plain
//! [`std::io::Error`] so that they cost nothing beyond the system call.

pub mod affinity;
mod datagrams;
mod endpoint;
mod error;
mod listener;
mod poller;
mod resolve;
mod ring;
mod stream;
mod waker;

pub use datagrams::{DATAGRAMS_MAX, DatagramSocket, Message, Peer, Received, SENT_BYTES_MAX};
pub use endpoint::Endpoint;
pub use error::Error;
pub use listener::{Congestion, ListenOptions, Listener};
pub use poller::{Event, Events, Interest, Poller};
pub use ring::{Completion, Filled, Ring, SendMode, Unavailable};
pub use stream::Stream;
pub use waker::Waker;
