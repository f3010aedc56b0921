use super::connections::{Arrival, ClientState, Connected};
use super::tls::{Stage, TlsSession};
use crate::engine::{Count, Counters, Storage};
use crate::options::Options;
use crate::session::{Outlet, Status, Tools};
use net::{Interest, Stream};
use std::io::{ErrorKind, IoSlice};
use std::os::fd::{AsFd, AsRawFd};

/// Bytes of the buffer that all connections of a worker read into.
pub(crate) const SCRATCH_BYTES: usize = 64 << 10;

/// Up to this many bytes of an unfinished command are moved to the shared buffer to read the rest behind them.
pub(super) const MOVED_BYTES_MAX: usize = 16 << 10;

/// Buffers of a connection that are larger go back to the system when they become empty.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// Capacity that a growing value gets at least.
const GROWTH_BYTES: usize = 16 << 10;

/// One client's stream, encrypted or not. While it is idle, its buffers are empty.
pub(crate) struct Connection {
    pub(super) client: ClientState,
    pub(super) output: Output,
    /// Received (and decrypted), and not yet consumed.
    pub(super) input: Vec<u8>,
    interest: Interest,
    /// The second at which a TLS handshake is given up.
    handshake_until: u32,
}

/// The sending side of a connection.
pub(super) struct Output {
    pub stream: Stream,
    /// Where the stream is encrypted.
    pub encryption: Option<Box<TlsSession>>,
    /// Bytes that the socket did not take; the first `sent` of them are sent.
    pub pending: Vec<u8>,
    sent: usize,
}

impl Connection {
    /// `None` where the host gives no random numbers to encrypt with.
    pub fn new(arrival: Arrival, client: ClientState, options: &Options) -> Option<Self> {
        let encryption = match arrival.tls {
            Some(config) => Some(Box::new(TlsSession::new(config).ok()?)),
            None => None,
        };
        let tls = options.tls.as_ref();
        let handshake_seconds = tls.map_or(u32::MAX, |tls| tls.handshake_seconds_max);
        Some(Self {
            handshake_until: client.seat.active_at().saturating_add(handshake_seconds),
            client,
            output: Output {
                stream: arrival.stream,
                encryption,
                pending: Vec::new(),
                sent: 0,
            },
            input: Vec::new(),
            interest: Interest::READ,
        })
    }

    pub fn stream(&self) -> &Stream {
        &self.output.stream
    }

    /// What the poller must watch for from now on, if that changed.
    #[inline]
    pub fn changed_interest(&mut self, status: Status) -> Option<Interest> {
        let wanted = match status {
            Status::Reading => Interest::READ,
            Status::Writing => Interest::WRITE,
            Status::Ended | Status::OtherWorker(_) => return None,
        };
        (wanted != self.interest).then(|| {
            self.interest = wanted;
            self.client.seat.set_writing(status == Status::Writing);
            wanted
        })
    }

    /// The socket is ready for what was waited for: do a bounded piece of work.
    #[inline]
    pub fn advance<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        self.client.seat.set_active(tools.context.now);
        if self.output.pending.is_empty() && !self.client.session.has_more() {
            return match self.output.encryption {
                None => self.receive(tools),
                Some(_) => self.receive_encrypted(tools),
            };
        }
        let status = match self.output.send_pending(tools.context.counters) {
            Status::Reading if self.client.session.is_over() => Status::Ended,
            // Commands that waited for the replies before them.
            Status::Reading => self.run_held(tools),
            status => status,
        };
        self.settle(status)
    }

    /// It comes from another worker: go on with what it brings.
    pub fn resume<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        // Whichever it is to be is a change.
        if self.interest != Interest::READ {
            self.interest = Interest::READ;
            self.client.seat.set_writing(false);
        }
        self.deliver(tools)
    }

    /// There are lines for it, or commands: go on with them, unless it has replies to take first.
    pub fn deliver<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        let status = if self.output.pending.is_empty() {
            self.run_held(tools)
        } else {
            Status::Writing
        };
        self.settle(status)
    }

    fn receive<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        if self.input.len() > MOVED_BYTES_MAX || self.client.session.wanted() > tools.scratch.len()
        {
            return self.receive_in_place(tools);
        }
        // All of this connection's bytes in the shared buffer: those held, and what arrived.
        let held = self.input.len();
        tools.scratch[..held].copy_from_slice(&self.input);
        let received = match received(self.output.stream.read(&mut tools.scratch[held..])) {
            Ok(bytes) => bytes,
            Err(status) => return status,
        };
        tools
            .context
            .counters
            .add(Count::BytesRead, received as u64);
        self.input.clear();
        let scratch = std::mem::take(&mut tools.scratch);
        let (consumed, status) =
            self.client
                .session
                .run(&scratch[..held + received], &mut self.output, tools);
        self.input
            .extend_from_slice(&scratch[consumed..held + received]);
        tools.scratch = scratch;
        release(&mut self.input);
        status
    }

    /// Receive behind what is there, in memory of the connection's own, which at most doubles at a time: a client
    /// gets the memory that it fills.
    fn receive_in_place<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        let held = self.input.len();
        let wanted = self.client.session.wanted();
        let growth = wanted.saturating_sub(held).min(held).max(GROWTH_BYTES);
        self.input.resize(held + growth, 0);
        let read = self.output.stream.read(&mut self.input[held..]);
        self.input.truncate(held + *read.as_ref().unwrap_or(&0));
        let bytes = match received(read) {
            Ok(bytes) => bytes,
            Err(status) => return status,
        };
        tools.context.counters.add(Count::BytesRead, bytes as u64);
        if self.input.len() < wanted {
            return Status::Reading;
        }
        self.run_held(tools)
    }

    /// Carry out what was received before.
    pub(super) fn run_held<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        let mut input = std::mem::take(&mut self.input);
        let (consumed, status) = match self.output.encryption {
            None => self.client.session.run(&input, &mut self.output, tools),
            Some(_) => self.run_encrypted(&input, tools),
        };
        input.drain(..consumed);
        release(&mut input);
        self.input = input;
        status
    }
}

