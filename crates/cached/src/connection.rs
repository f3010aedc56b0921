use crate::counters::{Count, Counters};
use crate::execute::{After, Context, execute};
use crate::options::Protocols;
use crate::report::Report;
use crate::storage::Storage;
use arrayvec::ArrayVec;
use mica::Key;
use net::{Interest, Stream};
use std::io::ErrorKind;
use wire::memcached::binary;
use wire::memcached::server::{
    Checkpoint, Command, KeyRoom, Limits, Parser, Request, Step, StoreMode, reply,
};

/// Bytes of the buffer that all connections of a worker read into.
pub(crate) const SCRATCH_BYTES: usize = 64 << 10;

/// Answers are sent once there are this many bytes of them, and no more are made while the client does not read.
/// So a connection holds at most this and one value of unsent answers.
const SEND_BYTES: usize = 64 << 10;

/// Up to this many bytes of an unfinished command are moved to the shared buffer to read the rest behind them.
const MOVED_BYTES_MAX: usize = 16 << 10;

/// Buffers of a connection that are larger go back to the system when they become empty.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// Room that a growing value gets at least.
const GROWTH_BYTES: usize = 16 << 10;

/// Commands that are looked at together, so that memory fetches what they need at the same time.
pub(crate) const BURST: usize = 32;

/// One client. While it is idle, its buffers are empty.
pub(crate) struct Connection {
    stream: Stream,
    protocol: Protocol,
    parser: Parser,
    /// Received and not yet consumed.
    input: Vec<u8>,
    /// There is no command before `input` has this many bytes.
    wanted: usize,
    /// Answers that the socket had no room for; the first `sent` bytes are sent.
    output: Vec<u8>,
    sent: usize,
    /// End when `output` is sent.
    closing: bool,
    interest: Interest,
    /// Whether it gave a password, where one must be given.
    is_admitted: bool,
    /// The second of its last sign of life; `u32::MAX` where none is waited for.
    active_at: u32,
}

/// Where a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A client.
    Client,
    /// The server itself.
    Within,
}

/// What a client speaks, which its first byte tells.
enum Protocol {
    Unknown,
    Text,
    Binary(binary::Parser),
}

/// What a worker lends to the connection at work.
pub(crate) struct Tools<'w, S> {
    pub context: Context<'w, S>,
    /// For what is received, [`SCRATCH_BYTES`].
    pub scratch: &'w mut [u8],
    /// For answers; empty between connections.
    pub out: &'w mut Vec<u8>,
    /// For binary keys.
    pub rooms: &'w mut [KeyRoom; BURST],
}

/// A command that was read and not yet carried out. Most are reads of one key, which are kept short: moving what
/// holds any command takes longer than such a read.
struct Pending<'a> {
    key: Key<'a>,
    /// Where it ends.
    end: usize,
    /// Where it is among the [`Other`]s of its burst.
    other: Option<u8>,
}

/// A command that is not a read of one key.
struct Other<'a> {
    request: Request<'a>,
    /// Where the parser was when it ended.
    after: Checkpoint,
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// The client's next bytes.
    Reading,
    /// The client to take answers.
    Writing,
    /// Nothing: it has ended.
    Ended,
}

impl Connection {
    pub fn new(stream: Stream, origin: Origin, report: &Report, now: u32) -> Self {
        let is_admitted = origin == Origin::Within || report.accounts().is_none();
        Self {
            stream,
            protocol: match report.options().protocols {
                Protocols::Any => Protocol::Unknown,
                Protocols::Text => Protocol::Text,
                Protocols::Binary if origin == Origin::Within => Protocol::Text,
                Protocols::Binary => Protocol::Binary(binary::Parser::new(limits(report))),
            },
            parser: Parser::new(if is_admitted {
                limits(report)
            } else {
                STRANGER_LIMITS
            }),
            input: Vec::new(),
            wanted: 0,
            output: Vec::new(),
            sent: 0,
            closing: false,
            interest: Interest::READ,
            is_admitted,
            active_at: match origin {
                Origin::Client => now,
                Origin::Within => u32::MAX,
            },
        }
    }

    /// Whether it gave no sign of life for `seconds` until second `now`.
    pub fn is_idle(&self, seconds: u32, now: u32) -> bool {
        now.saturating_sub(self.active_at) >= seconds
    }

    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// What the poller must watch for from now on, if that changed.
    pub fn changed_interest(&mut self, status: Status) -> Option<Interest> {
        let interest = match status {
            Status::Reading => Interest::READ,
            Status::Writing => Interest::WRITE,
            Status::Ended => return None,
        };
        (interest != self.interest).then(|| {
            self.interest = interest;
            interest
        })
    }

