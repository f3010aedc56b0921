//! Control: listens, hands connections to workers in turn, and ends them.

use super::error::Error;
use super::layout::{Layout, layout};
use super::listen::{Listening, listen, listen_for_datagrams, worker_listeners};
use super::memory_file::MemoryFile;
use super::metrics::{Metrics, PATIENCE, Statistics};
use super::process::{self, Process};
use crate::carrier::choose;
use crate::carrier::connections::Arrival;
use crate::carrier::datagrams::{Socket, Source};
use crate::carrier::inbox::{Inbox, Message};
use crate::carrier::tls::{Refresher, Tls};
use crate::carrier::worker::{Serve, Shared};
use crate::carrier::workers::workers;
use crate::carrier::xdp_interface::{XdpInterface, attach};
use crate::engine::state::Addresses;
use crate::engine::{Certificates, Clock, Partitions, ServerState, StorageTotals};
use crate::options::Options;
use crate::session::accounts::Accounts;
use mica::{Hasher, Partition};
use net::{DatagramSocket, Endpoint, Events, Interest, Poller, Waker};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::collections::hash_map::RandomState;
use std::fmt::Display;
use std::hash::BuildHasher;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

fn system(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| Error::System(what, error)
}

/// Until a descriptor may be free again for a connection that waits to be accepted.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// The reply to a client over the limit, as memcached has it.
const TOO_MANY_CONNECTIONS: &[u8] = b"ERROR Too many open connections\r\n";

const SIGNAL: u64 = u64::MAX - 1;
const REFRESH: u64 = u64::MAX - 2;

/// A worker ended.
const WORKER_ENDED: u64 = u64::MAX;

/// A server that listens. Dropping it ends it.
pub struct Server {
    listeners: Vec<Listening>,
    poller: Poller,
    /// Wakes `poller` when a worker ends.
    worker_ended: Arc<Waker>,
    workers: Vec<Handle>,
    shared: Arc<Shared>,
    tls: Option<Arc<Tls>>,
    /// Connections taken on so far.
    accepted: u64,
    /// No descriptors were left at the last attempt.
    exhausted: bool,
    metrics: Option<Metrics>,
    xdp_interface: Option<XdpInterface>,
    memory_file: Option<MemoryFile>,
    _process: Process,
}

/// A worker as seen from outside.
struct Handle {
    inbox: Inbox,
    /// It serves once there is something; it ends if this is dropped before.
    start: Sender<()>,
    thread: JoinHandle<io::Result<Option<Box<dyn Partitions>>>>,
}

