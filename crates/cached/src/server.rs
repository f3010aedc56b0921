//! Control: listens, hands connections to workers in turn, and ends them.

use crate::accounts::{self, Accounts};
use crate::clock::Clock;
use crate::listen::listen;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::process::{self, Process};
use crate::report::Report;
use crate::storage::{Owned, Shared, Storage};
use crate::worker::{Message, WAKE, Worker};
use mica::{Config, Hasher, Mode, Partition};
use net::{Endpoint, Interest, Listener, Poller, Stream, Waker};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be listened on.
    #[error(
        "{source}. Stop what listens there, or choose another with -p (0 picks a free port), -l or -s"
    )]
    Listen {
        /// Which and why.
        source: net::Error,
    },
    /// An address or a core is not there.
    #[error("{source}. {advice}")]
    Setup {
        /// What and why.
        source: net::Error,
        /// What to do.
        advice: &'static str,
    },
    /// The file of accounts is of no use.
    #[error("{source}. Check -Y")]
    Accounts {
        /// Which and why.
        source: accounts::Error,
    },
    /// The process cannot be what it should be.
    #[error("{source}")]
    Process {
        /// What and why.
        source: process::Error,
    },
    /// Metrics cannot be told.
    #[error("metrics cannot be told at {address}: {source}. Choose another address with --metrics")]
    Metrics {
        /// Where.
        address: std::net::SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The largest item does not fit.
    #[error(
        "-I {item_bytes_max}: the largest item can be half of a partition, {limit} bytes with these -m and -t. Choose a smaller -I or a larger -m"
    )]
    ItemTooLarge {
        /// What was asked for, in bytes.
        item_bytes_max: usize,
        /// What would do, in bytes.
        limit: usize,
    },
    /// There is no memory for the items.
    #[error("cannot make room for items: {source}. Choose a smaller -m")]
    Memory {
        /// What and why.
        source: mica::Error,
    },
    /// The system gave no descriptor, thread or signal handler.
    #[error("cannot {what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A worker thread ended by itself.
    #[error(
        "a worker thread stopped, so the server ends: {reason}. This is a defect; please report it"
    )]
    Worker {
        /// What it left as its last words.
        reason: String,
    },
}

fn system(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::System { what, source }
}

/// Until a descriptor may be free again for a connection that waits to be accepted.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// What a client over the limit is told, as memcached tells it.
const TOO_MANY_CONNECTIONS: &[u8] = b"ERROR Too many open connections\r\n";

const SIGNAL: u64 = u64::MAX - 1;

/// A server that listens. Dropping it ends it.
pub struct Server {
    listeners: Vec<Listener>,
    poller: Poller,
    /// Wakes `poller` when a worker ends.
    obituary: Arc<Waker>,
    workers: Vec<Handle>,
    report: Arc<Report>,
    connections_max: u64,
    /// Connections handed to workers so far.
    handed: u64,
    /// No descriptors were left at the last attempt.
    exhausted: bool,
    verbosity: u8,
    metrics: Option<Metrics>,
    _process: Process,
}

/// A worker as seen from outside.
struct Handle {
    inbox: Sender<Message>,
    waker: Arc<Waker>,
    thread: JoinHandle<io::Result<()>>,
}

