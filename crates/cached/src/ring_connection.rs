use crate::conversation::{Conversation, Outlet, Status, Tools};
use crate::counters::{Count, Counters};
use crate::report::Report;
use crate::roster::Seat;
use crate::storage::Storage;
use net::{SendMode, Stream};
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd};

/// A client that has answers to take is read from no more once this much of what it said waits, and no more answers
/// are made for it once there are this many bytes of them.
const HELD_BYTES_MAX: usize = 64 << 10;

/// Buffers of a connection that are larger go back to the system when they become empty.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// Answers of so many bytes are sent at once, not together with those of others: they would leave the processor's
/// cache meanwhile, which costs more than the system call.
const SENT_AT_ONCE_BYTES_MIN: usize = 8 << 10;

/// Buffers that are kept to be used again, and how large these may be.
const SPARE_BUFFERS_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 64 << 10;

/// One client of a ring. While it is idle, its buffers are empty.
pub(crate) struct Connection {
    /// Where it is seen, with the second of its last sign of life.
    seat: Seat,
    conversation: Conversation,
    /// Received and not yet consumed.
    input: Vec<u8>,
    /// Not yet given to the ring.
    answers: Vec<u8>,
    sending: Sending,
    /// Whether the socket had no room for `answers`.
    is_stalled: bool,
    /// Nothing more that it says is carried out.
    is_over: bool,
    /// It will say no more.
    is_silent: bool,
    /// Whether the ring is to receive from it.
    pub is_receiving: bool,
    /// Whether it is among those whose answers will be given to the ring.
    pub is_queued: bool,
}

/// What the ring has of a connection's answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sending {
    Nothing,
    /// All of them; the ring speaks up if the socket has no room for all.
    Quietly,
    /// All of them, and something is to be done when they are sent.
    Answers,
    /// Those for which the socket had no room, from this place on.
    Rest(usize),
}

/// What is to be done for a connection.
pub(crate) enum Next {
    /// Nothing before something happens.
    Wait,
    /// Send its answers.
    Send,
    /// Close it.
    Close,
}

/// What connections share.
#[derive(Default)]
pub(crate) struct Output {
    /// Empty buffers.
    spares: Vec<Vec<u8>>,
    /// Bytes of answers that wait to be given to the ring.
    pub waiting_bytes: usize,
}

impl Output {
    fn spare(&mut self) -> Vec<u8> {
        self.spares.pop().unwrap_or_default()
    }

    /// Keep a buffer to be used again.
    pub fn keep(&mut self, mut buffer: Vec<u8>) {
        if self.spares.len() < SPARE_BUFFERS_MAX && buffer.capacity() <= SPARE_BYTES_MAX {
            buffer.clear();
            self.spares.push(buffer);
        }
    }
}

impl Connection {
    pub fn new(seat: Seat, report: &Report) -> Self {
        Self {
            seat,
            conversation: Conversation::new(report),
            input: Vec::new(),
            answers: Vec::new(),
            sending: Sending::Nothing,
            is_stalled: false,
            is_over: false,
            is_silent: false,
            is_receiving: false,
            is_queued: false,
        }
    }

    /// Whether it is told what happens.
    pub fn is_watching(&self) -> bool {
        self.conversation.is_watching()
    }

    pub fn seat(&self) -> &Seat {
        &self.seat
    }

    /// There are lines for it: answer with them, unless it has some to take already. Then it gets these when those are
    /// sent, which the ring tells of.
    pub fn deliver<S: Storage>(
        &mut self,
        stream: Option<&Stream>,
        tools: &mut Tools<'_, S>,
        output: &mut Output,
    ) {
        self.note(stream);
        self.work_on_held(stream, tools, output);
    }

    /// Whether it gave no sign of life for `seconds` until second `now`, as those who watch need not.
    pub fn is_idle(&self, seconds: u32, now: u32) -> bool {
        !self.is_watching() && now.saturating_sub(self.seat.active_at()) >= seconds
    }

    pub fn next(&self) -> Next {
        match self.sending {
            Sending::Nothing if !self.answers.is_empty() => Next::Send,
            Sending::Nothing if self.is_over || self.is_silent => Next::Close,
            _ => Next::Wait,
        }
    }

    /// Whether to receive from it.
    pub fn wants_input(&self) -> bool {
        let is_held_back = match self.sending {
            Sending::Rest(_) => true,
            _ => self.is_stalled || (self.is_blocked() && self.input.len() >= HELD_BYTES_MAX),
        };
        !(self.is_over || self.is_silent || is_held_back)
    }

    /// The client said `bytes`. Its stream is there if it is idle.
    pub fn hear<S: Storage>(
        &mut self,
        bytes: &[u8],
        stream: Option<&Stream>,
        tools: &mut Tools<'_, S>,
        output: &mut Output,
    ) {
        self.seat.note(tools.context.now);
        let counters = tools.context.counters;
        counters.add(Count::BytesRead, bytes.len() as u64);
        if self.is_over {
            return;
        }
        self.note(stream);
        if let Some(stream) = stream
            && self.input.is_empty()
            && !self.is_blocked()
        {
            let consumed = self.work(bytes, stream, tools, output);
            if !self.is_over {
                self.hold(&bytes[consumed..], output);
            }
            return;
        }
        self.hold(bytes, output);
        self.work_on_held(stream, tools, output);
    }

