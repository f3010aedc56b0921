use super::super::connections::{ClientState, Connected};
use crate::engine::client_memory::{Charge, ClientBuffer, Spent};
use crate::engine::{Count, Counters, Storage};
use crate::session::{Outlet, Status, Tools};
use net::{SendMode, Stream};
use std::io::ErrorKind;

/// A client that has replies to take is read from no more once this much of what it sent waits, and no more replies
/// are made for it once there are this many bytes of them.
const HELD_BYTES_MAX: usize = 64 << 10;

/// Replies of so many bytes are sent at once, not together with those of others: they would leave the processor's
/// cache meanwhile, which costs more than the system call.
const SENT_AT_ONCE_BYTES_MIN: usize = 8 << 10;

/// Buffers that are kept to be used again, and how large these may be.
const SPARE_BUFFERS_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 64 << 10;

/// One client of a ring. While it is idle, its buffers are empty.
pub(crate) struct RingConnection {
    pub client: ClientState,
    /// Received and not yet consumed.
    input: ClientBuffer,
    /// Not yet given to the ring.
    replies: Vec<u8>,
    sending: Sending,
    /// Whether the socket did not take `replies`.
    is_stalled: bool,
    /// For replies that the socket did not take.
    charge: Charge,
    /// There is no memory for it: it is closed, whatever it still has to take.
    is_given_up: bool,
    /// Nothing more that it sends is carried out.
    is_over: bool,
    /// It will send no more.
    is_input_over: bool,
    /// Whether the ring is to receive from it.
    pub is_receiving: bool,
    /// Whether it is among those whose replies will be given to the ring.
    pub is_queued: bool,
}

/// What the ring has of a connection's replies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sending {
    Nothing,
    /// All of them.
    Replies,
    /// Those that the socket did not take, from this offset on.
    Rest(usize),
}

/// What is to be done for a connection.
pub(crate) enum Next {
    /// Nothing before something happens.
    Wait,
    /// Send its replies.
    Send,
    /// Close it.
    Close,
}

/// What connections share.
#[derive(Default)]
pub(crate) struct Output {
    /// Empty buffers.
    spares: Vec<Vec<u8>>,
    /// Bytes of replies that wait to be given to the ring.
    pub waiting_bytes: usize,
}

impl Output {
    fn spare(&mut self) -> Vec<u8> {
        self.spares.pop().unwrap_or_default()
    }

    /// Keep a buffer to be used again.
    pub fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.spares.len() < SPARE_BUFFERS_MAX && buffer.capacity() <= SPARE_BYTES_MAX {
            buffer.clear();
            self.spares.push(buffer);
        }
    }
}

impl RingConnection {
    pub fn new(client: ClientState) -> Self {
        Self {
            client,
            input: ClientBuffer::default(),
            replies: Vec::new(),
            sending: Sending::Nothing,
            is_stalled: false,
            charge: Charge::default(),
            is_given_up: false,
            is_over: false,
            is_input_over: false,
            is_receiving: false,
            is_queued: false,
        }
    }

    pub fn next(&self) -> Next {
        match self.sending {
            _ if self.is_given_up => Next::Close,
            Sending::Nothing if !self.replies.is_empty() => Next::Send,
            Sending::Nothing if self.is_over || self.is_input_over => Next::Close,
            _ => Next::Wait,
        }
    }

    /// Whether to receive from it.
    pub fn wants_input(&self) -> bool {
        let is_held_back = match self.sending {
            Sending::Rest(_) => true,
            _ => self.is_stalled || (self.is_blocked() && self.input.len() >= HELD_BYTES_MAX),
        };
        !(self.is_over || self.is_input_over || is_held_back)
    }

