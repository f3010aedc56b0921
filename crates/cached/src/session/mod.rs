//! What one client sends and is replied, whatever carries it: bytes in, commands carried out in bursts, replies out.
//!
//! * [`text`] and [`binary`]: a burst of commands of either protocol.
//! * [`batch`]: commands that another worker carries out; [`lanes`]: what is on its way; [`awaited`]: what a connection
//!   waits for meanwhile; [`forward`]: how a session comes from one to the other.
//! * [`accounts`] and [`password`]: who may use the server, and how a client shows it.

pub(crate) mod accounts;
mod awaited;
pub(crate) mod batch;
mod binary;
mod forward;
pub(crate) mod lanes;
mod password;
mod text;

use self::accounts::Accounts;
use self::awaited::Awaited;
use self::batch::Address;
use self::lanes::Lanes;
use crate::engine::{Context, Count, Counters, Gather, ServerState, Storage};
use crate::options::Protocols;
use wire::memcached::binary as binary_protocol;
use wire::memcached::server::{KeyBuffer, Limits, Parser, reply};

/// Replies are sent once there are this many bytes of them, and no more are made while the client does not read.
/// So a connection holds at most this and one value of unsent replies.
const SEND_BYTES: usize = 64 << 10;

/// Commands that are looked at together, so that memory fetches what they need at the same time.
pub(crate) const BURST: usize = 32;

/// What a client may send at once before it gave a password.
const UNAUTHENTICATED_LIMITS: Limits = Limits {
    item_bytes_max: 2 << 10,
};

/// One client's session.
pub(crate) struct Session {
    protocol: Protocol,
    parser: Parser,
    /// There is no command before this many bytes are there.
    wanted: usize,
    /// Nothing more is carried out for this client.
    is_over: bool,
    /// Whether it gave a password, where one must be given.
    is_admitted: bool,
    /// What other workers found for its command that all have their part in.
    gathered: Option<Box<Gather>>,
    /// What other workers carry out for it.
    awaited: Option<Box<Awaited>>,
}

/// What a client speaks, which its first byte shows.
enum Protocol {
    Unknown,
    Text,
    Binary(binary_protocol::Parser),
}

/// Where replies go.
pub(crate) trait Outlet {
    /// Whether all commands are of this worker's keys: another worker saw to that.
    const IS_FORWARDED: bool = false;

    /// Where replies of other workers find it; `None` where they cannot.
    fn address(&self) -> Option<Address> {
        None
    }

    /// A command was carried out. Says whether `replies`, which are not sent yet, are to be sent before more are made.
    #[inline]
    fn replied(&mut self, replies: &[u8]) -> bool {
        replies.len() >= SEND_BYTES
    }

    /// Take `replies`, all of them, and leave none. Unless it is [`Status::Reading`], no more are to be made for now.
    fn send(&mut self, replies: &mut Vec<u8>, counters: &Counters) -> Status;

    /// Whether it takes values from where they lie.
    fn takes_values(&self) -> bool {
        false
    }

    /// As [`send`](Self::send), with `value` and `end` behind the replies.
    fn send_value(
        &mut self,
        replies: &mut Vec<u8>,
        value: &[u8],
        end: &[u8],
        counters: &Counters,
    ) -> Status {
        replies.extend_from_slice(value);
        replies.extend_from_slice(end);
        self.send(replies, counters)
    }
}

/// What a session waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// The client's next bytes.
    Reading,
    /// The client to take replies.
    Writing,
    /// Other workers' replies.
    Waiting,
    /// Nothing: it has ended.
    Ended,
    /// This worker, which the next command is for.
    OtherWorker(usize),
}

/// What a worker lends to the session whose turn it is.
pub(crate) struct Tools<'w, S> {
    pub context: Context<'w, S>,
    /// Those who may use the server; `None` where any client may.
    pub accounts: Option<&'w Accounts>,
    /// For what is received.
    pub scratch: &'w mut [u8],
    /// For replies; empty between sessions.
    pub out: &'w mut Vec<u8>,
    /// For binary keys.
    pub key_buffers: &'w mut [KeyBuffer; BURST],
    /// What other workers carry out.
    pub lanes: &'w mut Lanes,
}

