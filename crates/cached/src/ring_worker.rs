use crate::conversation::{BURST, Tools};
use crate::counters::{Count, Counters};
use crate::execute::Context;
use crate::report::held;
use crate::ring_connection::{Connection, Next, Output};
use crate::storage::Storage;
use crate::watch::Log;
use crate::worker::{ANSWERS_KEPT_BYTES_MAX, Common, IDLE_CHECK, Message};
use net::{Completion, Ring, SendMode, Stream, Unavailable};
use std::io;
use std::sync::mpsc::TryRecvError;
use wire::memcached::server::KeyRoom;

/// Buffers that all connections of a worker receive into. The kernel uses them in turn, so all of them together should
/// stay in the processor's cache; and it may fill 32 for one connection before it looks at another, all of which are held
/// if the client does not take its answers.
const BUFFERS: u16 = 64;
const BUFFER_BYTES: u32 = 8 << 10;

/// Answers are handed to the kernel when there are so many bytes of them, while they are still in the cache.
const BATCH_BYTES_MAX: usize = 128 << 10;

/// A thread's share of the connections, over io_uring.
pub(crate) struct RingWorker<S> {
    pub ring: Ring,
    pub common: Common<S>,
}

/// A ring such as a worker needs.
pub(crate) fn ring() -> Result<Ring, Unavailable> {
    Ring::new(BUFFERS, BUFFER_BYTES)
}

impl<S: Storage> RingWorker<S> {
    /// Serve until it is told to end, and give back what it had.
    pub fn run(self) -> io::Result<S> {
        let Self { mut ring, common } = self;
        let Common {
            index,
            waker,
            inbox,
            mut storage,
            report,
            ..
        } = common;
        ring.enable()?;
        let mut out = Vec::new();
        let mut log = Log::default();
        let mut rooms: [KeyRoom; BURST] = std::array::from_fn(|_| KeyRoom::default());
        let counters = report.counters(index);
        let clock = report.clock();
        let idle_seconds_max = report.options().idle_seconds_max;
        let timeout = (idle_seconds_max > 0).then_some(IDLE_CHECK);
        let mut checked_at = clock.now();
        let mut clients = Clients {
            ring,
            connections: Vec::new(),
            output: Output::default(),
            queue: Vec::new(),
            watchers: Vec::new(),
            counters,
        };
        loop {
            log.finish(report.watch(), &mut storage, clock);
            if out.capacity() > ANSWERS_KEPT_BYTES_MAX {
                out = Vec::new();
            }
            clients.ring.wait(timeout)?;
            clients.reclaim();
            log.begin(report.watch(), &mut storage);
            let mut woken = false;
            let now = clock.now();
            let mut tools = Tools {
                context: Context {
                    worker: index,
                    tour: None,
                    client: None,
                    log: &mut log,
                    watcher: None,
                    has_watcher: false,
                    storage: &mut storage,
                    counters,
                    clock,
                    now,
                    report: &report,
                },
                scratch: &mut [],
                out: &mut out,
                rooms: &mut rooms,
            };
            while let Some(completion) = clients.ring.completion() {
                woken |= matches!(completion, Completion::Woken);
                clients.follow(completion, &mut tools);
                if clients.output.waiting_bytes >= BATCH_BYTES_MAX {
                    clients.send_queued(&mut tools);
                    clients.ring.submit()?;
                    clients.reclaim();
                }
            }
            clients.send_queued(&mut tools);
            if timeout.is_some() && now != checked_at {
                checked_at = now;
                clients.remove_idle(idle_seconds_max, now, &mut tools);
            }
            if !woken {
                continue;
            }
            waker.reset();
            loop {
                match inbox.try_recv() {
                    // Nothing is encrypted: see `transport::choose`.
                    Ok(Message::Serve(arrival)) => {
                        tools
                            .context
                            .log
                            .opened(report.watch(), || arrival.client());
                        let seat = counters.roster().seat(arrival.client(), now);
                        clients.take_on(arrival.stream, Connection::new(seat, &report));
                    }
                    Ok(Message::Tell(whom)) => {
                        // Whoever asked may have stopped waiting.
                        _ = whom.send(held(tools.context.storage, now));
                    }
                    Ok(Message::Deliver) => {
                        clients.deliver(&mut tools);
                        clients.send_queued(&mut tools);
                    }
                    // All workers have the same keys, and there are no datagrams: see `transport::choose`.
                    Ok(Message::Adopt(_) | Message::Forward(_)) => {}
                    Err(TryRecvError::Empty) => break,
                    Ok(Message::End) | Err(TryRecvError::Disconnected) => {
                        // Those who were answered get their answers. Where the kernel takes them no more, there are
                        // still the items.
                        _ = clients.ring.submit();
                        return Ok(storage);
                    }
                }
            }
        }
    }
}

/// Connections by token, and the ring that has their streams.
struct Clients<'w> {
    ring: Ring,
    connections: Vec<Option<Box<Connection>>>,
    output: Output,
    /// Those that have answers.
    queue: Vec<u64>,
    /// Those that watch, and some that did.
    watchers: Vec<u64>,
    counters: &'w Counters,
}

