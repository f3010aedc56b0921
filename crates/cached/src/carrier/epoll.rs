use super::connection::Connection;
use super::connections::{Arrival, ClientState, Connections};
use super::datagrams::{Buffers, ForwardedDatagram, Source};
use super::inbox::{Inbox, Message};
use super::worker::Carrier;
use crate::engine::{Count, Counters, Storage};
use crate::session::batch::{Address, Returned};
use crate::session::{Status, Tools};
use net::{Events, Interest, Poller};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Events taken from the kernel at a time.
const EVENTS: usize = 256;

/// The token of the waker; connections have small ones.
pub(crate) const WAKE: u64 = u64::MAX;

/// The token of the first source of datagrams.
const FIRST_SOURCE: u64 = 1 << 32;

/// Told by epoll what is ready, a system call to receive and one to send.
pub(crate) struct Epoll {
    poller: Poller,
    events: Events,
    connections: Connections<Connection>,
    /// Tokens to be used again.
    free: Vec<u64>,
    /// Connections that it polled so far.
    polled: u64,
    sources: Vec<Source>,
    /// Made when a datagram comes.
    datagrams: Option<Box<Buffers>>,
    /// Of all workers, by number.
    inboxes: Arc<[Inbox]>,
}

impl Epoll {
    pub fn new(poller: Poller, sources: Vec<Source>, inboxes: Arc<[Inbox]>) -> Self {
        Self {
            poller,
            events: Events::with_capacity(EVENTS),
            connections: Connections::default(),
            free: Vec::new(),
            polled: 0,
            sources,
            datagrams: None,
            inboxes,
        }
    }

    /// Let a connection do a piece of work, and see to what it waits for then.
    #[inline]
    fn serve_connection<S: Storage>(
        &mut self,
        token: u64,
        tools: &mut Tools<'_, S>,
        work: impl FnOnce(&mut Connection, &mut Tools<'_, S>) -> Status,
    ) {
        // An earlier event of this batch may have ended it.
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        let status = work(connection, tools);
        let polled = connection
            .changed_interest(status)
            .map_or(Ok(()), |interest| {
                self.poller.modify(connection.stream(), token, interest)
            });
        if let Status::OtherWorker(worker) = status {
            self.move_to(worker, token, tools.context.counters);
        } else if status == Status::Ended || polled.is_err() {
            self.close(token, tools);
        }
    }

    fn move_to(&mut self, worker: usize, token: u64, counters: &Counters) {
        if let Some(connection) = self.take(token) {
            // It is polled there from now on. If the kernel would not let go of it, its events find no connection here.
            _ = self.poller.remove(connection.stream());
            counters.add(Count::Moves, 1);
            self.inboxes[worker].send(Message::Connection(connection));
        }
    }

    fn take(&mut self, token: u64) -> Option<Box<Connection>> {
        let connection = self.connections.take(token)?;
        self.free.push(token);
        Some(connection)
    }

    /// Poll a connection, and say under which token.
    fn insert(&mut self, connection: Box<Connection>) -> Option<u64> {
        let next = self.connections.next_token();
        let token = self.free.pop().unwrap_or(next);
        let connection = self.connections.insert(token, connection);
        self.polled += 1;
        connection.output.address = Some(Address {
            token,
            number: self.polled,
        });
        let interest = connection.first_interest();
        let added = self.poller.add(connection.stream(), token, interest);
        if added.is_err() {
            // The kernel has no memory to poll it.
            self.take(token);
            return None;
        }
        Some(token)
    }
}

/// What hands a datagram to another worker.
fn forward<'f>(
    inboxes: &'f [Inbox],
    counters: &'f Counters,
) -> impl FnMut(usize, ForwardedDatagram) + 'f {
    move |worker, datagram| {
        let count = match inboxes[worker].forward(datagram) {
            true => Count::Moves,
            false => Count::DatagramsNotForwarded,
        };
        counters.add(count, 1);
    }
}

impl Carrier for Epoll {
    type Connection = Connection;

    fn start(&mut self) -> io::Result<()> {
        for (token, source) in (FIRST_SOURCE..).zip(&self.sources) {
            self.poller.add(source, token, Interest::READ)?;
        }
        Ok(())
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let events = self.poller.wait(&mut self.events, timeout)?;
        Ok(!events.is_empty())
    }

    fn serve<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> io::Result<bool> {
        let mut is_woken = false;
        let events = std::mem::take(&mut self.events);
        for event in &*events {
            let token = event.token();
            if token < FIRST_SOURCE {
                let is_last = event.is_read_closed();
                self.serve_connection(token, tools, |one, tools| one.advance(is_last, tools));
            } else if token == WAKE {
                is_woken = true;
            } else if let Some(source) = self.sources.get_mut((token - FIRST_SOURCE) as usize) {
                let forward = forward(&self.inboxes, tools.context.counters);
                source.serve(tools, self.datagrams.get_or_insert_default(), forward);
            }
        }
        self.events = events;
        Ok(is_woken)
    }

    fn connections(&mut self) -> &mut Connections<Connection> {
        &mut self.connections
    }

    fn open<S: Storage>(
        &mut self,
        arrival: Arrival,
        client: ClientState,
        tools: &mut Tools<'_, S>,
    ) -> bool {
        let connection = Connection::new(arrival, client, &tools.context.state.options);
        connection.is_some_and(|connection| self.insert(Box::new(connection)).is_some())
    }

    fn close<S: Storage>(&mut self, token: u64, tools: &mut Tools<'_, S>) {
        if self.take(token).is_some() {
            tools.context.counters.add(Count::Closed, 1);
        }
    }

    fn resume<S: Storage>(&mut self, connection: Box<Connection>, tools: &mut Tools<'_, S>) {
        match self.insert(connection) {
            Some(token) => self.serve_connection(token, tools, Connection::resume),
            None => tools.context.counters.add(Count::Closed, 1),
        }
    }

    fn take_back<S: Storage>(&mut self, returned: &Returned<'_>, tools: &mut Tools<'_, S>) {
        let Address { token, .. } = returned.address;
        let connection = self.connections.get(token);
        // Another may have its token by now.
        if connection.is_some_and(|one| one.output.address == Some(returned.address)) {
            self.serve_connection(token, tools, |one, tools| one.take_back(returned, tools));
        }
    }

    fn resume_datagram<S: Storage>(
        &mut self,
        datagram: ForwardedDatagram,
        tools: &mut Tools<'_, S>,
    ) {
        let forward = forward(&self.inboxes, tools.context.counters);
        datagram.resume(tools, self.datagrams.get_or_insert_default(), forward);
    }
}
