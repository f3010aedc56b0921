use super::session::{SEALED_BYTES_MAX, SEALING_ROOM, Session, Stage};
use crate::connection::{MOVED_BYTES_MAX, SCRATCH_BYTES, received, release, write_all};
use crate::conversation::{Conversation, Outlet, Status, Tools};
use crate::counters::{Count, Counters};
use crate::report::Report;
use crate::roster::Seat;
use crate::storage::Storage;
use net::{Interest, Stream};
use rustls::ServerConfig;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// Bytes of the shared buffer for what comes encrypted, and for what is encrypted to go; the rest is for what that
/// says. Room for a whole record, and the most of the handshake that a client may have us hold.
const SEALED_ROOM: usize = 24 << 10;

const _: () = assert!(SEALED_ROOM >= SEALING_ROOM);
// What is held, and what the largest room can bring.
const _: () = assert!(SCRATCH_BYTES - SEALED_ROOM >= MOVED_BYTES_MAX + SEALED_ROOM);

/// One client's encrypted stream. While it is idle, it holds its keys and empty buffers.
pub(crate) struct TlsConnection {
    /// Where it is seen, with the second of its last sign of life. Given up first, while the descriptor is still its own.
    seat: Seat,
    conversation: Conversation,
    output: Output,
    /// Decrypted and not yet consumed.
    input: Vec<u8>,
    interest: Interest,
    /// The second at which the handshake is given up.
    handshake_until: u32,
}

/// The sending side of a connection, and the session, which both sides need.
struct Output {
    stream: Stream,
    session: Session,
    /// Encrypted answers that the socket had no room for; the first `sent` bytes are sent.
    held: Vec<u8>,
    sent: usize,
}

impl TlsConnection {
    /// With a client that said nothing yet.
    ///
    /// # Errors
    /// As [`Session::new`].
    pub fn new(
        stream: Stream,
        seat: Seat,
        config: Arc<ServerConfig>,
        report: &Report,
    ) -> Result<Self, rustls::Error> {
        let patience = report
            .tls()
            .map_or(u32::MAX, |tls| tls.options().handshake_seconds_max);
        Ok(Self {
            conversation: Conversation::new(report),
            output: Output {
                stream,
                session: Session::new(config)?,
                held: Vec::new(),
                sent: 0,
            },
            input: Vec::new(),
            interest: Interest::READ,
            handshake_until: seat.active_at().saturating_add(patience),
            seat,
        })
    }

    pub fn stream(&self) -> &Stream {
        &self.output.stream
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

    /// Whether it had its time to say who it is, and did not.
    pub fn is_overdue(&self, now: u32) -> bool {
        self.output.session.stage() == Stage::Handshake && now > self.handshake_until
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
    #[inline(never)]
    pub fn advance<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        self.seat.note(tools.context.now);
        if self.output.held.is_empty() && !self.conversation.has_more() {
            return self.receive(tools);
        }
        let status = match self.output.send_held() {
            Status::Reading if self.conversation.is_over() => Status::Ended,
            // Commands that waited for the answers before them.
            Status::Reading
                if !self.input.is_empty()
                    || self.conversation.has_more()
                    || self.conversation.is_watching() =>
            {
                self.work_on_held(tools)
            }
            status => status,
        };
        self.settle(status)
    }

    /// It comes from another worker: go on with what it brings.
    #[inline(never)]
    pub fn arrive<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        // Whichever it is to be is a change.
        if self.interest != Interest::READ {
            self.interest = Interest::READ;
            self.seat.set_writing(false);
        }
        let status = if self.output.held.is_empty() {
            self.work_on_held(tools)
        } else {
            Status::Writing
        };
        self.settle(status)
    }

