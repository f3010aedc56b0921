//! Control: listens, hands connections to workers in turn, and ends them.

use crate::accounts::Accounts;
use crate::any_connection::Arrival;
use crate::attach::{PastTheKernel, attach};
use crate::clock::Clock;
use crate::datagrams::{Queue, Socket};
use crate::error::Error;
use crate::layout::{Layout, layout};
use crate::listen::{Listening, doors, listen, listen_for_datagrams};
use crate::memory_file::MemoryFile;
use crate::metrics::{Metrics, PATIENCE, Statistics};
use crate::options::{Access, Options};
use crate::process::{self, Process};
use crate::report::{Held, Report};
use crate::storage::{Concurrent, Owned, Partitions, Shared, Storage};
use crate::tls::Tls;
use crate::transport::{self, Carrier};
use crate::worker::{Common, Inbox, Message, WAKE};
use mica::{Hasher, Partition, Reader};
use net::{DatagramSocket, Endpoint, Interest, Poller, Waker};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::collections::hash_map::RandomState;
use std::fmt::Display;
use std::hash::BuildHasher;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Duration;

pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::System { what, source }
}

/// Until a descriptor may be free again for a connection that waits to be accepted.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// What a client over the limit is told, as memcached tells it.
const TOO_MANY_CONNECTIONS: &[u8] = b"ERROR Too many open connections\r\n";

const SIGNAL: u64 = u64::MAX - 1;
const REFRESH: u64 = u64::MAX - 2;

/// A server that listens. Dropping it ends it.
pub struct Server {
    listeners: Vec<Listening>,
    poller: Poller,
    /// Wakes `poller` when a worker ends.
    obituary: Arc<Waker>,
    workers: Vec<Handle>,
    report: Arc<Report>,
    connections_max: u64,
    /// Connections taken on so far.
    welcomed: u64,
    /// No descriptors were left at the last attempt.
    exhausted: bool,
    verbosity: u8,
    metrics: Option<Metrics>,
    past_the_kernel: Option<PastTheKernel>,
    memory_file: Option<MemoryFile>,
    _process: Process,
}

/// A worker as seen from outside.
struct Handle {
    inbox: Inbox,
    thread: JoinHandle<io::Result<Option<Box<dyn Partitions>>>>,
}

