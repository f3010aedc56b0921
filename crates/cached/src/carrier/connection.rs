use super::connections::{Arrival, ClientState, Connected};
use super::tls::{Stage, TlsSession};
use crate::engine::client_memory::{Charge, ClientBuffer, Spent};
use crate::engine::{Count, Counters, Storage};
use crate::options::Options;
use crate::session::batch::{Address, Returned};
use crate::session::{Outlet, Status, Tools};
use net::{Interest, Stream};
use std::io::{ErrorKind, IoSlice};

/// Bytes of the buffer that all connections of a worker read into.
pub(crate) const SCRATCH_BYTES: usize = 64 << 10;

/// Up to this many bytes of an unfinished command are moved to the shared buffer to read the rest behind them.
pub(super) const MOVED_BYTES_MAX: usize = 16 << 10;

/// Capacity that a growing value gets at least.
const GROWTH_BYTES: usize = 16 << 10;

/// One client's stream, encrypted or not. While it is idle, its buffers are empty.
pub(crate) struct Connection {
    pub(super) client: ClientState,
    pub(super) output: Output,
    /// Received (and decrypted), and not yet consumed.
    pub(super) input: ClientBuffer,
    /// For what a TLS session keeps of what was received.
    pub(super) charge: Charge,
    interest: Interest,
    /// There may be more to receive, of which the poller would not tell by itself.
    is_more: bool,
    /// The second at which a TLS handshake is given up.
    handshake_until: u32,
}

/// The sending side of a connection.
pub(super) struct Output {
    pub stream: Stream,
    /// Where other workers' replies find it.
    pub address: Option<Address>,
    /// Where the stream is encrypted.
    pub encryption: Option<Box<TlsSession>>,
    /// Bytes that the socket did not take; the first `sent` of them are sent.
    pub pending: ClientBuffer,
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
            handshake_until: client.active_at.saturating_add(handshake_seconds),
            client,
            output: Output {
                stream: arrival.stream,
                address: None,
                encryption,
                pending: ClientBuffer::default(),
                sent: 0,
            },
            input: ClientBuffer::default(),
            charge: Charge::default(),
            interest: Interest::READ,
            is_more: false,
        })
    }

    /// What is polled for while the client's next bytes are waited for. Of a plain stream it is reported once that there
    /// are some: to report it for as long as they are there, the kernel would look at the socket again each time the worker
    /// waits. What did not fill the room that there was is all that there is. Where it did, or may be a client's last,
    /// the poller is asked to look again. A TLS session may leave something unread in any case.
    #[inline]
    fn reading(&self) -> Interest {
        match self.output.encryption {
            None => Interest::READ.or(Interest::EDGE),
            Some(_) => Interest::READ,
        }
    }

    pub fn stream(&self) -> &Stream {
        &self.output.stream
    }

    /// What a poller is to watch for at first.
    pub fn first_interest(&mut self) -> Interest {
        self.interest = self.reading();
        self.interest
    }

    /// What the poller must be told to watch for now, if it is to be told.
    #[inline]
    pub fn changed_interest(&mut self, status: Status) -> Option<Interest> {
        let wanted = match status {
            Status::Reading => self.reading(),
            Status::Writing => Interest::WRITE,
            // The poller would say it again and again.
            Status::Waiting if self.is_more && self.output.encryption.is_some() => Interest::NONE,
            Status::Waiting | Status::Ended | Status::OtherWorker(_) => return None,
        };
        let is_more = std::mem::take(&mut self.is_more);
        (wanted != self.interest || is_more).then(|| {
            self.interest = wanted;
            wanted
        })
    }

    /// The socket is ready for what was waited for, and `is_last` if its client sends nothing more: do a bounded piece of
    /// work.
    #[inline]
    pub fn advance<S: Storage>(&mut self, is_last: bool, tools: &mut Tools<'_, S>) -> Status {
        self.client.active_at = tools.context.now;
        if self.output.pending.is_empty() && self.client.session.is_waiting() {
            // It is looked at once other workers have replied.
            self.is_more = true;
            return Status::Waiting;
        }
        // The end is found by receiving once more.
        self.is_more = is_last;
        if self.output.pending.is_empty() {
            return match self.output.encryption {
                None => self.receive(tools),
                Some(_) => self.receive_encrypted(tools),
            };
        }
        let status = match self.output.send_pending(tools.context.counters) {
            Status::Reading if self.client.session.is_waiting() => return self.go_on(tools),
            Status::Reading if self.client.session.is_over() => Status::Ended,
            // Commands that waited for the replies before them.
            Status::Reading => self.run_held(tools),
            status => status,
        };
        self.settle(status)
    }

    /// It comes from another worker: go on with what it brings.
    pub fn resume<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        let status = if self.output.pending.is_empty() {
            self.run_held(tools)
        } else {
            Status::Writing
        };
        self.settle(status)
    }

    /// Other workers replied to some of its commands.
    pub fn take_back<S: Storage>(
        &mut self,
        returned: &Returned<'_>,
        tools: &mut Tools<'_, S>,
    ) -> Status {
        let counters = tools.context.counters;
        self.client.active_at = tools.context.now;
        match self.client.session.take_back(returned, counters) {
            Err(Spent) => {
                counters.add(Count::RepliesOutOfMemory, 1);
                Status::Ended
            }
            // It does not take those before.
            Ok(()) if !self.output.pending.is_empty() => Status::Writing,
            Ok(()) => self.go_on(tools),
        }
    }

    fn go_on<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        let status = match self.output.encryption {
            None => self.client.session.go_on(&mut self.output, tools),
            Some(_) => self.go_on_encrypted(tools),
        };
        let status = match status {
            // Commands that waited for the replies before them.
            Status::Reading if !self.input.is_empty() => self.run_held(tools),
            status => status,
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
        self.is_more |= held + received == tools.scratch.len();
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
        let status = self.hold(&scratch[consumed..held + received], status, tools);
        tools.scratch = scratch;
        status
    }

    /// Keep what is not consumed yet.
    #[inline]
    pub(super) fn hold<S: Storage>(
        &mut self,
        bytes: &[u8],
        status: Status,
        tools: &mut Tools<'_, S>,
    ) -> Status {
        let counters = tools.context.counters;
        let status = match self.input.extend(bytes, counters.allowance()) {
            Ok(()) => status,
            Err(Spent) => self.refuse(status, tools),
        };
        self.input.release(counters.allowance());
        status
    }

    /// There is no memory for what it sends; it was about to wait for `status`.
    #[cold]
    pub(super) fn refuse<S: Storage>(
        &mut self,
        status: Status,
        tools: &mut Tools<'_, S>,
    ) -> Status {
        self.input = ClientBuffer::default();
        let is_told = matches!(status, Status::Reading | Status::Waiting);
        if is_told && self.output.encryption.is_none() {
            return self.client.session.refuse(&mut self.output, tools);
        }
        if is_told {
            return self.refuse_encrypted(tools);
        }
        // It does not take the replies before, so it would not take this one.
        tools.context.counters.add(Count::ReadsOutOfMemory, 1);
        Status::Ended
    }

    /// Receive behind what is there, in memory of the connection's own, which at most doubles at a time: a client
    /// gets the memory that it fills.
    fn receive_in_place<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        let held = self.input.len();
        let wanted = self.client.session.wanted();
        let growth = wanted.saturating_sub(held).min(held).max(GROWTH_BYTES);
        let stream = &self.output.stream;
        let mut is_filled = false;
        let read = self
            .input
            .fill(growth, tools.context.counters.allowance(), |room| {
                let read = stream.read(room);
                let bytes = *read.as_ref().unwrap_or(&0);
                is_filled = bytes == room.len();
                (bytes, read)
            });
        let Ok(read) = read else {
            return self.refuse(Status::Reading, tools);
        };
        let bytes = match received(read) {
            Ok(bytes) => bytes,
            Err(status) => return status,
        };
        self.is_more |= is_filled;
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
        input.consume(consumed, tools.context.counters.allowance());
        self.input = input;
        status
    }
}