impl Server {
    /// Listen and start the workers.
    ///
    /// # Errors
    /// [`Error`] says what could not be had and what to do about it.
    pub fn start(options: &Options) -> Result<Self, Error> {
        raise_descriptor_limit();
        let layout = layout(options)?;
        let accounts = options.accounts.as_deref().map(Accounts::read);
        let accounts = accounts
            .transpose()
            .map_err(|source| Error::Accounts { source })?;
        let listeners = listen(options)?;
        let process =
            process::prepare(&options.process).map_err(|source| Error::Process { source })?;
        let hasher = Hasher::new(RandomState::new().hash_one(std::process::id()));
        let mut partitions = Vec::with_capacity(layout.partitions);
        for _ in 0..layout.partitions {
            partitions.push(
                Partition::new(layout.config, hasher.clone())
                    .map_err(|source| Error::Memory { source })?,
            );
        }
        let report = Report::new(
            options.clone(),
            accounts,
            layout.config.item_bytes_max,
            Clock::start(),
        );
        let poller = Poller::new(64).map_err(system("make an epoll instance"))?;
        let mut server = Self {
            obituary: Arc::new(Waker::new(&poller, WAKE).map_err(system("make an eventfd"))?),
            listeners,
            poller,
            workers: Vec::with_capacity(options.threads),
            report: Arc::new(report),
            connections_max: options.connections as u64,
            handed: 0,
            exhausted: false,
            verbosity: options.verbosity,
            metrics: None,
            _process: process,
        };
        server.watch_listeners()?;
        if options.threads == 1 {
            server.start_worker(options, Owned::new(hasher, partitions))?;
        } else {
            let storage = Shared::new(hasher, partitions);
            for _ in 0..options.threads {
                server.start_worker(options, storage.clone())?;
            }
        }
        if let Some(address) = options.metrics {
            let (inbox, waker) = (
                server.workers[0].inbox.clone(),
                Arc::clone(&server.workers[0].waker),
            );
            let ask = move |whom| {
                // A worker that has ended drops the question, and with it what an answer would be sent by.
                _ = inbox.send(Message::Tell(whom));
                waker.wake();
            };
            let metrics = Metrics::start(address, ask);
            server.metrics = Some(metrics.map_err(|source| Error::Metrics { address, source })?);
        }
        Ok(server)
    }

    /// Where metrics are told.
    pub fn metrics(&self) -> Option<std::net::SocketAddr> {
        self.metrics.as_ref().map(Metrics::address)
    }

