use crate::any_connection::{AnyConnection, Arrival};
use crate::connection::SCRATCH_BYTES;
use crate::conversation::{BURST, Status, Tools};
use crate::counters::Count;
use crate::datagrams::{Letter, Queue, Room, Socket};
use crate::execute::Context;
use crate::report::{Held, Report, held};
use crate::storage::Storage;
use crate::watch::Log;
use net::{Event, Interest, Poller, Waker};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::time::Duration;
use wire::memcached::server::KeyRoom;

/// Events taken from the kernel at a time.
const EVENTS: usize = 256;

/// How often it is looked for connections that ask for nothing.
pub(crate) const IDLE_CHECK: Duration = Duration::from_secs(1);

/// The token of the waker; connections have small ones.
pub(crate) const WAKE: u64 = u64::MAX;

/// The token of the first socket for datagrams.
const FIRST_SOCKET: u64 = 1 << 32;

/// The token of the first queue that is served past the kernel.
const FIRST_QUEUE: u64 = 1 << 33;

/// The buffer for answers is cut back to what a burst of small answers takes when it has grown beyond this.
pub(crate) const ANSWERS_KEPT_BYTES_MAX: usize = 4 << 20;

/// What a worker is asked to do, beside what its clients ask for.
pub(crate) enum Message {
    /// Take on a client.
    Serve(Arrival),
    /// Go on with a client whose next command another worker found to be for this one.
    Adopt(AnyConnection),
    /// Go on with a datagram, likewise.
    Forward(Box<Letter>),
    /// Send those who watch what there is for them.
    Deliver,
    /// Tell what it holds.
    Tell(Sender<Held>),
    /// End.
    End,
}

/// Where a worker is told something.
#[derive(Clone)]
pub(crate) struct Inbox {
    sender: Sender<Message>,
    waker: Arc<Waker>,
}

impl Inbox {
    /// An inbox that wakes a poller by `waker`, and its other end.
    pub fn new(waker: Arc<Waker>) -> (Self, Receiver<Message>) {
        let (sender, receiver) = mpsc::channel();
        (Self { sender, waker }, receiver)
    }

    /// Tell it. A worker that has ended is not told: the server is about to end, as `run` says why.
    pub fn send(&self, message: Message) {
        _ = self.sender.send(message);
        self.waker.wake();
    }
}

/// A thread's share of the connections, over epoll.
pub(crate) struct Worker<S> {
    pub index: usize,
    pub poller: Poller,
    pub waker: Arc<Waker>,
    pub inbox: Receiver<Message>,
    /// Where datagrams come.
    pub sockets: Vec<Socket>,
    /// Where they come past the kernel.
    pub queues: Vec<Queue>,
    /// Everybody's, by number.
    pub inboxes: Arc<[Inbox]>,
    pub storage: S,
    pub report: Arc<Report>,
}

/// What a worker has, however it waits.
pub(crate) struct Common<S> {
    pub index: usize,
    pub waker: Arc<Waker>,
    pub inbox: Receiver<Message>,
    /// Where datagrams come.
    pub sockets: Vec<Socket>,
    /// Where they come past the kernel.
    pub queues: Vec<Queue>,
    /// Everybody's, by number.
    pub inboxes: Arc<[Inbox]>,
    pub storage: S,
    pub report: Arc<Report>,
}

impl<S: Storage> Worker<S> {
    pub fn new(poller: Poller, common: Common<S>) -> Self {
        let Common {
            index,
            waker,
            inbox,
            sockets,
            queues,
            inboxes,
            storage,
            report,
        } = common;
        Self {
            index,
            poller,
            waker,
            inbox,
            sockets,
            queues,
            inboxes,
            storage,
            report,
        }
    }