impl Connected for Connection {
    fn client(&self) -> &ClientState {
        &self.client
    }

    #[cfg(feature = "harness")]
    fn client_bytes(&self) -> usize {
        let awaited = self.client.session.awaited_bytes();
        self.input.capacity() + self.output.pending.capacity() + awaited
    }

    fn is_handshake_overdue(&self, now: u32) -> bool {
        let encryption = self.output.encryption.as_ref();
        now > self.handshake_until
            && encryption.is_some_and(|session| session.stage() == Stage::Handshake)
    }
}

impl Outlet for Output {
    fn address(&self) -> Option<Address> {
        self.address
    }

    /// What the socket does not take is kept for later.
    fn send(&mut self, replies: &mut Vec<u8>, counters: &Counters) -> Status {
        let (sent, status) = write_all(&self.stream, replies);
        counters.add(Count::BytesWritten, sent as u64);
        let status = match status {
            Status::Writing => self.hold([&replies[sent..]], counters),
            status => status,
        };
        replies.clear();
        status
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
        let status = match status {
            Status::Writing => self.hold(behind(parts, sent), counters),
            status => status,
        };
        replies.clear();
        status
    }
}

impl Output {
    /// Keep replies that the socket does not take. Where there is no memory for them, the client is given up, as with
    /// memcached: the socket would not take another reply either.
    pub fn hold<const N: usize>(&mut self, parts: [&[u8]; N], counters: &Counters) -> Status {
        counters.add(Count::Stalls, 1);
        let bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        let all = self.pending.len() + bytes;
        let held = self
            .pending
            .reserve(all, counters.allowance())
            .and_then(|()| {
                parts
                    .iter()
                    .try_for_each(|part| self.pending.extend(part, counters.allowance()))
            });
        match held {
            Ok(()) => Status::Writing,
            Err(Spent) => {
                counters.add(Count::RepliesOutOfMemory, 1);
                Status::Ended
            }
        }
    }

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
            self.pending.release(counters.allowance());
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