    /// Where it listens.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.listeners.iter().map(Listener::endpoint)
    }

    /// Serve until `stop` is readable.
    ///
    /// # Errors
    /// [`Error::Worker`] if a worker ends by itself, [`Error::System`] if the poller fails.
    pub fn run(&mut self, stop: impl AsFd) -> Result<(), Error> {
        self.poller
            .add(&stop, SIGNAL, Interest::READ)
            .map_err(system("watch for signals"))?;
        let mut ready = Vec::new();
        loop {
            let timeout = self.exhausted.then_some(ACCEPT_RETRY);
            let (mut stopped, mut worker_ended) = (false, false);
            ready.clear();
            match self.poller.wait(timeout) {
                Ok(events) => {
                    for event in events {
                        match event.token() {
                            SIGNAL => stopped = true,
                            WAKE => worker_ended = true,
                            listener => ready.push(listener as usize),
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(system("wait for connections")(error)),
            }
            if worker_ended {
                return Err(self.explain_ended_worker());
            }
            if stopped {
                return Ok(());
            }
            if self.exhausted {
                self.exhausted = false;
                self.watch_listeners()?;
            }
            for &listener in &ready {
                self.accept_from(listener)?;
                if self.exhausted {
                    break;
                }
            }
        }
    }

    fn watch_listeners(&self) -> Result<(), Error> {
        for (token, listener) in (0..).zip(&self.listeners) {
            self.poller
                .add(listener, token, Interest::READ)
                .map_err(system("watch a listening socket"))?;
        }
        Ok(())
    }

    /// Hand over every connection that waits.
    fn accept_from(&mut self, index: usize) -> Result<(), Error> {
        loop {
            match self.listeners[index].accept() {
                Ok(Some(stream)) => self.welcome(stream),
                Ok(None) => return Ok(()),
                Err(error) => {
                    // No descriptors or memory left. The connection stays in the backlog, so the listener stays
                    // readable: look away for a while instead of asking again at once.
                    if self.verbosity > 0 {
                        eprintln!("rackscope-cached: cannot accept a connection for now: {error}");
                    }
                    for listener in &self.listeners {
                        self.poller
                            .remove(listener)
                            .map_err(system("stop watching a listening socket"))?;
                    }
                    self.exhausted = true;
                    return Ok(());
                }
            }
        }
    }

    /// Take on a client, unless there are too many.
    fn welcome(&mut self, stream: Stream) {
        if self.handed - self.report.closed_connections() >= self.connections_max {
            self.report.count_refused();
            // It is a courtesy; a client that cannot be told learns from the closed connection.
            _ = stream.write(TOO_MANY_CONNECTIONS);
            return;
        }
        self.hand_over(stream);
        if self.verbosity > 1 {
            eprintln!("rackscope-cached: connection {} accepted", self.handed);
        }
    }

    /// To the workers in turn.
    fn hand_over(&mut self, stream: Stream) {
        let worker = &self.workers[self.handed as usize % self.workers.len()];
        self.handed += 1;
        // If the worker has ended, `run` is about to learn of it.
        _ = worker.inbox.send(Message::Serve(stream));
        worker.waker.wake();
    }

    fn start_worker<S: Storage + Send + 'static>(
        &mut self,
        options: &Options,
        storage: S,
    ) -> Result<(), Error> {
        let index = self.workers.len();
        let poller = Poller::new(256).map_err(system("make an epoll instance"))?;
        let waker = Arc::new(Waker::new(&poller, WAKE).map_err(system("make an eventfd"))?);
        let (inbox, receiver) = mpsc::channel();
        let worker = Worker {
            index,
            poller,
            waker: Arc::clone(&waker),
            inbox: receiver,
            storage,
            report: Arc::clone(&self.report),
        };
        let core = options
            .cores
            .get(index % options.cores.len().max(1))
            .copied();
        let (pinned, is_pinned) = mpsc::channel();
        let obituary = WakeOnDrop(Arc::clone(&self.obituary));
        let thread = std::thread::Builder::new()
            .name(format!("worker-{index}"))
            .spawn(move || {
                let _obituary = obituary;
                let result = core.map_or(Ok(()), net::affinity::pin_current_thread);
                let go_on = result.is_ok();
                // Nobody listens any more if an earlier worker could not be pinned.
                _ = pinned.send(result);
                if go_on { worker.run() } else { Ok(()) }
            })
            .map_err(system("start a thread"))?;
        if let Ok(Err(source)) = is_pinned.recv() {
            return Err(Error::Setup {
                source,
                advice: "Choose others with --cores",
            });
        }
        self.workers.push(Handle {
            inbox,
            waker,
            thread,
        });
        Ok(())
    }

    fn explain_ended_worker(&mut self) -> Error {
        let ended = self
            .workers
            .iter()
            .position(|worker| worker.thread.is_finished());
        let reason = ended.map_or_else(
            || "it is ending".to_owned(),
            |index| match self.workers.swap_remove(index).thread.join() {
                Ok(Ok(())) => "it had nothing to do".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it panicked".to_owned(),
            },
        );
        Error::Worker { reason }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.listeners.clear();
        // It can send to a worker, and a worker ends when nobody can.
        self.metrics = None;
        for Handle {
            inbox,
            waker,
            thread,
        } in self.workers.drain(..)
        {
            drop(inbox);
            waker.wake();
            // What it has to say, it said to `run`.
            _ = thread.join();
        }
    }
}

struct WakeOnDrop(Arc<Waker>);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.0.wake();
    }
}

struct Layout {
    partitions: usize,
    config: Config,
}

/// How many partitions to make, and how large. One for one worker, unless that is longer than one can be. More than
/// workers otherwise, so that two workers rarely meet in one, but none so small that large items crowd it.
fn layout(options: &Options) -> Result<Layout, Error> {
    let bytes = options.memory_mebibytes << 20;
    let item_bytes_max = options.item_bytes_max.unwrap_or(1 << 20);
    let fewest = bytes.div_ceil(Config::LOG_BYTES_MAX);
    let partitions = match options.threads {
        1 => fewest,
        threads => (4 * threads).min(bytes / (8 * item_bytes_max)).max(fewest),
    };
    let mut config = Config::for_log_bytes(bytes / partitions);
    config.has_readers = options.threads > 1;
    if !options.evicts {
        config.mode = Mode::Store;
    }
    let limit = config.log_bytes / 2;
    config.item_bytes_max = item_bytes_max.min(limit);
    match options.item_bytes_max {
        Some(item_bytes_max) if item_bytes_max > limit => Err(Error::ItemTooLarge {
            item_bytes_max,
            limit,
        }),
        _ => Ok(Layout { partitions, config }),
    }
}

/// A cache may have many clients: take as many descriptors as the host allows without asking.
fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // What was allowed before still is.
    _ = setrlimit(Resource::Nofile, limit);
}