    /// There are lines for it: send them, unless it has some to take already.
    #[inline(never)]
    pub fn deliver<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        let status = if self.output.held.is_empty() {
            self.work_on_held(tools)
        } else {
            Status::Writing
        };
        self.settle(status)
    }

    fn receive<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        let scratch = std::mem::take(&mut tools.scratch);
        let (sealed, plain) = scratch.split_at_mut(SEALED_ROOM);
        let status = self.receive_into(sealed, plain, tools);
        tools.scratch = scratch;
        self.settle(status)
    }

    fn receive_into<S: Storage>(
        &mut self,
        sealed: &mut [u8],
        plain: &mut [u8],
        tools: &mut Tools<'_, S>,
    ) -> Status {
        let Output {
            stream,
            session,
            held,
            ..
        } = &mut self.output;
        let counters = tools.context.counters;
        let before = session.stage();
        let kept = session.incoming().len();
        sealed[..kept].copy_from_slice(session.incoming());
        // What is held leaves room, unless it is longer than a record and a client's part of the handshake may be.
        let arrived = match received(stream.read(&mut sealed[kept..])) {
            Ok(arrived) => kept + arrived,
            Err(status) => return status,
        };
        // All of what this client said and is not consumed in one place: the shared buffer, if it is little.
        let is_moved = self.input.len() <= MOVED_BYTES_MAX;
        let mut said = 0;
        if is_moved {
            said = self.input.len();
            plain[..said].copy_from_slice(&self.input);
            self.input.clear();
        }
        let input = &mut self.input;
        let mut decrypted = 0;
        let each = |bytes: &[u8]| {
            decrypted += bytes.len();
            if is_moved {
                plain[said..said + bytes.len()].copy_from_slice(bytes);
                said += bytes.len();
            } else {
                input.extend_from_slice(bytes);
            }
        };
        let opened = match session.open(&mut sealed[..arrived], each, held) {
            Ok(()) if session.incoming().len() == sealed.len() => Err(rustls::Error::General(
                format!("more than {SEALED_ROOM} bytes make no message"),
            )),
            opened => opened,
        };
        counters.add(Count::BytesRead, decrypted as u64);
        if before == Stage::Handshake && session.stage() == Stage::Open && session.is_new() {
            counters.add(Count::TlsNewSessions, 1);
        }
        if let Err(error) = opened {
            explain(tools.context.report, before, &error);
            counters.add(
                if before == Stage::Handshake {
                    Count::TlsHandshakeErrors
                } else {
                    Count::TlsProtocolErrors
                },
                1,
            );
            // It is a courtesy to say why; a client that does not take it learns from the closed connection.
            _ = self.output.send_held();
            return Status::Ended;
        }
        match self.output.send_held() {
            Status::Reading => {}
            status => {
                if is_moved {
                    self.input.extend_from_slice(&plain[..said]);
                }
                return status;
            }
        }
        if !is_moved {
            return if self.input.len() < self.conversation.wanted() {
                Status::Reading
            } else {
                self.work_on(sealed, tools)
            };
        }
        let (consumed, status) = if said == 0 {
            (0, Status::Reading)
        } else {
            let mut outlet = Sealing {
                output: &mut self.output,
                room: sealed,
            };
            self.conversation.work(&plain[..said], &mut outlet, tools)
        };
        self.input.extend_from_slice(&plain[consumed..said]);
        release(&mut self.input);
        status
    }

    fn work_on_held<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        let scratch = std::mem::take(&mut tools.scratch);
        let status = self.work_on(&mut scratch[..SEALED_ROOM], tools);
        tools.scratch = scratch;
        status
    }

    fn work_on<S: Storage>(&mut self, room: &mut [u8], tools: &mut Tools<'_, S>) -> Status {
        let mut input = std::mem::take(&mut self.input);
        let mut outlet = Sealing {
            output: &mut self.output,
            room,
        };
        let (consumed, status) = self.conversation.work(&input, &mut outlet, tools);
        input.drain(..consumed);
        release(&mut input);
        self.input = input;
        status
    }

    /// What is waited for, after all that could be done was.
    fn settle(&mut self, status: Status) -> Status {
        let is_over = match status {
            Status::Reading => self.output.session.stage() == Stage::Closed,
            // It has more to say, or to do.
            Status::Writing | Status::Elsewhere(_) => false,
            Status::Ended => self.conversation.is_over(),
        };
        if !is_over {
            return status;
        }
        // The client is to know that nothing was cut off.
        let mut room = [0; 64];
        if self.output.held.is_empty()
            && let Ok(bytes) = self.output.session.close(&mut room)
        {
            _ = write_all(&self.output.stream, &room[..bytes]);
        }
        Status::Ended
    }
}

impl Output {
    fn send_held(&mut self) -> Status {
        let (sent, status) = write_all(&self.stream, &self.held[self.sent..]);
        self.sent += sent;
        if status == Status::Reading {
            self.sent = 0;
            self.held = Vec::new();
        }
        status
    }
}

/// Where answers go to be encrypted, with room for that.
struct Sealing<'o> {
    output: &'o mut Output,
    room: &'o mut [u8],
}

impl Outlet for Sealing<'_> {
    /// What the socket has no room for is kept for later, encrypted.
    fn send(&mut self, answers: &mut Vec<u8>, counters: &Counters) -> Status {
        let Output {
            stream,
            session,
            held,
            ..
        } = &mut *self.output;
        let mut status = Status::Reading;
        for piece in answers.chunks(SEALED_BYTES_MAX) {
            let Ok(bytes) = session.seal(piece, self.room) else {
                status = Status::Ended;
                break;
            };
            let mut sent = 0;
            if status == Status::Reading {
                (sent, status) = write_all(stream, &self.room[..bytes]);
            }
            if status == Status::Ended {
                break;
            }
            held.extend_from_slice(&self.room[sent..bytes]);
        }
        counters.add(Count::BytesWritten, answers.len() as u64);
        if status == Status::Writing {
            counters.add(Count::Stalls, 1);
        }
        answers.clear();
        status
    }

    fn descriptor(&self) -> Option<i32> {
        Some(self.output.stream.as_fd().as_raw_fd())
    }

    fn takes_turns(&self) -> bool {
        true
    }
}

/// Say why a client was not served, to whoever wants to hear it.
#[cold]
fn explain(report: &Report, stage: Stage, error: &rustls::Error) {
    if report.options().verbosity > 0 {
        let what = if stage == Stage::Handshake {
            "handshake"
        } else {
            "session"
        };
        eprintln!("rackscope-cached: a client's TLS {what} failed: {error}");
    }
}