impl Server {
    /// Listen and start the workers.
    pub fn start(options: &Options) -> Result<Self, Error> {
        raise_descriptor_limit();
        let layout = layout(options)?;
        let accounts = options.accounts.as_deref().map(Accounts::read);
        let accounts = accounts.transpose()?;
        let tls = options.tls.clone().map(Tls::new);
        let tls = tls.transpose()?.map(Arc::new);
        let mut listeners = listen(options)?;
        let own = worker_listeners(options, &listeners)?;
        let endpoints = own.iter().map(|one| one.listener.endpoint().clone());
        let sockets = listen_for_datagrams(options)?;
        let addresses = Addresses {
            workers: endpoints.collect(),
            datagrams: datagram_addresses(&sockets),
        };
        listeners.extend(own);
        for listening in &mut listeners {
            let set = listening.listener.set_congestion(&options.congestion);
            let advice = "Give -o congestion one of /proc/sys/net/ipv4/tcp_allowed_congestion_control, or system";
            set.map_err(|error| Error::Setup(error, advice))?;
        }
        // Before the process goes to the background, where errors are not seen.
        let mut xdp_interface = attach(options, &sockets)?;
        let process = process::prepare(&options.process)?;
        // Behind `fork`, which frames do not outlive, and before root is given up.
        let queues = match &mut xdp_interface {
            Some(interface) => interface.open(options.threads, &sockets)?,
            None => (0..options.threads).map(|_| Vec::new()).collect(),
        };
        let sockets = sockets.into_iter().map(|own| own.into_iter().map(Socket));
        let sources = sockets.zip(queues).map(|(sockets, queues)| {
            let sockets = sockets.map(Source::Socket);
            sockets.chain(queues).collect()
        });
        let sources = sources.collect();
        if let Some(user) = &options.process.user {
            process::become_user(user)?;
        }
        // With the rights that it will serve with.
        let options = &Options {
            transport: choose(options)?,
            ..options.clone()
        };
        let fresh_seed = RandomState::new().hash_one(std::process::id());
        let memory_file = options.memory_file.as_deref();
        let memory_file = memory_file.map(|path| MemoryFile::claim(path, fresh_seed));
        let memory_file = memory_file.transpose()?;
        let hash_seed = memory_file
            .as_ref()
            .map_or(fresh_seed, MemoryFile::hash_seed);
        let hasher = Hasher::new(hash_seed);
        let mut partitions = make_partitions(&layout, &hasher)?;
        let restored = memory_file
            .as_ref()
            .map(|file| file.restore(&hasher, &mut partitions, options.parts()))
            .transpose()?;
        let clock = match restored {
            Some(Some(clock)) => clock,
            Some(None) => {
                partitions = make_partitions(&layout, &hasher)?;
                Clock::start()
            }
            None => Clock::start(),
        };
        let certificates = tls
            .clone()
            .map(|tls| Refresher::start(tls).map(|one| Arc::new(one) as Arc<dyn Certificates>))
            .transpose()
            .map_err(system("start a thread"))?;
        let item_bytes_max = layout.config.item_bytes_max;
        let shared = Shared {
            state: ServerState::new(
                options.clone(),
                item_bytes_max,
                addresses,
                clock,
                certificates,
            ),
            accounts,
        };
        let poller = Poller::new().map_err(system("make an epoll instance"))?;
        let mut server = Self {
            worker_ended: Arc::new(
                Waker::new(&poller, WORKER_ENDED).map_err(system("make an eventfd"))?,
            ),
            listeners,
            poller,
            workers: Vec::with_capacity(options.threads),
            shared: Arc::new(shared),
            tls,
            accepted: 0,
            exhausted: false,
            metrics: None,
            xdp_interface,
            memory_file,
            _process: process,
        };
        server.watch_listeners()?;
        for (worker, inbox) in workers(&server.shared, &hasher, partitions, sources)? {
            server.start_worker(worker, inbox)?;
        }
        if let Some(address) = options.metrics {
            let metrics = Metrics::start(address, server.ask_for_statistics());
            server.metrics = Some(metrics.map_err(|error| Error::Metrics(address, error))?);
        }
        if let Some(file) = &server.memory_file {
            // Nothing can fail any more, and no client is served yet.
            file.consume()?;
        }
        for worker in &server.workers {
            // One that has ended is found by `run`.
            _ = worker.start.send(());
        }
        Ok(server)
    }

    /// What asks the workers for statistics.
    fn ask_for_statistics(&self) -> impl Fn() -> Option<Statistics> + Send + use<> {
        let shared = Arc::clone(&self.shared);
        // Any of them knows of all partitions that they share.
        let asked = self.workers.iter().take(shared.state.parts());
        let inboxes: Vec<Inbox> = asked.map(|worker| worker.inbox.clone()).collect();
        move || {
            let mut stored = StorageTotals::default();
            for inbox in &inboxes {
                let (sender, receiver) = mpsc::channel();
                inbox.send(Message::Total(sender));
                stored += receiver.recv_timeout(PATIENCE).ok()?;
            }
            let mut statistics = Statistics::new();
            let mut each = |name: &str, value: &dyn Display| {
                statistics.push((name.to_owned(), value.to_string()));
            };
            let state = &shared.state;
            state.statistics(b"", &stored, state.clock.now(), &mut each);
            Some(statistics)
        }
    }

    /// Where metrics are served.
    pub fn metrics(&self) -> Option<std::net::SocketAddr> {
        self.metrics.as_ref().map(Metrics::address)
    }