    /// The client sent `bytes`. Its stream is there if it is idle.
    pub fn receive<S: Storage>(
        &mut self,
        bytes: &[u8],
        stream: Option<&Stream>,
        tools: &mut Tools<'_, S>,
        output: &mut Output,
    ) {
        self.client.active_at = tools.context.now;
        let counters = tools.context.counters;
        counters.add(Count::BytesRead, bytes.len() as u64);
        if self.is_over {
            return;
        }
        if let Some(stream) = stream
            && self.input.is_empty()
            && !self.is_blocked()
        {
            let consumed = self.run(bytes, stream, tools, output);
            if !self.is_over && self.hold(&bytes[consumed..], counters).is_err() {
                self.refuse(stream, tools, output);
            }
            return;
        }
        match self.hold(bytes, counters) {
            Ok(()) => self.run_held(stream, tools, output),
            Err(Spent) => self.give_up(Count::ReadsOutOfMemory, counters),
        }
    }

    /// Keep what cannot be consumed yet. A client gets the memory that it fills, and up to three times as much for a value
    /// that is known to be so long.
    fn hold(&mut self, bytes: &[u8], counters: &Counters) -> Result<(), Spent> {
        let held_bytes = self.input.len() + bytes.len();
        let missing_bytes = self.client.session.wanted().saturating_sub(held_bytes);
        if held_bytes > self.input.capacity() && missing_bytes > 0 {
            // Where there is not so much, what comes may still be had.
            _ = self.input.reserve(
                held_bytes + missing_bytes.min(3 * held_bytes),
                counters.allowance(),
            );
        }
        self.input.extend(bytes, counters.allowance())
    }

    /// There is no memory for what it sends: the client is told.
    #[cold]
    fn refuse<S: Storage>(
        &mut self,
        stream: &Stream,
        tools: &mut Tools<'_, S>,
        output: &mut Output,
    ) {
        if self.is_blocked() {
            return self.give_up(Count::ReadsOutOfMemory, tools.context.counters);
        }
        self.input = ClientBuffer::default();
        let mut outlet = Replies {
            replies: &mut self.replies,
            is_stalled: &mut self.is_stalled,
            charge: &mut self.charge,
            stream,
            output,
        };
        self.client.session.refuse(&mut outlet, tools);
        self.is_over = true;
    }

    /// There is no memory for it, and it could not be told.
    #[cold]
    fn give_up(&mut self, count: Count, counters: &Counters) {
        counters.add(count, 1);
        self.is_given_up = true;
    }

    /// The client will send no more.
    pub fn end_input(&mut self) {
        self.is_input_over = true;
    }

    /// Its replies, and how to send them. They count as written: they are, or the client is gone.
    pub fn take_replies(&mut self, counters: &Counters) -> (Vec<u8>, SendMode) {
        counters.add(Count::BytesWritten, self.replies.len() as u64);
        let mode = if std::mem::take(&mut self.is_stalled) {
            self.sending = Sending::Rest(0);
            SendMode::Patient
        } else {
            self.sending = Sending::Replies;
            SendMode::Immediate
        };
        (std::mem::take(&mut self.replies), mode)
    }

    /// So many of `bytes` were sent. Returns what is to be sent as soon as the socket takes it, and from which offset on.
    pub fn finish_send<S: Storage>(
        &mut self,
        bytes: Vec<u8>,
        sent: usize,
        stream: Option<&Stream>,
        tools: &mut Tools<'_, S>,
        output: &mut Output,
    ) -> Option<(Vec<u8>, usize)> {
        self.client.active_at = tools.context.now;
        let from = match self.sending {
            Sending::Rest(from) => from + sent,
            _ => sent,
        };
        if from < bytes.len() {
            if let Sending::Rest(_) = self.sending {
                self.sending = Sending::Rest(from);
                return Some((bytes, from));
            }
            tools.context.counters.add(Count::Stalls, 1);
            self.sending = Sending::Rest(0);
            let counters = tools.context.counters;
            if self
                .charge
                .set(bytes.len() - from, counters.allowance())
                .is_err()
            {
                self.give_up(Count::RepliesOutOfMemory, counters);
                return None;
            }
            // In memory of its own: this may take long.
            let rest = bytes[from..].to_vec();
            output.recycle(bytes);
            return Some((rest, 0));
        }
        self.sending = Sending::Nothing;
        // It is less, which is always had.
        _ = self.charge.set(0, tools.context.counters.allowance());
        output.recycle(bytes);
        // Commands that waited for the replies before them.
        self.run_held(stream, tools, output);
        None
    }