impl Clients<'_> {
    fn take_on(&mut self, stream: Stream, connection: Connection) {
        self.counters.add(Count::Opened, 1);
        let token = self.ring.add(stream);
        let index = token as usize;
        if index >= self.connections.len() {
            self.connections.resize_with(index + 1, || None);
        }
        let connection = self.connections[index].insert(Box::new(connection));
        connection.is_receiving = true;
        self.ring.receive(token);
    }

    /// Do what a completion makes possible.
    fn follow<S: Storage>(&mut self, completion: Completion, tools: &mut Tools<'_, S>) {
        let token = match completion {
            Completion::Received { token, received } => {
                // It may be gone, and these its last words.
                if let Some(connection) = get(&mut self.connections, token) {
                    let (bytes, stream) =
                        (self.ring.bytes(&received), self.ring.idle_stream(token));
                    connection.hear(bytes, stream, tools, &mut self.output);
                }
                self.ring.give_back(received);
                token
            }
            Completion::Sent { token, bytes, sent } => {
                let Some(connection) = get(&mut self.connections, token) else {
                    return;
                };
                let Ok(sent) = sent else {
                    return self.remove(token, "error", tools);
                };
                let (stream, output) = (self.ring.idle_stream(token), &mut self.output);
                let rest = connection.told_sent(bytes, sent, stream, tools, output);
                if let Some((bytes, from)) = rest {
                    self.send(token, (bytes, from), SendMode::Patient, tools);
                }
                token
            }
            Completion::Ended { token, error: None } => {
                if let Some(connection) = get(&mut self.connections, token) {
                    connection.fall_silent(self.ring.idle_stream(token));
                }
                token
            }
            Completion::Ended { token, .. } => return self.remove(token, "error", tools),
            // Closes it.
            Completion::Removed { .. } | Completion::Woken => return,
        };
        if std::mem::take(&mut tools.context.has_watcher)
            && let Some(connection) = get(&mut self.connections, token)
        {
            connection.seat().set_watching(true);
            if !self.watchers.contains(&token) {
                self.watchers.push(token);
            }
        }
        self.go_on(token, tools);
    }

    /// Send those who watch what there is for them.
    fn deliver<S: Storage>(&mut self, tools: &mut Tools<'_, S>) {
        let connections = &mut self.connections;
        self.watchers
            .retain(|&token| get(connections, token).is_some_and(|one| one.is_watching()));
        for token in self.watchers.clone() {
            let connection = get(&mut self.connections, token);
            if let Some(connection) = connection {
                connection.deliver(self.ring.idle_stream(token), tools, &mut self.output);
            }
            self.go_on(token, tools);
        }
    }

    /// Do what comes next for a connection to which something happened.
    fn go_on<S: Storage>(&mut self, token: u64, tools: &mut Tools<'_, S>) {
        let Some(connection) = get(&mut self.connections, token) else {
            return;
        };
        match connection.next() {
            Next::Wait => {}
            Next::Close => return self.remove(token, "normal", tools),
            Next::Send if connection.is_queued => {}
            Next::Send => {
                connection.is_queued = true;
                self.queue.push(token);
            }
        }
        let wants_input = connection.wants_input();
        if connection.is_receiving != wants_input {
            connection.is_receiving = wants_input;
            if wants_input {
                self.ring.receive(token);
            } else {
                self.ring.pause(token);
            }
        }
    }

    /// Give the ring all answers that there are.
    fn send_queued<S: Storage>(&mut self, tools: &mut Tools<'_, S>) {
        let mut queue = std::mem::take(&mut self.queue);
        for token in queue.drain(..) {
            let Some(connection) = get(&mut self.connections, token) else {
                continue;
            };
            connection.is_queued = false;
            let (answers, mode) = connection.take_answers(self.counters);
            self.send(token, (answers, 0), mode, tools);
        }
        self.queue = queue;
        self.output.waiting_bytes = 0;
    }

    fn send<S: Storage>(
        &mut self,
        token: u64,
        (bytes, from): (Vec<u8>, usize),
        mode: SendMode,
        tools: &mut Tools<'_, S>,
    ) {
        // It is sending nothing else: it would not be here. If it were, its client must not get half of its answers.
        if self.ring.send(token, bytes, from, mode).is_err() {
            self.remove(token, "error", tools);
        }
    }

    /// Take the buffers of answers that were sent.
    fn reclaim(&mut self) {
        for buffer in self.ring.sent() {
            self.output.keep(buffer);
        }
    }

    /// Close those that were idle for `seconds` at second `now`.
    fn remove_idle<S: Storage>(&mut self, seconds: u32, now: u32, tools: &mut Tools<'_, S>) {
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            if connection
                .as_ref()
                .is_some_and(|connection| connection.is_idle(seconds, now))
            {
                self.remove(index as u64, "idle_timeout", tools);
                self.counters.add(Count::IdleKicks, 1);
            }
        }
    }

    fn remove<S: Storage>(&mut self, token: u64, reason: &str, tools: &mut Tools<'_, S>) {
        let connection = self.connections.get_mut(token as usize);
        if let Some(connection) = connection.and_then(Option::take) {
            let Context { log, report, .. } = &mut tools.context;
            log.closed(report.watch(), reason, || connection.seat().client());
            self.ring.remove(token);
            self.counters.add(Count::Closed, 1);
        }
    }
}

fn get(connections: &mut [Option<Box<Connection>>], token: u64) -> Option<&mut Connection> {
    connections.get_mut(token as usize)?.as_deref_mut()
}