    /// Serve until it is told to end, and give back what it had.
    pub fn run(mut self) -> io::Result<S> {
        let mut connections = Connections::default();
        let mut buffers = Buffers::default();
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        let clock = self.report.clock();
        let idle_seconds_max = self.report.options().idle_seconds_max;
        // Handshakes have a time of their own.
        let is_timed = idle_seconds_max > 0 || self.report.tls().is_some();
        let timeout = is_timed.then_some(IDLE_CHECK);
        let mut checked_at = clock.now();
        for (token, socket) in (FIRST_SOCKET..).zip(&self.sockets) {
            self.poller.add(&*socket.0, token, Interest::READ)?;
        }
        for (token, queue) in (FIRST_QUEUE..).zip(&self.queues) {
            self.poller.add(queue, token, Interest::READ)?;
        }
        loop {
            let watch = self.report.watch();
            buffers.log.finish(watch, &mut self.storage, clock);
            buffers.shrink();
            events.clear();
            match self.poller.wait(timeout) {
                Ok(ready) => events.extend_from_slice(ready),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let mut woken = false;
            let now = clock.now();
            buffers.log.begin(self.report.watch(), &mut self.storage);
            for event in &events {
                if event.token() == WAKE {
                    woken = true;
                } else if let Some(index) = event.token().checked_sub(FIRST_QUEUE) {
                    self.serve_queue(index as usize, now, &mut buffers);
                } else if let Some(index) = event.token().checked_sub(FIRST_SOCKET) {
                    self.serve_datagrams(index as usize, now, &mut buffers);
                } else {
                    self.serve(
                        event.token(),
                        now,
                        &mut connections,
                        &mut buffers,
                        |one, tools| one.advance(tools),
                    );
                }
            }
            if timeout.is_some() && now != checked_at {
                checked_at = now;
                let counters = self.report.counters(self.index);
                let log = &mut buffers.log;
                connections.remove_over_time(idle_seconds_max, now, |count, connection| {
                    counters.add(count, 1);
                    counters.add(Count::Closed, 1);
                    let reason = match count {
                        Count::IdleKicks => "idle_timeout",
                        _ => "error",
                    };
                    log.closed(self.report.watch(), reason, || connection.seat().client());
                });
            }
            // Only now, so that no event of this batch meets a newcomer under the token of one that ended.
            if woken && !self.read_inbox(&mut connections, &mut buffers) {
                return Ok(self.storage);
            }
        }
    }

    /// Let a connection do a piece of work, and see to what it waits for then.
    #[inline]
    fn serve(
        &mut self,
        token: u64,
        now: u32,
        connections: &mut Connections,
        buffers: &mut Buffers,
        work: impl FnOnce(&mut AnyConnection, &mut Tools<'_, S>) -> Status,
    ) {
        // An earlier event of this batch may have ended it.
        let Some(connection) = connections.get(token) else {
            return;
        };
        let counters = self.report.counters(self.index);
        let mut tools = buffers.tools(self.index, &mut self.storage, &self.report, now);
        let status = work(connection, &mut tools);
        let has_watcher = tools.context.has_watcher;
        if has_watcher {
            connection.seat().set_watching(true);
        }
        let watched = connection
            .changed_interest(status)
            .map_or(Ok(()), |interest| {
                self.poller.modify(connection.stream(), token, interest)
            });
        if let Status::Elsewhere(worker) = status {
            if let Some(connection) = connections.take(token) {
                // It is watched there from now on. If the kernel would not let go of it, events for nobody come here.
                _ = self.poller.remove(connection.stream());
                counters.add(Count::Moves, 1);
                self.inboxes[worker].send(Message::Adopt(connection));
            }
        } else if status == Status::Ended || watched.is_err() {
            if let Some(connection) = connections.take(token) {
                let client = || connection.seat().client();
                let watch = self.report.watch();
                buffers.log.closed(watch, "normal", client);
            }
            counters.add(Count::Closed, 1);
        } else if has_watcher {
            connections.watch(token);
        }
    }

    fn serve_datagrams(&mut self, index: usize, now: u32, buffers: &mut Buffers) {
        let mut room = std::mem::take(&mut buffers.datagrams);
        let mut tools = buffers.tools(self.index, &mut self.storage, &self.report, now);
        let (inboxes, counters) = (&self.inboxes, self.report.counters(self.index));
        self.sockets[index].serve(
            &mut tools,
            room.get_or_insert_default(),
            |worker, letter| {
                counters.add(Count::Moves, 1);
                inboxes[worker].send(Message::Forward(Box::new(letter)));
            },
        );
        buffers.datagrams = room;
    }

    fn serve_queue(&mut self, index: usize, now: u32, buffers: &mut Buffers) {
        let mut room = std::mem::take(&mut buffers.datagrams);
        let mut tools = buffers.tools(self.index, &mut self.storage, &self.report, now);
        let (inboxes, counters) = (&self.inboxes, self.report.counters(self.index));
        self.queues[index].serve(
            &mut tools,
            &mut room.get_or_insert_default().answers,
            |worker, letter| {
                counters.add(Count::Moves, 1);
                inboxes[worker].send(Message::Forward(Box::new(letter)));
            },
        );
        buffers.datagrams = room;
    }

    fn take_letter(&mut self, letter: Letter, now: u32, buffers: &mut Buffers) {
        let mut room = std::mem::take(&mut buffers.datagrams);
        let mut tools = buffers.tools(self.index, &mut self.storage, &self.report, now);
        let (inboxes, counters) = (&self.inboxes, self.report.counters(self.index));
        letter.arrive(
            &mut tools,
            room.get_or_insert_default(),
            |worker, letter| {
                counters.add(Count::Moves, 1);
                inboxes[worker].send(Message::Forward(Box::new(letter)));
            },
        );
        buffers.datagrams = room;
    }

    /// Do what the inbox says; false at the end.
    fn read_inbox(&mut self, connections: &mut Connections, buffers: &mut Buffers) -> bool {
        self.waker.reset();
        let now = self.report.clock().now();
        loop {
            match self.inbox.try_recv() {
                Ok(Message::Serve(arrival)) => {
                    let counters = self.report.counters(self.index);
                    counters.add(Count::Opened, 1);
                    let watch = self.report.watch();
                    buffers.log.opened(watch, || arrival.client());
                    match AnyConnection::new(arrival, counters.roster(), &self.report, now) {
                        Some(connection) => {
                            self.take_on(connection, connections);
                        }
                        None => counters.add(Count::Closed, 1),
                    }
                }
                Ok(Message::Adopt(connection)) => {
                    if let Some(token) = self.take_on(connection, connections) {
                        self.serve(token, now, connections, buffers, |one, tools| {
                            one.arrive(tools)
                        });
                    }
                }
                Ok(Message::Deliver) => {
                    for token in connections.watching() {
                        self.serve(token, now, connections, buffers, |one, tools| {
                            one.deliver(tools)
                        });
                    }
                }
                Ok(Message::Forward(letter)) => self.take_letter(*letter, now, buffers),
                Ok(Message::Tell(whom)) => {
                    // Whoever asked may have stopped waiting.
                    _ = whom.send(held(&mut self.storage, now));
                }
                Ok(Message::End) | Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => return true,
            }
        }
    }

    /// Watch a connection, and say under which token.
    fn take_on(&self, connection: AnyConnection, connections: &mut Connections) -> Option<u64> {
        let token = connections.insert(connection);
        let connection = connections.get(token)?;
        let added = self.poller.add(connection.stream(), token, Interest::READ);
        if added.is_err() {
            // The kernel has no memory to watch it.
            connections.take(token);
            self.report.counters(self.index).add(Count::Closed, 1);
            return None;
        }
        Some(token)
    }
}

/// What all connections of a worker share.
pub(crate) struct Buffers {
    scratch: Vec<u8>,
    out: Vec<u8>,
    rooms: [KeyRoom; BURST],
    log: Log,
    /// Made when a datagram comes.
    datagrams: Option<Box<Room>>,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            scratch: vec![0; SCRATCH_BYTES],
            out: Vec::with_capacity(SCRATCH_BYTES * 2),
            rooms: std::array::from_fn(|_| KeyRoom::default()),
            log: Log::default(),
            datagrams: None,
        }
    }
}