    /// Where it listens.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.listening(false)
    }

    /// Where datagrams are served.
    pub fn datagram_addresses(&self) -> &[SocketAddr] {
        &self.shared.state.addresses.datagrams
    }

    /// On which interface datagrams are served over AF_XDP, and how.
    pub fn xdp_interface(&self) -> Option<&impl Display> {
        self.xdp_interface.as_ref()
    }

    /// Where each worker listens by itself, where each has keys of its own.
    pub fn worker_endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.listening(true)
    }

    fn listening(&self, is_own: bool) -> impl Iterator<Item = &Endpoint> {
        let listeners = self.listeners.iter();
        listeners
            .filter(move |listening| listening.worker.is_some() == is_own)
            .map(|listening| listening.listener.endpoint())
    }

    /// Serve until `stop` is readable. When `refresh` is, certificates are read again. Fails if a worker ends by
    /// itself.
    pub fn run(&mut self, stop: impl AsFd, refresh: impl AsFd) -> Result<(), Error> {
        self.poller
            .add(&stop, SIGNAL, Interest::READ)
            .and_then(|()| self.poller.add(&refresh, REFRESH, Interest::READ))
            .map_err(system("watch for signals"))?;
        let mut events = Events::with_capacity(64);
        loop {
            let timeout = self.exhausted.then_some(ACCEPT_RETRY);
            self.poller
                .wait(&mut events, timeout)
                .map_err(system("wait for connections"))?;
            let has = |token| events.iter().any(|event| event.token() == token);
            if has(WORKER_ENDED) {
                return Err(self.explain_ended_worker());
            }
            if has(SIGNAL) {
                return Ok(());
            }
            if has(REFRESH) {
                // However many signals there were; what comes meanwhile is for the next time.
                _ = rustix::io::read(&refresh, &mut [0; 64]);
                if let Some(certificates) = &self.shared.state.certificates {
                    certificates.refresh();
                }
            }
            if self.exhausted {
                self.exhausted = false;
                self.watch_listeners()?;
            }
            for event in &*events {
                if event.token() < REFRESH && !self.exhausted {
                    self.accept_from(event.token() as usize)?;
                }
            }
        }
    }

    /// Serve no more, and keep the items where that is asked for. Fails if they cannot be kept, or a worker ended by
    /// itself meanwhile.
    pub fn stop(mut self) -> Result<(), Error> {
        let Some(file) = self.memory_file.take() else {
            return Ok(());
        };
        // Once all have ended, what any of them did is there.
        let mut all = self.end_workers()?;
        // Each of those who share all has all.
        all.truncate(self.shared.state.options.parts());
        Ok(file.save(&mut all, self.shared.state.clock)?)
    }

    /// Serve no more, and take the storage of the workers.
    fn end_workers(&mut self) -> Result<Vec<Box<dyn Partitions>>, Error> {
        self.listeners.clear();
        self.metrics = None;
        for worker in &self.workers {
            worker.inbox.send(Message::End);
        }
        // All of them, whatever became of one.
        let ended: Vec<_> = self
            .workers
            .drain(..)
            .map(|worker| {
                drop(worker.start);
                worker.thread.join()
            })
            .collect();
        let storage = ended
            .into_iter()
            .map(joined)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(storage.into_iter().flatten().collect())
    }

    fn watch_listeners(&self) -> Result<(), Error> {
        for (token, listening) in (0..).zip(&self.listeners) {
            self.poller
                .add(&listening.listener, token, Interest::READ)
                .map_err(system("watch a listening socket"))?;
        }
        Ok(())
    }

    /// Hand over every connection that waits.
    fn accept_from(&mut self, index: usize) -> Result<(), Error> {
        loop {
            let Listening {
                listener,
                worker,
                is_tls,
            } = &self.listeners[index];
            match listener.accept() {
                Ok(Some(stream)) => {
                    let arrival = Arrival {
                        stream,
                        tls: self
                            .tls
                            .as_ref()
                            .filter(|_| *is_tls)
                            .map(|tls| tls.current()),
                    };
                    let worker = *worker;
                    self.take_on(arrival, worker);
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    // No descriptors or memory left. The connection stays in the backlog, so the listener stays
                    // readable: look away for a while instead of asking again at once.
                    if self.shared.state.options.verbosity > 0 {
                        eprintln!("rackscope-cached: cannot accept a connection for now: {error}");
                    }
                    for listening in &self.listeners {
                        self.poller
                            .remove(&listening.listener)
                            .map_err(system("stop watching a listening socket"))?;
                    }
                    self.exhausted = true;
                    return Ok(());
                }
            }
        }
    }

    /// Take on a client, unless there are too many: by `worker`, or by all in turn.
    fn take_on(&mut self, arrival: Arrival, worker: Option<usize>) {
        let state = &self.shared.state;
        if self.accepted - state.closed_connections() >= state.options.connections as u64 {
            state.count_refused();
            // Where that cannot be sent, the closed connection says it.
            if arrival.tls.is_none() {
                _ = arrival.stream.write(TOO_MANY_CONNECTIONS);
            }
            return;
        }
        let worker = worker.unwrap_or(self.accepted as usize % self.workers.len());
        self.accepted += 1;
        self.workers[worker].inbox.send(Message::Serve(arrival));
        if state.options.verbosity > 1 {
            eprintln!("rackscope-cached: connection {} accepted", self.accepted);
        }
    }

    /// Have a worker's thread. It does not serve yet.
    fn start_worker(&mut self, mut worker: Box<dyn Serve>, inbox: Inbox) -> Result<(), Error> {
        let index = self.workers.len();
        let options = &self.shared.state.options;
        let core = options
            .cores
            .get(index % options.cores.len().max(1))
            .copied();
        let (pinned, is_pinned) = mpsc::channel();
        let (start, started) = mpsc::channel();
        let ended = WakeOnDrop(Arc::clone(&self.worker_ended));
        let thread = std::thread::Builder::new()
            .name(format!("worker-{index}"))
            .spawn(move || {
                let _ended = ended;
                let result = core.map_or(Ok(()), net::affinity::pin_current_thread);
                let go_on = result.is_ok();
                // The receiver is gone if an earlier worker could not be pinned.
                _ = pinned.send(result);
                if go_on && started.recv().is_ok() {
                    worker.run()?;
                    Ok(Some(worker.into_storage()))
                } else {
                    Ok(None)
                }
            })
            .map_err(system("start a thread"))?;
        if let Ok(Err(error)) = is_pinned.recv() {
            return Err(Error::Setup(error, "Choose others with --cores"));
        }
        self.workers.push(Handle {
            inbox,
            start,
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
            |index| match joined(self.workers.swap_remove(index).thread.join()) {
                Err(Error::Worker(reason)) => reason,
                _ => "it had nothing to do".to_owned(),
            },
        );
        Error::Worker(reason)
    }
}