impl Session {
    /// With a client that sent nothing yet, and need not give a password if it `is_admitted`.
    pub fn new(state: &ServerState, is_admitted: bool) -> Self {
        Self {
            protocol: match state.options.protocols {
                // Only the text protocol has a way to give a password, and the first byte does not change that.
                _ if !is_admitted => Protocol::Text,
                Protocols::Any => Protocol::Unknown,
                Protocols::Text => Protocol::Text,
                Protocols::Binary => Protocol::Binary(binary_protocol::Parser::new(limits(state))),
            },
            parser: Parser::new(if is_admitted {
                limits(state)
            } else {
                UNAUTHENTICATED_LIMITS
            }),
            wanted: 0,
            is_over: false,
            is_admitted,
            gathered: None,
            awaited: None,
        }
    }

    /// There is no command before this many bytes are there.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Whether it ends once the replies are sent.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Carry out the commands in `bytes` and send the replies. Returns how many bytes are done with.
    pub fn run<S: Storage>(
        &mut self,
        bytes: &[u8],
        outlet: &mut impl Outlet,
        tools: &mut Tools<'_, S>,
    ) -> (usize, Status) {
        if matches!(self.protocol, Protocol::Unknown) && !bytes.is_empty() {
            self.protocol = if bytes[0] == binary_protocol::MAGIC {
                Protocol::Binary(binary_protocol::Parser::new(self.parser.limits()))
            } else {
                Protocol::Text
            };
        }
        tools.context.gathered = self.gathered.take();
        if !self.is_admitted {
            let (consumed, status) = self.ask_for_password(bytes, outlet, tools);
            if !self.is_admitted || status != Status::Reading {
                return (consumed, status);
            }
            let (more, status) = self.run_text(&bytes[consumed..], outlet, tools);
            return (consumed + more, status);
        }
        match &self.protocol {
            Protocol::Binary(_) => self.run_binary(bytes, outlet, tools),
            Protocol::Text | Protocol::Unknown => self.run_text(bytes, outlet, tools),
        }
    }

    /// Go on at another worker with what is behind the first `consumed` bytes.
    #[cold]
    fn move_to<S>(
        &mut self,
        worker: usize,
        consumed: usize,
        outlet: &mut impl Outlet,
        (context, replies): (&mut Context<'_, S>, &mut Vec<u8>),
    ) -> (usize, Status) {
        self.wanted = 0;
        self.gathered = context.gathered.take();
        match outlet.send(replies, context.counters) {
            Status::Ended => (consumed, Status::Ended),
            // Replies that the client does not take yet go along.
            _ => (consumed, Status::OtherWorker(worker)),
        }
    }

    /// There is no memory for what it sends: say so, as memcached does, and be done with it. All replies before are sent.
    #[cold]
    pub fn refuse<S>(&mut self, outlet: &mut impl Outlet, tools: &mut Tools<'_, S>) -> Status {
        tools.context.counters.add(Count::ReadsOutOfMemory, 1);
        self.is_over = true;
        match self.protocol {
            Protocol::Binary(_) => {
                let request = binary_protocol::Request {
                    opcode: 0,
                    opaque: 0,
                    cas: 0,
                    command: binary_protocol::Command::Noop,
                    quiet: false,
                };
                let status = binary_protocol::Status::OutOfMemory("out of memory reading request");
                binary_protocol::error(tools.out, &request, status, b"");
            }
            _ => reply::line(tools.out, b"SERVER_ERROR out of memory reading request"),
        }
        self.finish(0, outlet, tools).1
    }

    /// Send the replies to the first `consumed` bytes.
    fn finish<S>(
        &mut self,
        consumed: usize,
        outlet: &mut impl Outlet,
        tools: &mut Tools<'_, S>,
    ) -> (usize, Status) {
        if self.is_waiting() {
            return (consumed, self.wait(tools.out, tools.context.counters));
        }
        match outlet.send(tools.out, tools.context.counters) {
            Status::Reading if self.is_over => (consumed, Status::Ended),
            status => (consumed, status),
        }
    }

    /// There are many replies: send them. Says what is waited for if that keeps more from being made.
    fn send_many(
        &mut self,
        outlet: &mut impl Outlet,
        replies: &mut Vec<u8>,
        counters: &Counters,
    ) -> Option<Status> {
        let status = match self.is_waiting() {
            true => self.wait(replies, counters),
            false => outlet.send(replies, counters),
        };
        (status != Status::Reading).then_some(status)
    }
}

/// What is kept.
pub(crate) fn limits(state: &ServerState) -> Limits {
    Limits {
        item_bytes_max: state.item_bytes_max - mica::HEADER_BYTES,
    }
}