impl Buffers {
    /// What is lent to whatever works for a client.
    pub fn tools<'w, S>(
        &'w mut self,
        worker: usize,
        storage: &'w mut S,
        report: &'w Report,
        now: u32,
    ) -> Tools<'w, S> {
        Tools {
            context: Context {
                worker,
                storage,
                counters: report.counters(worker),
                clock: report.clock(),
                now,
                report,
                tour: None,
                client: None,
                log: &mut self.log,
                watcher: None,
                has_watcher: false,
            },
            scratch: &mut self.scratch,
            out: &mut self.out,
            rooms: &mut self.rooms,
        }
    }

    /// Give back what a burst of large answers took.
    fn shrink(&mut self) {
        if self.out.capacity() > ANSWERS_KEPT_BYTES_MAX {
            self.out.shrink_to(SCRATCH_BYTES * 2);
        }
    }
}

/// Connections by token.
#[derive(Default)]
struct Connections {
    slots: Vec<Option<AnyConnection>>,
    free: Vec<usize>,
    /// Those that watch, and some that did.
    watchers: Vec<u64>,
}

impl Connections {
    fn get(&mut self, token: u64) -> Option<&mut AnyConnection> {
        self.slots.get_mut(token as usize)?.as_mut()
    }

    fn insert(&mut self, connection: AnyConnection) -> u64 {
        let connection = Some(connection);
        if let Some(index) = self.free.pop() {
            self.slots[index] = connection;
            index as u64
        } else {
            self.slots.push(connection);
            self.slots.len() as u64 - 1
        }
    }

    /// Close those whose time is over at second `now`; `each` learns as what each of them counts.
    fn remove_over_time(
        &mut self,
        idle_seconds_max: u32,
        now: u32,
        mut each: impl FnMut(Count, &AnyConnection),
    ) {
        for token in 0..self.slots.len() {
            let over = self.slots[token]
                .as_ref()
                .and_then(|connection| connection.is_over_time(idle_seconds_max, now));
            if let Some(count) = over
                && let Some(connection) = self.take(token as u64)
            {
                each(count, &connection);
            }
        }
    }

    /// Have it among those that lines are delivered to.
    fn watch(&mut self, token: u64) {
        if !self.watchers.contains(&token) {
            self.watchers.push(token);
        }
    }

    /// Those that lines are delivered to.
    fn watching(&mut self) -> Vec<u64> {
        let slots = &self.slots;
        self.watchers.retain(|&token| {
            let connection = slots.get(token as usize).and_then(Option::as_ref);
            connection.is_some_and(AnyConnection::is_watching)
        });
        self.watchers.clone()
    }

    fn take(&mut self, token: u64) -> Option<AnyConnection> {
        let connection = self.slots.get_mut(token as usize)?.take()?;
        self.free.push(token as usize);
        Some(connection)
    }
}
