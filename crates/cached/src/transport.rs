//! Which kind of worker serves: the best of those that are asked for and that the kernel has.

use crate::options::{Options, Transport};
use crate::report::Report;
use crate::ring_worker::{self, RingWorker};
use crate::server::{Error, system};
use crate::storage::Storage;
use crate::worker::{Message, WAKE, Worker};
use net::{Poller, Waker};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// What a worker's thread does.
pub(crate) type Run = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// `options` with the transport that it comes to here.
pub(crate) fn choose(options: &Options) -> Result<Options, Error> {
    let mut options = options.clone();
    if options.transport != Transport::Epoll {
        options.transport = match (ring_worker::ring(), options.transport) {
            (Ok(_), _) => Transport::IoUring,
            (Err(source), Transport::IoUring) => return Err(Error::Transport { source }),
            (Err(source), _) => {
                if options.verbosity > 0 {
                    eprintln!("rackscope-cached: {source}; epoll serves instead");
                }
                Transport::Epoll
            }
        };
    }
    Ok(options)
}

/// A worker, and what wakes it.
pub(crate) fn worker<S: Storage + Send + 'static>(
    index: usize,
    inbox: Receiver<Message>,
    storage: S,
    report: Arc<Report>,
) -> Result<(Arc<Waker>, Run), Error> {
    if report.options().transport == Transport::IoUring {
        let mut ring = ring_worker::ring().map_err(|source| Error::Transport { source })?;
        let waker = Waker::for_ring(&mut ring).map_err(system("make an eventfd"))?;
        let waker = Arc::new(waker);
        let worker = RingWorker {
            index,
            ring,
            waker: Arc::clone(&waker),
            inbox,
            storage,
            report,
        };
        return Ok((waker, Box::new(move || worker.run())));
    }
    let poller = Poller::new(256).map_err(system("make an epoll instance"))?;
    let waker = Arc::new(Waker::new(&poller, WAKE).map_err(system("make an eventfd"))?);
    let worker = Worker {
        index,
        poller,
        waker: Arc::clone(&waker),
        inbox,
        storage,
        report,
    };
    Ok((waker, Box::new(move || worker.run())))
}
