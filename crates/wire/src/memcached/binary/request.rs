use super::status::Status;
use crate::memcached::server::{Direction, KEY_BYTES_MAX, Limits, StoreMode};

/// The first byte of every request: no line of the text protocol begins with it.
pub const MAGIC: u8 = 0x80;

/// In front of extras, key and value.
pub const HEADER_BYTES: usize = 24;

/// A longer body is no request, whatever items may be.
const BODY_BYTES_MAX: usize = 1 << 30;

/// What a client asks for, and how it is to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// As it came, for the answer.
    pub opcode: u8,
    /// Sent back as it came.
    pub opaque: u32,
    /// The CAS number to compare; 0 for none.
    pub cas: u64,
    /// What to do.
    pub command: Command<'a>,
    /// Only what is not expected is answered: hits of a get, failures of anything else.
    pub quiet: bool,
}

/// What to do. Expiration times are as those of the text protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command<'a> {
    /// Get, touch, or both.
    Get {
        /// The key.
        key: &'a [u8],
        /// Answer with the key.
        with_key: bool,
        /// Answer with the value; else with the flags only.
        with_value: bool,
        /// The item's new expiration time, if it gets one.
        exptime: Option<i32>,
    },
    /// Store a value. A CAS number that is not 0 must be the item's.
    Store {
        /// How.
        mode: StoreMode,
        /// The key.
        key: &'a [u8],
        /// The client's flags.
        flags: u32,
        /// When it expires.
        exptime: i32,
        /// The value.
        value: &'a [u8],
    },
    /// A value that is too large; the parser skips it. To keep nothing out of date, `remove` says to remove `key`.
    TooLarge {
        /// The key.
        key: &'a [u8],
        /// Whether an item that is there must go.
        remove: bool,
    },
    /// Remove an item.
    Delete {
        /// The key.
        key: &'a [u8],
    },
    /// Count.
    Arithmetic {
        /// The key.
        key: &'a [u8],
        /// Up or down.
        direction: Direction,
        /// By how much.
        delta: u64,
        /// What to store where there is no item, and when that expires; `None` to store nothing.
        initial: Option<(u64, i32)>,
    },
    /// Forget all items, at once where `delay` is not positive.
    Flush {
        /// When, as an expiration time.
        delay: i32,
    },
    /// Do nothing, and say so.
    Noop,
    /// Tell the version.
    Version,
    /// Tell statistics.
    Stats {
        /// Which; empty for the general ones.
        section: &'a [u8],
    },
    /// Close once earlier answers are sent.
    Quit,
    /// It cannot be carried out.
    Refuse(Refusal),
}

/// Why a request is refused, and whether the connection can go on after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// What to answer; `None` for nothing, as this is not a client of this protocol.
    pub status: Option<Status>,
    /// Nobody knows where the next request begins.
    pub close: bool,
}

impl<'a> Command<'a> {
    /// The key it is about, if it is about one.
    pub fn key(&self) -> Option<&'a [u8]> {
        match *self {
            Self::Get { key, .. }
            | Self::Store { key, .. }
            | Self::TooLarge { key, .. }
            | Self::Delete { key }
            | Self::Arithmetic { key, .. } => Some(key),
            _ => None,
        }
    }
}

/// Turns the bytes of one connection into requests, as the text protocol's parser does.
#[derive(Debug, Clone)]
pub struct Parser {
    limits: Limits,
    /// Bytes of a body that is skipped, still to come.
    skip: usize,
}

/// What [`Parser::next`] found.
pub type Step<'a> = crate::memcached::Step<Request<'a>>;