    /// Keep what cannot be consumed yet. A client gets the room that it fills, and up to three times as much for a value
    /// that is known to be so long.
    fn hold(&mut self, bytes: &[u8], output: &mut Output) {
        let held_bytes = self.input.len() + bytes.len();
        let missing_bytes = self.conversation.wanted().saturating_sub(held_bytes);
        if held_bytes > self.input.capacity() && missing_bytes > 0 {
            if self.input.capacity() == 0 && missing_bytes > KEPT_BYTES_MAX {
                self.input = output.spare();
            }
            let room_bytes = bytes.len() + missing_bytes.min(3 * held_bytes);
            self.input.reserve_exact(room_bytes);
        }
        self.input.extend_from_slice(bytes);
    }

    /// The client will say no more.
    pub fn fall_silent(&mut self, stream: Option<&Stream>) {
        self.note(stream);
        self.is_silent = true;
    }

    /// Nothing is told of answers that are all sent, except by the stream's being idle.
    fn note(&mut self, stream: Option<&Stream>) {
        if self.sending == Sending::Quietly && stream.is_some() {
            self.sending = Sending::Nothing;
        }
    }

    /// Its answers, and how to send them. They count as written: they are, or the client is gone.
    pub fn take_answers(&mut self, counters: &Counters) -> (Vec<u8>, SendMode) {
        counters.add(Count::BytesWritten, self.answers.len() as u64);
        let mode = if std::mem::take(&mut self.is_stalled) {
            self.sending = Sending::Rest(0);
            self.seat.set_writing(true);
            SendMode::Patient
        } else if self.is_over || self.is_silent || self.holds_commands() {
            self.sending = Sending::Answers;
            SendMode::Immediate
        } else {
            self.sending = Sending::Quietly;
            SendMode::Quiet
        };
        (std::mem::take(&mut self.answers), mode)
    }

    /// So many of `bytes` were sent. Returns what is to be sent as soon as there is room, and from which place on.
    pub fn told_sent<S: Storage>(
        &mut self,
        bytes: Vec<u8>,
        sent: usize,
        stream: Option<&Stream>,
        tools: &mut Tools<'_, S>,
        output: &mut Output,
    ) -> Option<(Vec<u8>, usize)> {
        self.seat.note(tools.context.now);
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
            self.seat.set_writing(true);
            // In memory of its own: this may take long.
            let rest = bytes[from..].to_vec();
            output.keep(bytes);
            return Some((rest, 0));
        }
        if let Sending::Rest(_) = self.sending {
            self.seat.set_writing(false);
        }
        self.sending = Sending::Nothing;
        output.keep(bytes);
        // Commands that waited for the answers before them.
        self.work_on_held(stream, tools, output);
        None
    }

    /// Whether what it says has to wait.
    fn is_blocked(&self) -> bool {
        self.sending != Sending::Nothing || self.is_stalled || self.answers.len() >= HELD_BYTES_MAX
    }

    /// Whether some of what it said could be carried out by now, or there may be lines that it is to be told.
    fn holds_commands(&self) -> bool {
        let has_more = !self.input.is_empty() || self.conversation.has_more();
        self.is_watching() || (has_more && self.input.len() >= self.conversation.wanted())
    }

    fn work_on_held<S: Storage>(
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
        let consumed = self.work(&input, stream, tools, output);
        input.drain(..consumed);
        if !input.is_empty() || input.capacity() <= KEPT_BYTES_MAX {
            self.input = input;
        } else {
            output.keep(input);
        }
    }

    /// Carry out commands; says how many of `bytes` are done with.
    fn work<S: Storage>(
        &mut self,
        bytes: &[u8],
        stream: &Stream,
        tools: &mut Tools<'_, S>,
        output: &mut Output,
    ) -> usize {
        let mut outlet = Answers {
            answers: &mut self.answers,
            is_stalled: &mut self.is_stalled,
            stream,
            output,
        };
        let (consumed, status) = self.conversation.work(bytes, &mut outlet, tools);
        self.is_over = status == Status::Ended || self.conversation.is_over();
        consumed
    }
}

/// Answers of few bytes are kept until the ring is given those of many connections.
struct Answers<'c> {
    answers: &'c mut Vec<u8>,
    is_stalled: &'c mut bool,
    stream: &'c Stream,
    output: &'c mut Output,
}

impl Outlet for Answers<'_> {
    fn descriptor(&self) -> Option<i32> {
        Some(self.stream.as_fd().as_raw_fd())
    }

    fn send(&mut self, answers: &mut Vec<u8>, counters: &Counters) -> Status {
        if answers.is_empty() {
            return Status::Reading;
        }
        if self.answers.is_empty() && answers.len() >= SENT_AT_ONCE_BYTES_MIN {
            return self.send_at_once(answers, counters);
        }
        self.output.waiting_bytes += answers.len();
        if self.answers.is_empty() {
            *self.answers = std::mem::replace(answers, self.output.spare());
        } else {
            self.answers.append(answers);
        }
        if self.answers.len() < HELD_BYTES_MAX {
            Status::Reading
        } else {
            Status::Writing
        }
    }
}

impl Answers<'_> {
    fn send_at_once(&mut self, answers: &mut Vec<u8>, counters: &Counters) -> Status {
        let sent = match self.stream.write(answers) {
            Ok(sent) => sent,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                0
            }
            Err(_) => {
                answers.clear();
                return Status::Ended;
            }
        };
        counters.add(Count::BytesWritten, sent as u64);
        let is_stalled = sent < answers.len();
        if is_stalled {
            counters.add(Count::Stalls, 1);
            *self.is_stalled = true;
            self.answers.extend_from_slice(&answers[sent..]);
        }
        answers.clear();
        if is_stalled {
            Status::Writing
        } else {
            Status::Reading
        }
    }
}
