use crate::conversation::{Conversation, Outlet, Status, Tools};
use crate::counters::{Count, Counters};
use crate::report::Report;
use crate::roster::Seat;
use crate::storage::Storage;
use net::{Interest, Stream};
use std::io::{ErrorKind, IoSlice};
use std::os::fd::{AsFd, AsRawFd};

/// Bytes of the buffer that all connections of a worker read into.
pub(crate) const SCRATCH_BYTES: usize = 64 << 10;

/// Up to this many bytes of an unfinished command are moved to the shared buffer to read the rest behind them.
pub(crate) const MOVED_BYTES_MAX: usize = 16 << 10;

/// Buffers of a connection that are larger go back to the system when they become empty.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// Room that a growing value gets at least.
const GROWTH_BYTES: usize = 16 << 10;

/// One client's stream. While it is idle, its buffers are empty.
pub(crate) struct Connection {
    /// Where it is seen, with the second of its last sign of life. Given up first, while the descriptor is still its own.
    seat: Seat,
    conversation: Conversation,
    output: Output,
    /// Received and not yet consumed.
    input: Vec<u8>,
    interest: Interest,
}

/// The sending side of a connection.
struct Output {
    stream: Stream,
    /// Answers that the socket had no room for; the first `sent` bytes are sent.
    held: Vec<u8>,
    sent: usize,
}

impl Connection {
    pub fn new(stream: Stream, seat: Seat, report: &Report) -> Self {
        Self {
            conversation: Conversation::new(report),
            output: Output {
                stream,
                held: Vec::new(),
                sent: 0,
            },
            input: Vec::new(),
            interest: Interest::READ,
            seat,
        }
    }

    /// Whether it is told what happens.
    pub fn is_watching(&self) -> bool {
        self.conversation.is_watching()
    }

    pub fn seat(&self) -> &Seat {
        &self.seat
    }

    /// Whether it gave no sign of life for `seconds` until second `now`, as those who watch need not.
    pub fn is_idle(&self, seconds: u32, now: u32) -> bool {
        !self.is_watching() && now.saturating_sub(self.seat.active_at()) >= seconds
    }

    pub fn stream(&self) -> &Stream {
        &self.output.stream
    }

    /// What the poller must watch for from now on, if that changed.
    pub fn changed_interest(&mut self, status: Status) -> Option<Interest> {
        let changed = status.changed_interest(&mut self.interest);
        if changed.is_some() {
            self.seat.set_writing(status == Status::Writing);
        }
        changed
    }

    /// The socket is ready for what was waited for: do a bounded piece of work.
    pub fn advance<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        self.seat.note(tools.context.now);
        if self.output.held.is_empty() && !self.conversation.has_more() {
            return self.receive(tools);
        }
        match self.output.send_held(tools.context.counters) {
            Status::Reading if self.conversation.is_over() => Status::Ended,
            // Commands that waited for the answers before them.
            Status::Reading => self.work_on_held(tools),
            status => status,
        }
    }

    /// It comes from another worker: go on with what it brings.
    pub fn arrive<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        // Whichever it is to be is a change.
        if self.interest != Interest::READ {
            self.interest = Interest::READ;
            self.seat.set_writing(false);
        }
        if self.output.held.is_empty() {
            self.work_on_held(tools)
        } else {
            Status::Writing
        }
    }

    /// There are lines for it: send them, unless it has some to take already.
    pub fn deliver<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        if self.output.held.is_empty() {
            self.work_on_held(tools)
        } else {
            Status::Writing
        }
    }

    fn receive<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        if self.input.len() > MOVED_BYTES_MAX || self.conversation.wanted() > tools.scratch.len() {
            return self.receive_in_place(tools);
        }
        // All of this connection's bytes in the shared buffer: those held, and what arrived.
        let held = self.input.len();
        tools.scratch[..held].copy_from_slice(&self.input);
        let received = match self.read(held, tools) {
            Ok(received) => received,
            Err(status) => return status,
        };
        self.input.clear();
        let scratch = std::mem::take(&mut tools.scratch);
        let (consumed, status) =
            self.conversation
                .work(&scratch[..held + received], &mut self.output, tools);
        self.input
            .extend_from_slice(&scratch[consumed..held + received]);
        tools.scratch = scratch;
        release(&mut self.input);
        status
    }

    /// Receive behind what is there, in memory of the connection's own, which at most doubles at a time: a client
    /// gets the room that it fills.
    fn receive_in_place<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        let held = self.input.len();
        let growth = self
            .conversation
            .wanted()
            .saturating_sub(held)
            .min(held)
            .max(GROWTH_BYTES);
        self.input.resize(held + growth, 0);
        let read = self.output.stream.read(&mut self.input[held..]);
        self.input.truncate(held + *read.as_ref().unwrap_or(&0));
        let bytes = match received(read) {
            Ok(bytes) => bytes,
            Err(status) => return status,
        };
        tools.context.counters.add(Count::BytesRead, bytes as u64);
        if self.input.len() < self.conversation.wanted() {
            return Status::Reading;
        }
        self.work_on_held(tools)
    }

    fn work_on_held<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        let mut input = std::mem::take(&mut self.input);
        let (consumed, status) = self.conversation.work(&input, &mut self.output, tools);
        input.drain(..consumed);
        release(&mut input);
        self.input = input;
        status
    }

    fn read<S: Storage>(&self, held: usize, tools: &mut Tools<'_, S>) -> Result<usize, Status> {
        let bytes = received(self.output.stream.read(&mut tools.scratch[held..]))?;
        tools.context.counters.add(Count::BytesRead, bytes as u64);
        Ok(bytes)
    }
}

impl Outlet for Output {
    /// What the socket has no room for is kept for later.
    fn send(&mut self, answers: &mut Vec<u8>, counters: &Counters) -> Status {
        let (sent, status) = write_all(&self.stream, answers);
        counters.add(Count::BytesWritten, sent as u64);
        if status == Status::Writing {
            counters.add(Count::Stalls, 1);
            self.held.extend_from_slice(&answers[sent..]);
        }
        answers.clear();
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
        answers: &mut Vec<u8>,
        value: &[u8],
        end: &[u8],
        counters: &Counters,
    ) -> Status {
        let parts = [&answers[..], value, end];
        let (sent, status) = write_parts(&self.stream, parts);
        counters.add(Count::BytesWritten, sent as u64);
        if status == Status::Writing {
            counters.add(Count::Stalls, 1);
            for part in behind(parts, sent) {
                self.held.extend_from_slice(part);
            }
        }
        answers.clear();
        status
    }

    fn takes_turns(&self) -> bool {
        true
    }
}

impl Output {
    fn send_held(&mut self, counters: &Counters) -> Status {
        let (sent, status) = write_all(&self.stream, &self.held[self.sent..]);
        counters.add(Count::BytesWritten, sent as u64);
        self.sent += sent;
        if status == Status::Reading {
            self.sent = 0;
            self.held.clear();
            release(&mut self.held);
        }
        status
    }
}

/// Write until all is written ([`Status::Reading`]) or the socket is full. Returns how much was.
pub(crate) fn write_all(stream: &Stream, bytes: &[u8]) -> (usize, Status) {
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
pub(crate) fn received(read: std::io::Result<usize>) -> Result<usize, Status> {
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
pub(crate) fn release(buffer: &mut Vec<u8>) {
    if buffer.is_empty() && buffer.capacity() > KEPT_BYTES_MAX {
        *buffer = Vec::new();
    }
}