    /// The socket is ready for what was waited for: do a bounded piece of work.
    pub fn advance<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        if self.active_at != u32::MAX {
            self.active_at = tools.context.now;
        }
        if self.output.is_empty() {
            return self.receive(tools);
        }
        match self.send_held(tools) {
            Status::Reading if self.closing => Status::Ended,
            // Commands that waited for the answers before them.
            Status::Reading => self.work_on_held(tools),
            status => status,
        }
    }

    fn receive<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        if self.input.len() > MOVED_BYTES_MAX || self.wanted > tools.scratch.len() {
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
        let (consumed, status) = self.work(&scratch[..held + received], tools);
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
        let growth = self.wanted.saturating_sub(held).min(held).max(GROWTH_BYTES);
        self.input.resize(held + growth, 0);
        let read = self.stream.read(&mut self.input[held..]);
        self.input.truncate(held + *read.as_ref().unwrap_or(&0));
        match received(read, tools) {
            Err(status) => status,
            Ok(_) if self.input.len() < self.wanted => Status::Reading,
            Ok(_) => self.work_on_held(tools),
        }
    }

    fn work_on_held<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        let mut input = std::mem::take(&mut self.input);
        let (consumed, status) = self.work(&input, tools);
        input.drain(..consumed);
        release(&mut input);
        self.input = input;
        status
    }

    fn read<S: Storage>(&self, held: usize, tools: &mut Tools<'_, S>) -> Result<usize, Status> {
        let read = self.stream.read(&mut tools.scratch[held..]);
        received(read, tools)
    }

    /// Carry out the commands in `bytes` and send the answers. Returns how many bytes are done with.
    fn work<S: Storage>(&mut self, bytes: &[u8], tools: &mut Tools<'_, S>) -> (usize, Status) {
        if matches!(self.protocol, Protocol::Unknown) && !bytes.is_empty() {
            self.protocol = if bytes[0] == binary::MAGIC {
                Protocol::Binary(binary::Parser::new(self.parser.limits()))
            } else {
                Protocol::Text
            };
        }
        if !self.is_admitted {
            let (consumed, status) = self.ask_for_password(bytes, tools);
            if !self.is_admitted || status != Status::Reading {
                return (consumed, status);
            }
            let (more, status) = self.work_on_text(&bytes[consumed..], tools);
            return (consumed + more, status);
        }
        match &self.protocol {
            Protocol::Binary(_) => self.work_on_binary(bytes, tools),
            Protocol::Text | Protocol::Unknown => self.work_on_text(bytes, tools),
        }
    }

    /// Until a `set` brings a name and a password, there is nothing else (memcached's `doc/protocol.txt`,
    /// "Authentication").
    fn ask_for_password<S: Storage>(
        &mut self,
        bytes: &[u8],
        tools: &mut Tools<'_, S>,
    ) -> (usize, Status) {
        let report = tools.context.report;
        let mut at = 0;
        while !self.is_admitted && !self.closing {
            let (consumed, step) = self.parser.next(&bytes[at..], &mut tools.rooms[0]);
            at += consumed;
            let request = match step {
                Step::Incomplete(wanted) => {
                    self.wanted = wanted;
                    break;
                }
                Step::Request(request) => request,
            };
            self.wanted = 0;
            let answer: &[u8] = match request.command {
                Command::Store {
                    mode: StoreMode::Set,
                    value,
                    ..
                } => {
                    tools.context.counters.add(Count::Authentications, 1);
                    if report.accounts().is_none_or(|known| known.admit(value)) {
                        self.is_admitted = true;
                        self.parser = Parser::new(limits(report));
                        b"STORED"
                    } else {
                        tools.context.counters.add(Count::AuthenticationFailures, 1);
                        b"CLIENT_ERROR authentication failure"
                    }
                }
                Command::TooLarge { .. } => b"CLIENT_ERROR auth token too long",
                Command::Quit | Command::Hopeless(_) => {
                    self.closing = true;
                    break;
                }
                _ => b"CLIENT_ERROR unauthenticated",
            };
            reply::line(tools.out, answer);
        }
        self.finish(at, tools)
    }

    fn work_on_binary<S: Storage>(
        &mut self,
        bytes: &[u8],
        tools: &mut Tools<'_, S>,
    ) -> (usize, Status) {
        let mut at = 0;
        while let Protocol::Binary(parser) = &mut self.protocol {
            let (consumed, step) = parser.next(&bytes[at..]);
            at += consumed;
            match step {
                binary::Step::Incomplete(wanted) => {
                    self.wanted = wanted;
                    break;
                }
                binary::Step::Request(request) => {
                    self.wanted = 0;
                    let key = tools
                        .context
                        .storage
                        .key(request.command.key().unwrap_or_default());
                    let after =
                        crate::binary::execute(&request, key, &mut tools.context, tools.out);
                    if after == After::Close {
                        self.closing = true;
                        break;
                    }
                }
            }
            if tools.out.len() >= SEND_BYTES {
                match self.send(tools.context.counters, tools.out) {
                    Status::Reading => {}
                    status => return (at, status),
                }
            }
        }
        self.finish(at, tools)
    }

    /// Send what was answered to the first `at` bytes.
    fn finish<S>(&mut self, at: usize, tools: &mut Tools<'_, S>) -> (usize, Status) {
        match self.send(tools.context.counters, tools.out) {
            Status::Reading if self.closing => (at, Status::Ended),
            status => (at, status),
        }
    }

    fn work_on_text<S: Storage>(
        &mut self,
        bytes: &[u8],
        tools: &mut Tools<'_, S>,
    ) -> (usize, Status) {
        let mut at = 0;
        loop {
            let mut is_all = false;
            let mut parsed = at;
            let mut burst = ArrayVec::<Pending<'_>, BURST>::new();
            let mut others = ArrayVec::<Other<'_>, BURST>::new();
            for room in tools.rooms.iter_mut() {
                let storage = &tools.context.storage;
                if let Some((consumed, bytes)) = self.parser.plain_get(&bytes[parsed..]) {
                    parsed += consumed;
                    self.wanted = 0;
                    let key = storage.key(bytes);
                    storage.prefetch_bucket(key);
                    burst.push(Pending {
                        key,
                        end: parsed,
                        other: None,
                    });
                    continue;
                }
                let (consumed, step) = self.parser.next(&bytes[parsed..], room);
                parsed += consumed;
                match step {
                    Step::Incomplete(wanted) => {
                        self.wanted = wanted;
                        is_all = true;
                        break;
                    }
                    Step::Request(request) => {
                        let key = storage.key(request.command.key().unwrap_or_default());
                        storage.prefetch_bucket(key);
                        self.wanted = 0;
                        burst.push(Pending {
                            key,
                            end: parsed,
                            other: Some(others.len() as u8),
                        });
                        others.push(Other {
                            request,
                            after: self.parser.checkpoint(),
                        });
                    }
                }
            }
            if burst.len() > 1 {
                for one in &burst {
                    tools.context.storage.prefetch_item(one.key);
                }
            }
            for one in &burst {
                at = one.end;
                let other = one.other.map(|number| &others[usize::from(number)]);
                let after = match other {
                    None => {
                        tools.context.get(one.key, false, true, tools.out);
                        After::Continue
                    }
                    Some(other) => execute(&other.request, one.key, &mut tools.context, tools.out),
                };
                if after == After::Close {
                    self.closing = true;
                    break;
                }
                if tools.out.len() >= SEND_BYTES {
                    match self.send(tools.context.counters, tools.out) {
                        Status::Reading => {}
                        status => {
                            // What was read ahead is read again.
                            self.parser
                                .restore(other.map_or(Checkpoint::default(), |other| other.after));
                            self.wanted = 0;
                            return (at, status);
                        }
                    }
                }
            }
            if self.closing {
                break;
            }
            if is_all {
                at = parsed;
                break;
            }
        }
        self.finish(at, tools)
    }

    /// Send the answers; what the socket has no room for is kept for later.
    fn send(&mut self, counters: &Counters, answers: &mut Vec<u8>) -> Status {
        let (sent, status) = write_all(&self.stream, answers);
        counters.add(Count::BytesWritten, sent as u64);
        if status == Status::Writing {
            counters.add(Count::Stalls, 1);
            self.output.extend_from_slice(&answers[sent..]);
        }
        answers.clear();
        status
    }

    fn send_held<S>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        let (sent, status) = write_all(&self.stream, &self.output[self.sent..]);
        tools.context.counters.add(Count::BytesWritten, sent as u64);
        self.sent += sent;
        if status == Status::Reading {
            self.sent = 0;
            self.output.clear();
            release(&mut self.output);
        }
        status
    }
}

/// What a client may send at once before it gave a password.
const STRANGER_LIMITS: Limits = Limits {
    item_bytes_max: 2 << 10,
};

fn limits(report: &Report) -> Limits {
    Limits {
        item_bytes_max: report.item_bytes_max() - mica::HEADER_BYTES,
    }
}

/// Write until all is written ([`Status::Reading`]) or the socket is full. Returns how much was.
fn write_all(stream: &Stream, bytes: &[u8]) -> (usize, Status) {
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

fn received<S>(read: std::io::Result<usize>, tools: &Tools<'_, S>) -> Result<usize, Status> {
    match read {
        Ok(0) => Err(Status::Ended),
        Ok(bytes) => {
            tools.context.counters.add(Count::BytesRead, bytes as u64);
            Ok(bytes)
        }
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Err(Status::Reading)
        }
        Err(_) => Err(Status::Ended),
    }
}

/// Give an empty buffer's memory back if it is more than a short command needs.
fn release(buffer: &mut Vec<u8>) {
    if buffer.is_empty() && buffer.capacity() > KEPT_BYTES_MAX {
        *buffer = Vec::new();
    }
}
