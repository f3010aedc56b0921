//! Datagrams in, commands carried out in bursts, datagrams out; whatever carries them.

mod batch;
mod queue;
mod socket;

pub(crate) use queue::Queue;
pub(crate) use socket::{Letter, Room, Socket};

use crate::conversation::{BURST, Conversation, Outlet, Status, Tools, limits};
use crate::counters::{Count, Counters};
use crate::execute::After;
use crate::storage::Storage;
use arrayvec::ArrayVec;
use mica::Key;
use wire::memcached::Datagrams;
use wire::memcached::datagram::{DATAGRAM_BYTES_MAX, FRAME_BYTES, Format, Frame};
use wire::memcached::server::Parser;

/// The longest answer to one datagram, in bytes; whoever wants more has to ask over a connection.
const ANSWER_BYTES_MAX: usize = 1 << 20;

const TOO_LONG: &[u8] = b"SERVER_ERROR the answer is too long for datagrams\r\n";
const IN_PIECES: &[u8] = b"SERVER_ERROR multi-packet request not supported\r\n";

/// How long an answer to a batch may be, in bytes with its frame.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Of answers to several requests in one datagram.
    joined: usize,
    /// Of the answer to one request.
    single: usize,
}

impl Limits {
    /// Over the kernel's sockets: what goes whole everywhere, and, for one answer, what the kernel cuts into fragments.
    pub const SOCKETS: Self = Self {
        joined: DATAGRAM_BYTES_MAX,
        single: net::SENT_BYTES_MAX,
    };

    /// Where nobody cuts packets, which carry so many bytes.
    pub fn of_packets(payload_bytes: usize) -> Self {
        Self {
            joined: payload_bytes,
            single: payload_bytes,
        }
    }
}

/// A datagram whose commands are for another worker.
pub(crate) struct Undelivered {
    pub frame: Frame,
    pub worker: usize,
    pub conversation: Conversation,
    /// Commands that are left.
    pub commands: Vec<u8>,
    /// What the others were answered.
    pub answered: Vec<u8>,
}

/// A datagram that was looked at, and not yet carried out.
enum Pending<'a> {
    /// A request of several datagrams.
    InPieces(Frame),
    /// A read of one key.
    Get(Frame, Key<'a>),
    /// Other text.
    Text(Frame, &'a [u8]),
    /// Entries of a batch.
    Batch(Frame, &'a [u8]),
}

/// Carry out what `datagrams` say and append the answers. What is no datagram of ours is not answered. Hands those for
/// other workers to `elsewhere`.
pub(crate) fn carry_out<'a, S: Storage>(
    datagrams: impl Iterator<Item = &'a [u8]>,
    limits_of_batches: Limits,
    tools: &mut Tools<'_, S>,
    answers: &mut Datagrams,
    mut elsewhere: impl FnMut(Undelivered),
) {
    let mut datagrams = datagrams.peekable();
    let parser = Parser::new(limits(tools.context.report));
    while datagrams.peek().is_some() {
        let mut burst = ArrayVec::<Pending<'_>, BURST>::new();
        for datagram in datagrams.by_ref().take(BURST) {
            tools
                .context
                .counters
                .add(Count::BytesRead, datagram.len() as u64);
            let Some((frame, rest)) = Frame::parse(datagram) else {
                continue;
            };
            let is_whole = frame.datagrams == 1;
            let frame = Frame::single(frame.request, frame.format);
            burst.push(match frame.format {
                _ if !is_whole => Pending::InPieces(frame),
                Format::Batch => Pending::Batch(frame, rest),
                Format::Text => match parser.plain_get(rest) {
                    Some((consumed, key)) if consumed == rest.len() => {
                        let key = tools.context.storage.key(key);
                        tools.context.storage.prefetch_bucket(key);
                        Pending::Get(frame, key)
                    }
                    _ => Pending::Text(frame, rest),
                },
            });
        }
        for one in &burst {
            if let Pending::Get(_, key) = one {
                tools.context.storage.prefetch_item(*key);
            }
        }
        for one in burst {
            match one {
                Pending::InPieces(frame) => {
                    answers.push_split(Frame::single(frame.request, Format::Text), IN_PIECES);
                }
                Pending::Get(frame, key) => {
                    let out = answers.begin(frame);
                    let after = tools.context.get(key, false, true, out);
                    if after == After::Continue {
                        tools.context.counters.note_key(key);
                    }
                    match after {
                        After::Elsewhere(worker) => elsewhere(Undelivered {
                            frame,
                            worker,
                            conversation: Conversation::new(tools.context.report),
                            commands: [b"get ", key.bytes(), b"\r\n"].concat(),
                            answered: Vec::new(),
                        }),
                        _ if answers.body().len() > DATAGRAM_BYTES_MAX - FRAME_BYTES => {
                            let long = answers.body().to_vec();
                            answers.push_split(frame, &long);
                        }
                        _ => answers.end(),
                    }
                }
                Pending::Text(frame, commands) => {
                    let conversation = Conversation::new(tools.context.report);
                    let undelivered =
                        converse(frame, conversation, commands, Vec::new(), tools, answers);
                    if let Some(undelivered) = undelivered {
                        elsewhere(undelivered);
                    }
                }
                Pending::Batch(frame, entries) => {
                    let limits = limits_of_batches;
                    batch::carry_out(frame, entries, limits, &mut tools.context, answers);
                }
            }
        }
    }
}

/// Carry out text, some of whose commands were answered elsewhere.
pub(crate) fn converse<S: Storage>(
    frame: Frame,
    mut conversation: Conversation,
    commands: &[u8],
    answered: Vec<u8>,
    tools: &mut Tools<'_, S>,
    answers: &mut Datagrams,
) -> Option<Undelivered> {
    let mut collected = Collected(answered);
    let (consumed, status) = conversation.work(commands, &mut collected, tools);
    let Collected(answered) = collected;
    match status {
        Status::Elsewhere(worker) => {
            return Some(Undelivered {
                frame,
                worker,
                conversation,
                commands: commands[consumed..].to_vec(),
                answered,
            });
        }
        _ if answered.len() > ANSWER_BYTES_MAX => answers.push_split(frame, TOO_LONG),
        _ => answers.push_split(frame, &answered),
    }
    None
}

/// Answers to one datagram.
struct Collected(Vec<u8>);

impl Outlet for Collected {
    fn send(&mut self, answers: &mut Vec<u8>, _: &Counters) -> Status {
        self.0.append(answers);
        if self.0.len() > ANSWER_BYTES_MAX {
            Status::Ended
        } else {
            Status::Reading
        }
    }
}