impl Connected for Connection {
    fn client(&self) -> &ClientState {
        &self.client
    }

    fn is_handshake_overdue(&self, now: u32) -> bool {
        let encryption = self.output.encryption.as_ref();
        now > self.handshake_until
            && encryption.is_some_and(|session| session.stage() == Stage::Handshake)
    }
}

impl Outlet for Output {
    /// What the socket does not take is kept for later.
    fn send(&mut self, replies: &mut Vec<u8>, counters: &Counters) -> Status {
        let (sent, status) = write_all(&self.stream, replies);
        counters.add(Count::BytesWritten, sent as u64);
        if status == Status::Writing {
            counters.add(Count::Stalls, 1);
            self.pending.extend_from_slice(&replies[sent..]);
        }
        replies.clear();
        status
    }

    fn descriptor(&self) -> Option<i32> {
        Some(self.stream.as_fd().as_raw_fd())
    }

    fn takes_values(&self) -> bool {
        true
    }

    fn send_value(
        &mut self,
        replies: &mut Vec<u8>,
        value: &[u8],
        end: &[u8],
        counters: &Counters,
    ) -> Status {
        let parts = [&replies[..], value, end];
        let (sent, status) = write_parts(&self.stream, parts);
        counters.add(Count::BytesWritten, sent as u64);
        if status == Status::Writing {
            counters.add(Count::Stalls, 1);
            for part in behind(parts, sent) {
                self.pending.extend_from_slice(part);
            }
        }
        replies.clear();
        status
    }

    fn takes_turns(&self) -> bool {
        true
    }
}

impl Output {
    /// Send what the socket did not take before. What is encrypted was counted when it was.
    pub fn send_pending(&mut self, counters: &Counters) -> Status {
        let (sent, status) = write_all(&self.stream, &self.pending[self.sent..]);
        if self.encryption.is_none() {
            counters.add(Count::BytesWritten, sent as u64);
        }
        self.sent += sent;
        if status == Status::Reading {
            self.sent = 0;
            self.pending.clear();
            release(&mut self.pending);
        }
        status
    }
}

/// Write until all is written ([`Status::Reading`]) or the socket is full. Returns how much was.
pub(super) fn write_all(stream: &Stream, bytes: &[u8]) -> (usize, Status) {
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(written) => sent += written,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return (sent, Status::Writing),
            Err(_) => return (sent, Status::Ended),
        }
    }
    (sent, Status::Reading)
}

/// As [`write_all`], parts behind one another.
fn write_parts(stream: &Stream, parts: [&[u8]; 3]) -> (usize, Status) {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    let mut sent = 0;
    while sent < bytes {
        match stream.write_vectored(&behind(parts, sent).map(IoSlice::new)) {
            Ok(written) => sent += written,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return (sent, Status::Writing),
            Err(_) => return (sent, Status::Ended),
        }
    }
    (sent, Status::Reading)
}

/// What is left of `parts` behind the first `bytes` of all of them.
fn behind(parts: [&[u8]; 3], mut bytes: usize) -> [&[u8]; 3] {
    parts.map(|part| {
        let skipped = bytes.min(part.len());
        bytes -= skipped;
        &part[skipped..]
    })
}

/// How many bytes were read, or what is waited for instead.
#[inline]
pub(super) fn received(read: std::io::Result<usize>) -> Result<usize, Status> {
    match read {
        Ok(0) => Err(Status::Ended),
        Ok(bytes) => Ok(bytes),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Err(Status::Reading)
        }
        Err(_) => Err(Status::Ended),
    }
}

/// Give an empty buffer's memory back if it is more than a short command needs.
pub(super) fn release(buffer: &mut Vec<u8>) {
    if buffer.is_empty() && buffer.capacity() > KEPT_BYTES_MAX {
        *buffer = Vec::new();
    }
}
