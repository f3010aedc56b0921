//! How bytes get from and to clients.
//!
//! * [`worker`]: the loop of a worker's thread, over either carrier: [`epoll`] or [`ring`] (io_uring). Idle time-outs and
//!   the inbox are there, and what all connections of a worker have is in [`connections`].
//! * [`connection`]: a stream over epoll; [`encrypted`]: what it does otherwise where [`tls`] encrypts it.
//! * [`datagrams`]: one request a datagram or many, from the kernel or over AF_XDP, which [`xdp_interface`] sets up.

pub(crate) mod connection;
pub(crate) mod connections;
pub(crate) mod datagrams;
mod encrypted;
mod epoll;
pub(crate) mod error;
pub(crate) mod inbox;
mod ring;
pub(crate) mod tls;
pub(crate) mod worker;
pub(crate) mod xdp_interface;

pub(crate) use error::Error;

use self::datagrams::Source;
use self::epoll::{Epoll, WAKE};
use self::inbox::Inbox;
use self::ring::RingCarrier;
use self::worker::Worker;
use crate::engine::{Partitions, Storage};
use crate::options::{Options, Transport};
use net::{Poller, Ring, Waker};
use std::io;
use std::sync::Arc;

/// What a worker waits by.
pub(crate) enum Waiting {
    Epoll(Poller),
    IoUring(Box<Ring>),
}

/// What a worker's thread does. It gives back the storage.
pub(crate) type Run = Box<dyn FnOnce() -> io::Result<Box<dyn Partitions>> + Send>;

/// The transport that `options` come to here: the best of those that are asked for and that the kernel has.
pub(crate) fn choose(options: &Options) -> Result<Transport, Error> {
    if options.transport == Transport::Epoll {
        return Ok(Transport::Epoll);
    }
    let missing = if options.parts() > 1 {
        Some("does not move connections between workers, as --access erew and crew need")
    } else if options.udp_port.is_some() {
        Some("serves no datagrams")
    } else if options.tls.is_some() {
        Some("encrypts nothing")
    } else {
        None
    };
    let error = match missing {
        Some(what) => Error::TransportLacks { what },
        None => match Ring::probe() {
            Ok(()) => return Ok(Transport::IoUring),
            Err(source) => Error::Transport { source },
        },
    };
    if options.transport == Transport::IoUring {
        return Err(error);
    }
    if options.verbosity > 0 {
        let reason = error.reason();
        eprintln!("rackscope-cached: {reason}; epoll serves instead");
    }
    Ok(Transport::Epoll)
}

/// What a worker is to wait by, and what wakes it.
pub(crate) fn waiting(transport: Transport) -> Result<(Waiting, Waker), Error> {
    let system = |what| move |source| Error::System { what, source };
    if transport == Transport::IoUring {
        let mut ring = ring::ring().map_err(|source| Error::Transport { source })?;
        let waker = Waker::for_ring(&mut ring).map_err(system("make an eventfd"))?;
        return Ok((Waiting::IoUring(Box::new(ring)), waker));
    }
    let poller = Poller::new().map_err(system("make an epoll instance"))?;
    let waker = Waker::new(&poller, WAKE).map_err(system("make an eventfd"))?;
    Ok((Waiting::Epoll(poller), waker))
}

/// The work of a worker's thread.
pub(crate) fn run<S: Storage + Send + 'static>(
    waiting: Waiting,
    sources: Vec<Source>,
    inboxes: Arc<[Inbox]>,
    worker: Worker<S>,
) -> Run {
    Box::new(move || {
        let storage = match waiting {
            Waiting::Epoll(poller) => worker.run(Epoll::new(poller, sources, inboxes))?,
            Waiting::IoUring(ring) => worker.run(RingCarrier::new(*ring))?,
        };
        Ok(Box::new(storage))
    })
}
