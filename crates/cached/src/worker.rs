use crate::any_connection::{AnyConnection, Arrival};
use crate::connection::SCRATCH_BYTES;
use crate::conversation::{BURST, Status, Tools};
use crate::counters::Count;
use crate::execute::Context;
use crate::memory_file::{self, MemoryFile};
use crate::report::Report;
use crate::storage::Storage;
use net::{Event, Interest, Poller, Waker};
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;
use wire::memcached::server::KeyRoom;

/// Events taken from the kernel at a time.
const EVENTS: usize = 256;

/// How often it is looked for connections that ask for nothing.
const IDLE_CHECK: Duration = Duration::from_secs(1);

/// The token of the waker; connections have small ones.
pub(crate) const WAKE: u64 = u64::MAX;

/// The buffer for answers is cut back to what a burst of small answers takes when it has grown beyond this.
const ANSWERS_KEPT_BYTES_MAX: usize = 4 << 20;

/// What a worker is asked to do, beside what its clients ask for.
pub(crate) enum Message {
    /// Take on a client.
    Serve(Arrival),
    /// Keep the items in a file, tell how that went, and end.
    Save(Arc<MemoryFile>, Sender<Result<(), memory_file::Error>>),
    /// Tell the general statistics, name and value.
    Tell(Sender<Vec<(String, String)>>),
}

/// A thread's share of the connections.
pub(crate) struct Worker<S> {
    pub index: usize,
    pub poller: Poller,
    pub waker: Arc<Waker>,
    /// The worker ends when nobody can send to it any more.
    pub inbox: Receiver<Message>,
    pub storage: S,
    pub report: Arc<Report>,
}

impl<S: Storage> Worker<S> {
    /// Serve until the inbox is closed.
    pub fn run(mut self) -> io::Result<()> {
        let mut connections = Connections::default();
        let mut scratch = vec![0; SCRATCH_BYTES];
        let mut out = Vec::with_capacity(SCRATCH_BYTES * 2);
        let mut rooms: [KeyRoom; BURST] = std::array::from_fn(|_| KeyRoom::default());
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        let report = Arc::clone(&self.report);
        let counters = report.counters(self.index);
        let clock = report.clock();
        let idle_seconds_max = report.options().idle_seconds_max;
        // Handshakes have a time of their own.
        let is_timed = idle_seconds_max > 0 || report.tls().is_some();
        let timeout = is_timed.then_some(IDLE_CHECK);
        let mut checked_at = clock.now();
        loop {
            events.clear();
            match self.poller.wait(timeout) {
                Ok(ready) => events.extend_from_slice(ready),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let mut woken = false;
            let now = clock.now();
            let mut tools = Tools {
                context: Context {
                    storage: &mut self.storage,
                    counters,
                    clock,
                    now,
                    report: &report,
                },
                scratch: &mut scratch,
                out: &mut out,
                rooms: &mut rooms,
            };
            for event in &events {
                let token = event.token();
                if token == WAKE {
                    woken = true;
                    continue;
                }
                // An earlier event of this batch may have ended it.
                let Some(connection) = connections.get(token) else {
                    continue;
                };
                let status = connection.advance(&mut tools);
                let watched = connection
                    .changed_interest(status)
                    .map_or(Ok(()), |interest| {
                        self.poller.modify(connection.stream(), token, interest)
                    });
                if status == Status::Ended || watched.is_err() {
                    connections.remove(token);
                    counters.add(Count::Closed, 1);
                }
            }
            if timeout.is_some() && now != checked_at {
                checked_at = now;
                connections.remove_over_time(idle_seconds_max, now, |count| {
                    counters.add(count, 1);
                    counters.add(Count::Closed, 1);
                });
            }
            if out.capacity() > ANSWERS_KEPT_BYTES_MAX {
                out.shrink_to(SCRATCH_BYTES * 2);
            }
            // Only now, so that no event of this batch meets a newcomer under the token of one that ended.
            if woken && !self.read_inbox(&mut connections)? {
                return Ok(());
            }
        }
    }

    /// Do what the inbox says; false when there will be no more.
    fn read_inbox(&mut self, connections: &mut Connections) -> io::Result<bool> {
        self.waker.reset();
        loop {
            match self.inbox.try_recv() {
                Ok(Message::Serve(arrival)) => self.take_on(arrival, connections),
                Ok(Message::Tell(whom)) => {
                    // Whoever asked may have stopped waiting.
                    _ = whom.send(self.statistics());
                }
                Ok(Message::Save(file, whom)) => {
                    _ = whom.send(file.save(&mut self.storage, self.report.clock()));
                    return Ok(false);
                }
                Err(TryRecvError::Empty) => return Ok(true),
                Err(TryRecvError::Disconnected) => return Ok(false),
            }
        }
    }

    fn take_on(&self, arrival: Arrival, connections: &mut Connections) {
        let counters = self.report.counters(self.index);
        counters.add(Count::Opened, 1);
        let now = self.report.clock().now();
        let Some(connection) = AnyConnection::new(arrival, &self.report, now) else {
            counters.add(Count::Closed, 1);
            return;
        };
        let token = connections.insert(connection);
        if let Some(connection) = connections.get(token)
            && self
                .poller
                .add(connection.stream(), token, Interest::READ)
                .is_err()
        {
            // The kernel has no memory to watch it.
            connections.remove(token);
            counters.add(Count::Closed, 1);
        }
    }

    fn statistics(&mut self) -> Vec<(String, String)> {
        let mut statistics = Vec::new();
        let mut each = |name: &str, value: &dyn Display| {
            statistics.push((name.to_owned(), value.to_string()));
        };
        let now = self.report.clock().now();
        self.report.tell(b"", &mut self.storage, now, &mut each);
        statistics
    }
}

/// Connections by token.
#[derive(Default)]
struct Connections {
    slots: Vec<Option<AnyConnection>>,
    free: Vec<usize>,
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
    fn remove_over_time(&mut self, idle_seconds_max: u32, now: u32, mut each: impl FnMut(Count)) {
        for token in 0..self.slots.len() {
            let over = self.slots[token]
                .as_ref()
                .and_then(|connection| connection.is_over_time(idle_seconds_max, now));
            if let Some(count) = over {
                self.remove(token as u64);
                each(count);
            }
        }
    }

    fn remove(&mut self, token: u64) {
        if self.slots[token as usize].take().is_some() {
            self.free.push(token as usize);
        }
    }
}