impl Parser {
    /// A parser at the start of a connection.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, skip: 0 }
    }

    /// Whether a request begins where it is: it is not within what is skipped.
    #[must_use]
    pub fn is_at_start(&self) -> bool {
        self.skip == 0
    }

    /// The next request of `input`, and how many bytes of `input` were consumed. Bytes may be consumed without there
    /// being a request.
    pub fn next<'a>(&mut self, input: &'a [u8]) -> (usize, Step<'a>) {
        let skipped = self.skip.min(input.len());
        self.skip -= skipped;
        let input = &input[skipped..];
        if self.skip > 0 {
            return (skipped, Step::Incomplete(1));
        }
        let (consumed, step) = self.request(input);
        (skipped + consumed, step)
    }

    fn request<'a>(&mut self, input: &'a [u8]) -> (usize, Step<'a>) {
        let Some(header) = input.first_chunk::<HEADER_BYTES>() else {
            // Somebody else's protocol is told by its first byte.
            return match input.first() {
                None => (0, Step::Incomplete(1)),
                Some(&MAGIC) => (0, Step::Incomplete(HEADER_BYTES)),
                Some(_) => (0, Step::Request(disconnect(None))),
            };
        };
        let header = Header::decode(header);
        if header.magic != MAGIC {
            return (0, Step::Request(disconnect(None)));
        }
        let request = |command| {
            Step::Request(Request {
                opcode: header.opcode,
                opaque: header.opaque,
                cas: header.cas,
                command,
                quiet: is_quiet(header.opcode),
            })
        };
        let refuse = |status, close| {
            request(Command::Refuse(Refusal {
                status: Some(status),
                close,
            }))
        };
        if header.key_bytes + header.extras_bytes > header.body_bytes {
            return (HEADER_BYTES, refuse(Status::UnknownCommand, true));
        }
        if header.body_bytes > BODY_BYTES_MAX || header.key_bytes > KEY_BYTES_MAX {
            return (HEADER_BYTES, refuse(Status::InvalidArguments, true));
        }
        let front = HEADER_BYTES + header.extras_bytes + header.key_bytes;
        if input.len() < front {
            return (0, Step::Incomplete(front));
        }
        let end = HEADER_BYTES + header.body_bytes;
        let extras = &input[HEADER_BYTES..][..header.extras_bytes];
        let key = &input[HEADER_BYTES + header.extras_bytes..front];
        let parts = match Parts::of(&header, extras, key) {
            Ok(parts) => parts,
            Err(status @ Status::UnknownCommand) => {
                self.skip = end - front;
                return (front, refuse(status, false));
            }
            Err(status) => return (front, refuse(status, true)),
        };
        let value_bytes = end - front;
        let (mode, flags, exptime) = match parts {
            Parts::Whole(command) => {
                // Behind a get there may be a value that has no meaning: nobody keeps that until all of it is there.
                self.skip = value_bytes;
                return (front, request(command));
            }
            Parts::Store {
                mode,
                flags,
                exptime,
            } => (mode, flags, exptime),
        };
        if header.key_bytes + value_bytes > self.limits.item_bytes_max {
            self.skip = value_bytes;
            let remove = mode == StoreMode::Set;
            return (front, request(Command::TooLarge { key, remove }));
        }
        if input.len() < end {
            return (0, Step::Incomplete(end));
        }
        let command = Command::Store {
            mode,
            key,
            flags,
            exptime,
            value: &input[front..end],
        };
        (end, request(command))
    }
}

fn disconnect(status: Option<Status>) -> Request<'static> {
    Request {
        opcode: 0,
        opaque: 0,
        cas: 0,
        command: Command::Refuse(Refusal {
            status,
            close: true,
        }),
        quiet: false,
    }
}

struct Header {
    magic: u8,
    opcode: u8,
    key_bytes: usize,
    extras_bytes: usize,
    body_bytes: usize,
    opaque: u32,
    cas: u64,
}

impl Header {
    fn decode(bytes: &[u8; HEADER_BYTES]) -> Self {
        Self {
            magic: bytes[0],
            opcode: bytes[1],
            key_bytes: usize::from(u16::from_be_bytes([bytes[2], bytes[3]])),
            extras_bytes: usize::from(bytes[4]),
            body_bytes: word(bytes, 8) as usize,
            opaque: word(bytes, 12),
            cas: long(bytes, 16),
        }
    }
}

