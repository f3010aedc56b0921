use super::super::connections::{ClientState, Connected};
use crate::engine::{Count, Counters, Storage};
use crate::session::{Outlet, Status, Tools};
use net::{SendMode, Stream};
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd};

/// A client that has replies to take is read from no more once this much of what it sent waits, and no more replies
/// are made for it once there are this many bytes of them.
const HELD_BYTES_MAX: usize = 64 << 10;

/// Buffers of a connection that are larger go back to the system when they become empty.
const KEPT_BYTES_MAX: usize = 4 << 10;

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
    input: Vec<u8>,
    /// Not yet given to the ring.
    replies: Vec<u8>,
    sending: Sending,
    /// Whether the socket did not take `replies`.
    is_stalled: bool,
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
    /// All of them; the ring reports if the socket does not take all.
    Quietly,
    /// All of them, and something is to be done when they are sent.
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
            input: Vec::new(),
            replies: Vec::new(),
            sending: Sending::Nothing,
            is_stalled: false,
            is_over: false,
            is_input_over: false,
            is_receiving: false,
            is_queued: false,
        }
    }

    /// There are lines for it: send them, unless it has some to take already. Then it gets these when those are
    /// sent, which the ring reports.
    pub fn deliver<S: Storage>(
        &mut self,
        stream: Option<&Stream>,
        tools: &mut Tools<'_, S>,
        output: &mut Output,
    ) {
        self.settle_quiet(stream);
        self.run_held(stream, tools, output);
    }

    pub fn next(&self) -> Next {
        match self.sending {
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
        self.client.seat.set_active(tools.context.now);
        let counters = tools.context.counters;
        counters.add(Count::BytesRead, bytes.len() as u64);
        if self.is_over {
            return;
        }
        self.settle_quiet(stream);
        if let Some(stream) = stream
            && self.input.is_empty()
            && !self.is_blocked()
        {
            let consumed = self.run(bytes, stream, tools, output);
            if !self.is_over {
                self.hold(&bytes[consumed..], output);
            }
            return;
        }
        self.hold(bytes, output);
        self.run_held(stream, tools, output);
    }

    /// Keep what cannot be consumed yet. A client gets the memory that it fills, and up to three times as much for a value
    /// that is known to be so long.
    fn hold(&mut self, bytes: &[u8], output: &mut Output) {
        let held_bytes = self.input.len() + bytes.len();
        let missing_bytes = self.client.session.wanted().saturating_sub(held_bytes);
        if held_bytes > self.input.capacity() && missing_bytes > 0 {
            if self.input.capacity() == 0 && missing_bytes > KEPT_BYTES_MAX {
                self.input = output.spare();
            }
            let more_bytes = bytes.len() + missing_bytes.min(3 * held_bytes);
            self.input.reserve_exact(more_bytes);
        }
        self.input.extend_from_slice(bytes);
    }

    /// The client will send no more.
    pub fn end_input(&mut self, stream: Option<&Stream>) {
        self.settle_quiet(stream);
        self.is_input_over = true;
    }

    /// The ring does not report replies that are all sent, except by the stream's being idle.
    fn settle_quiet(&mut self, stream: Option<&Stream>) {
        if self.sending == Sending::Quietly && stream.is_some() {
            self.sending = Sending::Nothing;
        }
    }

    /// Its replies, and how to send them. They count as written: they are, or the client is gone.
    pub fn take_replies(&mut self, counters: &Counters) -> (Vec<u8>, SendMode) {
        counters.add(Count::BytesWritten, self.replies.len() as u64);
        let mode = if std::mem::take(&mut self.is_stalled) {
            self.sending = Sending::Rest(0);
            self.client.seat.set_writing(true);
            SendMode::Patient
        } else if self.is_over || self.is_input_over || self.holds_commands() {
            self.sending = Sending::Replies;
            SendMode::Immediate
        } else {
            self.sending = Sending::Quietly;
            SendMode::Quiet
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
        self.client.seat.set_active(tools.context.now);
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
            self.client.seat.set_writing(true);
            // In memory of its own: this may take long.
            let rest = bytes[from..].to_vec();
            output.recycle(bytes);
            return Some((rest, 0));
        }
        if let Sending::Rest(_) = self.sending {
            self.client.seat.set_writing(false);
        }
        self.sending = Sending::Nothing;
        output.recycle(bytes);
        // Commands that waited for the replies before them.
        self.run_held(stream, tools, output);
        None
    }

    /// Whether what it sends has to wait.
    fn is_blocked(&self) -> bool {
        self.sending != Sending::Nothing || self.is_stalled || self.replies.len() >= HELD_BYTES_MAX
    }

    /// Whether some of what it sent could be carried out by now, or there may be lines for it.
    fn holds_commands(&self) -> bool {
        let has_more = !self.input.is_empty() || self.client.session.has_more();
        self.client.session.is_watching()
            || (has_more && self.input.len() >= self.client.session.wanted())
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
        input.drain(..consumed);
        if !input.is_empty() || input.capacity() <= KEPT_BYTES_MAX {
            self.input = input;
        } else {
            output.recycle(input);
        }
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
}

/// Replies of few bytes are kept until the ring is given those of many connections.
struct Replies<'c> {
    replies: &'c mut Vec<u8>,
    is_stalled: &'c mut bool,
    stream: &'c Stream,
    output: &'c mut Output,
}

impl Outlet for Replies<'_> {
    fn descriptor(&self) -> Option<i32> {
        Some(self.stream.as_fd().as_raw_fd())
    }

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