/// What a worker's thread gave back.
fn joined<T>(ended: std::thread::Result<io::Result<T>>) -> Result<T, Error> {
    let reason = match ended {
        Ok(Ok(storage)) => return Ok(storage),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it panicked".to_owned(),
    };
    Err(Error::Worker(reason))
}

/// Empty ones.
fn make_partitions(layout: &Layout, hasher: &Hasher) -> Result<Vec<Partition>, Error> {
    (0..layout.partitions)
        .map(|_| Partition::new(layout.config, hasher.clone()))
        .collect::<Result<_, _>>()
        .map_err(Error::Memory)
}

impl Drop for Server {
    fn drop(&mut self) {
        // Errors of workers were returned by `run` or `stop`.
        _ = self.end_workers();
    }
}

/// The common ones, which all workers have, then each worker's own.
fn datagram_addresses(sockets: &[Vec<Arc<DatagramSocket>>]) -> Vec<SocketAddr> {
    let mut addresses: Vec<SocketAddr> = Vec::new();
    let all = sockets.iter().flatten().map(|socket| socket.address());
    for address in all {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

struct WakeOnDrop(Arc<Waker>);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// A cache may have many clients: take as many descriptors as the host allows without asking.
fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // What was allowed before still is.
    _ = setrlimit(Resource::Nofile, limit);
}