/// A request as far as header, extras and key tell.
enum Parts<'a> {
    Whole(Command<'a>),
    Store {
        mode: StoreMode,
        flags: u32,
        exptime: i32,
    },
}

impl<'a> Parts<'a> {
    fn of(header: &Header, extras: &[u8], key: &'a [u8]) -> Result<Self, Status> {
        let body_bytes = header.body_bytes;
        let has_value = body_bytes > extras.len() + key.len();
        let valid = |valid: bool, parts: Self| {
            if valid {
                Ok(parts)
            } else {
                Err(Status::InvalidArguments)
            }
        };
        let only_key = !key.is_empty() && extras.is_empty() && !has_value;
        let nothing = body_bytes == 0;
        match header.opcode {
            opcode @ (0x00 | 0x09 | 0x0c | 0x0d) => valid(
                only_key,
                Self::Whole(Command::Get {
                    key,
                    with_key: opcode >= 0x0c,
                    with_value: true,
                    exptime: None,
                }),
            ),
            opcode @ (0x1c | 0x1d | 0x1e | 0x23 | 0x24) => valid(
                extras.len() == 4 && !key.is_empty(),
                Self::Whole(Command::Get {
                    key,
                    with_key: opcode >= 0x23,
                    with_value: opcode != 0x1c,
                    exptime: Some(exptime(extras, 0)),
                }),
            ),
            opcode @ (0x01 | 0x02 | 0x03 | 0x11 | 0x12 | 0x13) => valid(
                extras.len() == 8 && !key.is_empty(),
                Self::Store {
                    mode: match opcode & 0x0f {
                        1 => StoreMode::Set,
                        2 => StoreMode::Add,
                        _ => StoreMode::Replace,
                    },
                    flags: word(extras, 0),
                    exptime: exptime(extras, 4),
                },
            ),
            opcode @ (0x0e | 0x0f | 0x19 | 0x1a) => valid(
                extras.is_empty() && !key.is_empty(),
                Self::Store {
                    mode: if matches!(opcode, 0x0e | 0x19) {
                        StoreMode::Append
                    } else {
                        StoreMode::Prepend
                    },
                    flags: 0,
                    exptime: 0,
                },
            ),
            0x04 | 0x14 => valid(only_key, Self::Whole(Command::Delete { key })),
            opcode @ (0x05 | 0x06 | 0x15 | 0x16) => valid(
                extras.len() == 20 && !key.is_empty() && !has_value,
                Self::Whole(Command::Arithmetic {
                    key,
                    direction: if opcode & 0x0f == 5 {
                        Direction::Up
                    } else {
                        Direction::Down
                    },
                    delta: long(extras, 0),
                    initial: (word(extras, 16) != u32::MAX)
                        .then(|| (long(extras, 8), exptime(extras, 16))),
                }),
            ),
            0x07 | 0x17 => valid(nothing, Self::Whole(Command::Quit)),
            0x08 | 0x18 => valid(
                key.is_empty() && !has_value && matches!(extras.len(), 0 | 4),
                Self::Whole(Command::Flush {
                    delay: exptime(extras, 0),
                }),
            ),
            0x0a => valid(nothing, Self::Whole(Command::Noop)),
            0x0b => valid(nothing, Self::Whole(Command::Version)),
            0x10 => valid(
                extras.is_empty(),
                Self::Whole(Command::Stats { section: key }),
            ),
            _ => Err(Status::UnknownCommand),
        }
    }
}

fn is_quiet(opcode: u8) -> bool {
    matches!(opcode, 0x09 | 0x0d | 0x11..=0x1a | 0x1e | 0x24)
}

/// What is not there is 0.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..)
        .and_then(<[u8]>::first_chunk)
        .map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..)
        .and_then(<[u8]>::first_chunk)
        .map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// Unsigned on the wire: what the text protocol could not say is a moment far ahead.
fn exptime(bytes: &[u8], at: usize) -> i32 {
    i32::try_from(word(bytes, at)).unwrap_or(i32::MAX)
}
