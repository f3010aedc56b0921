mod connection;

use self::connection::{Next, Output, RingConnection};
use super::connection::Connection;
use super::connections::{Arrival, ClientState, Connections};
use super::datagrams::ForwardedDatagram;
use super::worker::Carrier;
use crate::engine::{Count, Storage};
use crate::session::Tools;
use crate::session::batch::Returned;
use net::{Completion, Ring, SendMode, Unavailable};
use std::io;
use std::time::Duration;

/// Buffers that all connections of a worker receive into. The kernel uses them in turn, so all of them together should
/// stay in the processor's cache; and it may fill 32 for one connection before it looks at another, all of which are held
/// if the client does not take its replies.
const BUFFERS: u16 = 64;
const BUFFER_BYTES: u32 = 8 << 10;

/// Replies are handed to the kernel when there are so many bytes of them, while they are still in the cache.
const BATCH_BYTES_MAX: usize = 128 << 10;

/// A ring such as a worker needs.
pub(super) fn ring() -> Result<Ring, Unavailable> {
    Ring::new(BUFFERS, BUFFER_BYTES)
}

/// All of it by io_uring, many requests to the kernel at a time. It serves no datagrams, encrypts nothing and moves no
/// connections: [`choose`](super::choose) sees to that.
pub(crate) struct RingCarrier {
    ring: Ring,
    connections: Connections<RingConnection>,
    output: Output,
    /// Connections that have replies.
    queue: Vec<u64>,
}

impl RingCarrier {
    pub fn new(ring: Ring) -> Self {
        Self {
            ring,
            connections: Connections::default(),
            output: Output::default(),
            queue: Vec::new(),
        }
    }

    /// Do what a completion makes possible.
    fn follow<S: Storage>(&mut self, completion: Completion, tools: &mut Tools<'_, S>) {
        let token = match completion {
            Completion::Received { token, received } => {
                // It may be gone, and these its last bytes.
                if let Some(connection) = self.connections.get(token) {
                    let bytes = self.ring.bytes(&received);
                    let stream = self.ring.idle_stream(token);
                    connection.receive(bytes, stream, tools, &mut self.output);
                }
                self.ring.give_back(received);
                token
            }
            Completion::Sent { token, bytes, sent } => {
                let Some(connection) = self.connections.get(token) else {
                    return;
                };
                let Ok(sent) = sent else {
                    return self.close(token, tools);
                };
                let (stream, output) = (self.ring.idle_stream(token), &mut self.output);
                let rest = connection.finish_send(bytes, sent, stream, tools, output);
                if let Some((bytes, from)) = rest {
                    self.send(token, (bytes, from), SendMode::Patient, tools);
                }
                token
            }
            Completion::Ended { token, error: None } => {
                if let Some(connection) = self.connections.get(token) {
                    connection.end_input();
                }
                token
            }
            Completion::Ended { token, .. } => return self.close(token, tools),
            // Closes it.
            Completion::Removed { .. } | Completion::Woken => return,
        };
        self.go_on(token, tools);
    }

    /// Do what comes next for a connection to which something happened.
    fn go_on<S: Storage>(&mut self, token: u64, tools: &mut Tools<'_, S>) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        match connection.next() {
            Next::Wait => {}
            Next::Close => return self.close(token, tools),
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

    /// Give the ring all replies that there are.
    fn send_queued<S: Storage>(&mut self, tools: &mut Tools<'_, S>) {
        let mut queue = std::mem::take(&mut self.queue);
        for token in queue.drain(..) {
            let Some(connection) = self.connections.get(token) else {
                continue;
            };
            connection.is_queued = false;
            let (replies, mode) = connection.take_replies(tools.context.counters);
            self.send(token, (replies, 0), mode, tools);
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
        // It is sending nothing else: it would not be here. If it were, its client must not get half of its replies.
        if self.ring.send(token, bytes, from, mode).is_err() {
            self.close(token, tools);
        }
    }
}

impl Carrier for RingCarrier {
    type Connection = RingConnection;

    fn start(&mut self) -> io::Result<()> {
        self.ring.enable()
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        self.ring.wait(timeout)?;
        Ok(true)
    }

    fn serve<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> io::Result<bool> {
        let mut is_woken = false;
        while let Some(completion) = self.ring.completion() {
            is_woken |= matches!(completion, Completion::Woken);
            self.follow(completion, tools);
            if self.output.waiting_bytes >= BATCH_BYTES_MAX {
                self.send_queued(tools);
                self.ring.submit()?;
            }
        }
        self.send_queued(tools);
        Ok(is_woken)
    }

    fn connections(&mut self) -> &mut Connections<RingConnection> {
        &mut self.connections
    }

    fn open<S: Storage>(
        &mut self,
        arrival: Arrival,
        client: ClientState,
        _tools: &mut Tools<'_, S>,
    ) -> bool {
        let token = self.ring.add(arrival.stream);
        let connection = Box::new(RingConnection::new(client));
        self.connections.insert(token, connection).is_receiving = true;
        self.ring.receive(token);
        true
    }

    fn close<S: Storage>(&mut self, token: u64, tools: &mut Tools<'_, S>) {
        if self.connections.take(token).is_some() {
            tools.context.counters.add(Count::Closed, 1);
            self.ring.remove(token);
        }
    }

    fn resume<S: Storage>(&mut self, _: Box<Connection>, _: &mut Tools<'_, S>) {}

    fn take_back<S: Storage>(&mut self, _: &Returned<'_>, _: &mut Tools<'_, S>) {}

    fn resume_datagram<S: Storage>(&mut self, _: ForwardedDatagram, _: &mut Tools<'_, S>) {}

    fn end(&mut self) {
        // What was replied is sent. Where the kernel takes it no more, there are still the items.
        _ = self.ring.submit();
    }
}