    /// Whether what it sends has to wait.
    fn is_blocked(&self) -> bool {
        self.sending != Sending::Nothing || self.is_stalled || self.replies.len() >= HELD_BYTES_MAX
    }

    /// Whether some of what it sent could be carried out by now.
    fn holds_commands(&self) -> bool {
        !self.input.is_empty() && self.input.len() >= self.client.session.wanted()
    }

    fn run_held<S: Storage>(
        &mut self,
        stream: Option<&Stream>,
        tools: &mut Tools<'_, S>,
        output: &mut Output,
    ) {
        let Some(stream) = stream else { return };
        if self.is_over || self.is_blocked() || !self.holds_commands() {
            return;
        }
        let mut input = std::mem::take(&mut self.input);
        let consumed = self.run(&input, stream, tools, output);
        input.consume(consumed, tools.context.counters.allowance());
        self.input = input;
    }

    /// Carry out commands; says how many of `bytes` are done with.
    fn run<S: Storage>(
        &mut self,
        bytes: &[u8],
        stream: &Stream,
        tools: &mut Tools<'_, S>,
        output: &mut Output,
    ) -> usize {
        let mut outlet = Replies {
            replies: &mut self.replies,
            is_stalled: &mut self.is_stalled,
            charge: &mut self.charge,
            stream,
            output,
        };
        let (consumed, status) = self.client.session.run(bytes, &mut outlet, tools);
        self.is_over = status == Status::Ended || self.client.session.is_over();
        consumed
    }
}

impl Connected for RingConnection {
    fn client(&self) -> &ClientState {
        &self.client
    }

    #[cfg(feature = "harness")]
    fn client_bytes(&self) -> usize {
        self.input.capacity()
    }
}

/// Replies of few bytes are kept until the ring is given those of many connections.
struct Replies<'c> {
    replies: &'c mut Vec<u8>,
    is_stalled: &'c mut bool,
    charge: &'c mut Charge,
    stream: &'c Stream,
    output: &'c mut Output,
}

impl Outlet for Replies<'_> {
    fn send(&mut self, replies: &mut Vec<u8>, counters: &Counters) -> Status {
        if replies.is_empty() {
            return Status::Reading;
        }
        if self.replies.is_empty() && replies.len() >= SENT_AT_ONCE_BYTES_MIN {
            return self.send_at_once(replies, counters);
        }
        self.output.waiting_bytes += replies.len();
        if self.replies.is_empty() {
            *self.replies = std::mem::replace(replies, self.output.spare());
        } else {
            self.replies.append(replies);
        }
        if self.replies.len() < HELD_BYTES_MAX {
            Status::Reading
        } else {
            Status::Writing
        }
    }
}

impl Replies<'_> {
    fn send_at_once(&mut self, replies: &mut Vec<u8>, counters: &Counters) -> Status {
        let sent = match self.stream.write(replies) {
            Ok(sent) => sent,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                0
            }
            Err(_) => {
                replies.clear();
                return Status::Ended;
            }
        };
        counters.add(Count::BytesWritten, sent as u64);
        let is_stalled = sent < replies.len();
        if is_stalled {
            counters.add(Count::Stalls, 1);
            if self
                .charge
                .set(replies.len() - sent, counters.allowance())
                .is_err()
            {
                counters.add(Count::RepliesOutOfMemory, 1);
                replies.clear();
                return Status::Ended;
            }
            *self.is_stalled = true;
            self.replies.extend_from_slice(&replies[sent..]);
        }
        replies.clear();
        if is_stalled {
            Status::Writing
        } else {
            Status::Reading
        }
    }
}
