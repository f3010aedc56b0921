//! Which kind of worker serves: the best of those that are asked for and that the kernel has.

use crate::error::Error;
use crate::options::{Options, Transport};
use crate::ring_worker::{self, RingWorker};
use crate::server::system;
use crate::storage::{Partitions, Storage};
use crate::worker::{Common, WAKE, Worker};
use net::{Poller, Ring, Waker};
use std::io;

/// What a worker waits by.
pub(crate) enum Carrier {
    Epoll(Poller),
    IoUring(Box<Ring>),
}

/// What a worker's thread does. It gives back what the worker had.
pub(crate) type Run = Box<dyn FnOnce() -> io::Result<Box<dyn Partitions>> + Send>;

/// `options` with the transport that it comes to here.
pub(crate) fn choose(options: &Options) -> Result<Options, Error> {
    let mut options = options.clone();
    if options.transport == Transport::Epoll {
        return Ok(options);
    }
    let lacking = if options.parts() > 1 {
        Some(Error::TransportLacks {
            what: "connections do not move between workers, as --access erew and crew need",
        })
    } else if options.udp_port.is_some() {
        Some(Error::TransportLacks {
            what: "datagrams are not served",
        })
    } else if options.tls.is_some() {
        Some(Error::TransportLacks {
            what: "nothing is encrypted",
        })
    } else {
        let error = Ring::probe().err();
        error.map(|source| Error::Transport { source })
    };
    options.transport = match (lacking, options.transport) {
        (None, _) => Transport::IoUring,
        (Some(error), Transport::IoUring) => return Err(error),
        (Some(error), _) => {
            if options.verbosity > 0 {
                let reason = match &error {
                    Error::Transport { source } => source.to_string(),
                    Error::TransportLacks { what } => format!("over io_uring {what}"),
                    other => other.to_string(),
                };
                eprintln!("rackscope-cached: {reason}; epoll serves instead");
            }
            Transport::Epoll
        }
    };
    Ok(options)
}

/// What a worker is to wait by, and what wakes it.
pub(crate) fn carrier(options: &Options) -> Result<(Carrier, Waker), Error> {
    if options.transport == Transport::IoUring {
        let mut ring = ring_worker::ring().map_err(|source| Error::Transport { source })?;
        let waker = Waker::for_ring(&mut ring).map_err(system("make an eventfd"))?;
        return Ok((Carrier::IoUring(Box::new(ring)), waker));
    }
    let poller = Poller::new(256).map_err(system("make an epoll instance"))?;
    let waker = Waker::new(&poller, WAKE).map_err(system("make an eventfd"))?;
    Ok((Carrier::Epoll(poller), waker))
}

/// The work of a worker.
pub(crate) fn run<S: Storage + Send + 'static>(carrier: Carrier, common: Common<S>) -> Run {
    match carrier {
        Carrier::Epoll(poller) => Box::new(move || {
            let storage = Worker::new(poller, common).run()?;
            Ok(Box::new(storage))
        }),
        Carrier::IoUring(ring) => Box::new(move || {
            let worker = RingWorker {
                ring: *ring,
                common,
            };
            Ok(Box::new(worker.run()?))
        }),
    }
}
