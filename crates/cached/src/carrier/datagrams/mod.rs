//! Datagrams in, commands carried out in bursts, datagrams out; whatever carries them.

mod batch;
mod queue;
mod reply_limits;
mod socket;
mod source;

pub(crate) use queue::Queue;
pub(crate) use reply_limits::Limits;
pub(crate) use socket::{Buffers, ForwardedDatagram, Socket};
pub(crate) use source::Source;

use self::reply_limits::REPLY_BYTES_MAX;
use crate::engine::{After, Count, Counters, Storage};
use crate::session::{BURST, Outlet, Session, Status, Tools, limits};
use arrayvec::ArrayVec;
use mica::Key;
use wire::memcached::Datagrams;
use wire::memcached::datagram::{DATAGRAM_BYTES_MAX, FRAME_BYTES, Format, Frame};
use wire::memcached::server::Parser;

const TOO_LONG: &[u8] = b"SERVER_ERROR the answer is too long for datagrams\r\n";
const IN_PIECES: &[u8] = b"SERVER_ERROR multi-packet request not supported\r\n";

/// A datagram the rest of whose commands is for another worker.
pub(crate) struct UnfinishedDatagram {
    pub frame: Frame,
    pub worker: usize,
    pub session: Session,
    /// Commands that are left.
    pub commands: Vec<u8>,
    /// The replies to the others.
    pub replied: Vec<u8>,
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

/// Carry out what `datagrams` say and append the replies. What is no datagram of ours is not replied to. Hands those for
/// other workers to `forward`.
pub(crate) fn carry_out<'a, S: Storage>(
    datagrams: impl Iterator<Item = &'a [u8]>,
    limits_of_batches: Limits,
    tools: &mut Tools<'_, S>,
    replies: &mut Datagrams,
    mut forward: impl FnMut(UnfinishedDatagram),
) {
    let mut datagrams = datagrams.peekable();
    let mut parser = Parser::new(limits(tools.context.state));
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
                    Some(get) if get.consumed == rest.len() => {
                        let key = tools.context.storage.key(get.key);
                        tools.context.storage.prefetch_bucket(key);
                        Pending::Get(frame, key)
                    }
                    _ => Pending::Text(frame, rest),
                },
            });
        }
        let keys = burst.iter().filter_map(|one| match one {
            Pending::Get(_, key) => Some(*key),
            _ => None,
        });
        tools.context.storage.prefetch_items(keys);
        for one in burst {
            match one {
                Pending::InPieces(frame) => {
                    replies.push_split(Frame::single(frame.request, Format::Text), IN_PIECES);
                }
                Pending::Get(frame, key) => {
                    let out = replies.begin(frame);
                    match tools.context.get(key, false, true, out) {
                        After::OtherWorker(worker) => forward(UnfinishedDatagram {
                            frame,
                            worker,
                            session: Session::new(tools.context.state, true),
                            commands: [b"get ", key.bytes(), b"\r\n"].concat(),
                            replied: Vec::new(),
                        }),
                        _ if replies.body().len() > DATAGRAM_BYTES_MAX - FRAME_BYTES => {
                            let long = replies.body().to_vec();
                            replies.push_split(frame, &long);
                        }
                        _ => replies.end(),
                    }
                }
                Pending::Text(frame, commands) => {
                    let session = Session::new(tools.context.state, true);
                    let rest = run_text(frame, session, commands, Vec::new(), tools, replies);
                    if let Some(unfinished) = rest {
                        forward(unfinished);
                    }
                }
                Pending::Batch(frame, entries) => {
                    let limits = limits_of_batches;
                    batch::carry_out(frame, entries, limits, &mut tools.context, replies);
                }
            }
        }
    }
}

/// Carry out text, some of whose commands another worker `replied` to.
pub(crate) fn run_text<S: Storage>(
    frame: Frame,
    mut session: Session,
    commands: &[u8],
    replied: Vec<u8>,
    tools: &mut Tools<'_, S>,
    replies: &mut Datagrams,
) -> Option<UnfinishedDatagram> {
    let mut collected = Collected(replied);
    let (consumed, status) = session.run(commands, &mut collected, tools);
    let Collected(replied) = collected;
    match status {
        Status::OtherWorker(worker) => {
            return Some(UnfinishedDatagram {
                frame,
                worker,
                session,
                commands: commands[consumed..].to_vec(),
                replied,
            });
        }
        _ if replied.len() > REPLY_BYTES_MAX => replies.push_split(frame, TOO_LONG),
        _ => replies.push_split(frame, &replied),
    }
    None
}

/// Answers to one datagram.
struct Collected(Vec<u8>);

impl Outlet for Collected {
    fn send(&mut self, replies: &mut Vec<u8>, _: &Counters) -> Status {
        self.0.append(replies);
        if self.0.len() > REPLY_BYTES_MAX {
            Status::Ended
        } else {
            Status::Reading
        }
    }
}