/// A worker's ends of what leads to it.
struct Post {
    carrier: Carrier,
    waker: Arc<Waker>,
    inbox: Receiver<Message>,
    sockets: Vec<Arc<DatagramSocket>>,
    queues: Vec<Queue>,
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
        let tls = options.tls.clone().map(Tls::new);
        let tls = tls.transpose().map_err(|source| Error::Tls { source })?;
        let mut listeners = listen(options)?;
        let doors = doors(options, &listeners)?;
        let own_endpoints = doors.iter().map(|door| door.listener.endpoint().clone());
        let own_endpoints = own_endpoints.collect();
        listeners.extend(doors);
        let sockets = listen_for_datagrams(options)?;
        // Before the process goes to the background, where nobody would hear what is wrong.
        let mut past_the_kernel = attach(options, &sockets)?;
        let process =
            process::prepare(&options.process).map_err(|source| Error::Process { source })?;
        // Behind `fork`, which frames do not outlive, and before root is given up.
        let queues = match &mut past_the_kernel {
            Some(past) => past.open(options.threads, &sockets)?,
            None => (0..options.threads).map(|_| Vec::new()).collect(),
        };
        process::give_up_root(&options.process).map_err(|source| Error::Process { source })?;
        // With the rights that it will serve with.
        let options = &transport::choose(options)?;
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
        let report = Report::new(
            options.clone(),
            (accounts, tls),
            layout.config.item_bytes_max,
            (own_endpoints, datagram_addresses(&sockets)),
            clock,
        );
        let poller = Poller::new(64).map_err(system("make an epoll instance"))?;
        let mut server = Self {
            obituary: Arc::new(Waker::new(&poller, WAKE).map_err(system("make an eventfd"))?),
            listeners,
            poller,
            workers: Vec::with_capacity(options.threads),
            report: Arc::new(report),
            connections_max: options.connections as u64,
            welcomed: 0,
            exhausted: false,
            verbosity: options.verbosity,
            metrics: None,
            past_the_kernel,
            memory_file,
            _process: process,
        };
        server.watch_listeners()?;
        server.start_workers(options, &hasher, partitions, (sockets, queues))?;
        if let Some(address) = options.metrics {
            let metrics = Metrics::start(address, server.questions());
            server.metrics = Some(metrics.map_err(|source| Error::Metrics { address, source })?);
        }
        if let Some(file) = &server.memory_file {
            // Nothing can fail any more, and nobody is served yet.
            file.consume()?;
        }
        Ok(server)
    }

    /// What asks the workers for statistics.
    fn questions(&self) -> impl Fn() -> Option<Statistics> + Send + use<> {
        let report = Arc::clone(&self.report);
        // Any of them knows of all partitions that they share.
        let asked = self.workers.iter().take(report.parts());
        let inboxes: Vec<Inbox> = asked.map(|worker| worker.inbox.clone()).collect();
        move || {
            let mut held = Held::default();
            for inbox in &inboxes {
                let (sender, receiver) = mpsc::channel();
                inbox.send(Message::Tell(sender));
                held += receiver.recv_timeout(PATIENCE).ok()?;
            }
            let mut statistics = Statistics::new();
            let mut each = |name: &str, value: &dyn Display| {
                statistics.push((name.to_owned(), value.to_string()));
            };
            report.tell(b"", &held, report.clock().now(), &mut each);
            Some(statistics)
        }
    }

    /// Where metrics are told.
    pub fn metrics(&self) -> Option<std::net::SocketAddr> {
        self.metrics.as_ref().map(Metrics::address)
    }

    /// Where it listens.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.listening(false)
    }

    /// Where datagrams are served.
    pub fn datagram_addresses(&self) -> &[SocketAddr] {
        self.report.datagram_addresses()
    }

    /// On which interface datagrams are served past the kernel, and how.
    pub fn past_the_kernel(&self) -> Option<&PastTheKernel> {
        self.past_the_kernel.as_ref()
    }

    /// Where each worker listens by itself, where each has keys of its own.
    pub fn doors(&self) -> impl Iterator<Item = &Endpoint> {
        self.listening(true)
    }

    fn listening(&self, is_own: bool) -> impl Iterator<Item = &Endpoint> {
        let listeners = self.listeners.iter();
        listeners
            .filter(move |listening| listening.worker.is_some() == is_own)
            .map(|listening| listening.listener.endpoint())
    }

    /// Serve until `stop` is readable. When `refresh` is, certificates are read again.
    ///
    /// # Errors
    /// [`Error::Worker`] if a worker ends by itself, [`Error::System`] if the poller fails.
    pub fn run(&mut self, stop: impl AsFd, refresh: impl AsFd) -> Result<(), Error> {
        self.poller
            .add(&stop, SIGNAL, Interest::READ)
            .and_then(|()| self.poller.add(&refresh, REFRESH, Interest::READ))
            .map_err(system("watch for signals"))?;
        let mut ready = Vec::new();
        loop {
            let timeout = self.exhausted.then_some(ACCEPT_RETRY);
            let (mut stopped, mut refreshed, mut worker_ended) = (false, false, false);
            ready.clear();
            match self.poller.wait(timeout) {
                Ok(events) => {
                    for event in events {
                        match event.token() {
                            SIGNAL => stopped = true,
                            REFRESH => refreshed = true,
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
            if refreshed {
                // However many signals there were; what comes meanwhile is for the next time.
                _ = rustix::io::read(&refresh, &mut [0; 64]);
                self.refresh();
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

    /// Serve nobody any more, and keep the items where that is asked for.
    ///
    /// # Errors
    /// [`Error::MemoryFile`] if they cannot be kept, [`Error::Worker`] if a worker ended by itself meanwhile.
    pub fn stop(mut self) -> Result<(), Error> {
        let Some(file) = self.memory_file.take() else {
            return Ok(());
        };
        // Once all have ended, what any of them did is there.
        let mut all = self.end_workers()?;
        // Each of those who share all has all.
        all.truncate(self.report.options().parts());
        Ok(file.save(&mut all, self.report.clock())?)
    }

    /// Serve nobody any more, and take what the workers had.
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
            .map(|worker| worker.thread.join())
            .collect();
        let had = ended.into_iter().map(had).collect::<Result<Vec<_>, _>>()?;
        Ok(had.into_iter().flatten().collect())
    }

    /// Read the certificates again, if there are any.
    fn refresh(&self) {
        if let Some(Err(error)) = self.report.tls().map(Tls::refresh) {
            eprintln!("rackscope-cached: the certificates stay as they are. {error}");
        }
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
                endpoint,
                worker,
                is_tls,
            } = &self.listeners[index];
            match listener.accept_from() {
                Ok(Some((stream, peer))) => {
                    let arrival = Arrival {
                        stream,
                        peer,
                        door: Arc::clone(endpoint),
                        tls: self.report.tls().filter(|_| *is_tls).map(Tls::current),
                    };
                    let worker = *worker;
                    self.welcome(arrival, worker);
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    // No descriptors or memory left. The connection stays in the backlog, so the listener stays
                    // readable: look away for a while instead of asking again at once.
                    if self.verbosity > 0 {
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
    fn welcome(&mut self, arrival: Arrival, worker: Option<usize>) {
        if self.welcomed - self.report.closed_connections() >= self.connections_max {
            self.report.count_refused();
            // It is a courtesy; a client that cannot be told learns from the closed connection.
            if arrival.tls.is_none() {
                _ = arrival.stream.write(TOO_MANY_CONNECTIONS);
            }
            return;
        }
        let worker = worker.unwrap_or(self.welcomed as usize % self.workers.len());
        self.welcomed += 1;
        self.workers[worker].inbox.send(Message::Serve(arrival));
        if self.verbosity > 1 {
            eprintln!("rackscope-cached: connection {} accepted", self.welcomed);
        }
    }

    /// Start all workers, each with the storage that the access mode gives it.
    fn start_workers(
        &mut self,
        options: &Options,
        hasher: &Hasher,
        mut partitions: Vec<Partition>,
        (sockets, queues): (Vec<Vec<Arc<DatagramSocket>>>, Vec<Vec<Queue>>),
    ) -> Result<(), Error> {
        let workers = options.threads;
        let mut inboxes = Vec::with_capacity(workers);
        let mut posts = Vec::with_capacity(workers);
        for (sockets, queues) in sockets.into_iter().zip(queues) {
            let (carrier, waker) = transport::carrier(options)?;
            let waker = Arc::new(waker);
            let (inbox, receiver) = Inbox::new(Arc::clone(&waker));
            inboxes.push(inbox);
            posts.push(Post {
                carrier,
                waker,
                inbox: receiver,
                sockets,
                queues,
            });
        }
        let inboxes: Arc<[Inbox]> = inboxes.into();
        self.report.watch().wake_by(&inboxes);
        if workers > 1 && options.parts() == 1 {
            let storage = Shared::new(hasher.clone(), partitions);
            for post in posts {
                self.start_worker(options, post, &inboxes, storage.clone())?;
            }
            return Ok(());
        }
        let share = partitions.len() / workers;
        let readers: Arc<[Box<[Reader]>]> = partitions
            .chunks(share)
            .map(|own| own.iter().filter_map(Partition::reader).collect())
            .collect();
        for (worker, post) in (0..).zip(posts) {
            let own = partitions.drain(..share).collect();
            let own = Owned::new(hasher.clone(), own, worker, workers);
            if workers > 1 && options.access == Access::Crew {
                let storage = Concurrent::new(hasher.clone(), own, Arc::clone(&readers));
                self.start_worker(options, post, &inboxes, storage)?;
            } else {
                self.start_worker(options, post, &inboxes, own)?;
            }
        }
        Ok(())
    }

    fn start_worker<S: Storage + Send + 'static>(
        &mut self,
        options: &Options,
        post: Post,
        inboxes: &Arc<[Inbox]>,
        storage: S,
    ) -> Result<(), Error> {
        let index = self.workers.len();
        let common = Common {
            index,
            waker: post.waker,
            inbox: post.inbox,
            sockets: post.sockets.into_iter().map(Socket).collect(),
            queues: post.queues,
            inboxes: Arc::clone(inboxes),
            storage,
            report: Arc::clone(&self.report),
        };
        let run = transport::run(post.carrier, common);
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
                if go_on { run().map(Some) } else { Ok(None) }
            })
            .map_err(system("start a thread"))?;
        if let Ok(Err(source)) = is_pinned.recv() {
            return Err(Error::Setup {
                source,
                advice: "Choose others with --cores",
            });
        }
        self.workers.push(Handle {
            inbox: inboxes[index].clone(),
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
            |index| match had(self.workers.swap_remove(index).thread.join()) {
                Err(Error::Worker { reason }) => reason,
                _ => "it had nothing to do".to_owned(),
            },
        );
        Error::Worker { reason }
    }
}

/// What a worker's thread gave back.
fn had<T>(ended: std::thread::Result<io::Result<T>>) -> Result<T, Error> {
    let reason = match ended {
        Ok(Ok(had)) => return Ok(had),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it panicked".to_owned(),
    };
    Err(Error::Worker { reason })
}

/// Empty ones.
fn make_partitions(layout: &Layout, hasher: &Hasher) -> Result<Vec<Partition>, Error> {
    (0..layout.partitions)
        .map(|_| Partition::new(layout.config, hasher.clone()))
        .collect::<Result<_, _>>()
        .map_err(|source| Error::Memory { source })
}

impl Drop for Server {
    fn drop(&mut self) {
        // What a worker has to say, it said to `run` or `stop`.
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
