use super::command::{Command, Request, StoreMode};
use super::line::{Line, Store, Words};
use super::{KEY_BYTES_MAX, KEYS_LINE_BYTES_MAX, LINE_BYTES_MAX, classic, meta};
use memchr::{memchr, memrchr};

/// What a server keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most that key and value together may have, in bytes. Longer values are skipped as they arrive.
    pub item_bytes_max: usize,
}

/// Turns the bytes of one connection into commands.
///
/// The caller keeps the bytes: it hands over all that it has from the first byte not yet consumed on, and forgets
/// what was consumed once it is done with the command. However the stream is cut into pieces, the commands are the
/// same. Nothing is allocated, and no byte of a value is looked at before all of it is there.
#[derive(Debug)]
pub struct Parser {
    limits: Limits,
    state: State,
}

/// Where a binary key is decoded to.
#[derive(Debug, Clone)]
pub struct KeyBuffer([u8; KEY_BYTES_MAX]);

impl Default for KeyBuffer {
    fn default() -> Self {
        Self([0; KEY_BYTES_MAX])
    }
}

/// What [`Parser::next`] found.
pub type Step<'a> = crate::memcached::Step<Request<'a>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the start of a line, `scanned` bytes of which are known not to end it.
    Line { scanned: usize },
    /// Within a line of keys.
    Keys(Keys),
    /// Within a value that is skipped, this many bytes before its end.
    Skip(u64),
}

/// What is left of a line of keys to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Keys {
    with_cas: bool,
    exptime: Option<i32>,
    /// Bytes of keys.
    left: usize,
    /// Bytes behind them, up to the next line.
    end: usize,
}

const NEW_LINE: State = State::Line { scanned: 0 };
const BAD_LINE: &str = "CLIENT_ERROR bad command line format";

impl Parser {
    /// A parser at the start of a connection.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: NEW_LINE,
        }
    }

    /// The next command of `input`, and how many bytes of `input` were consumed. Bytes may be consumed without
    /// there being a command. A binary key is decoded into `room`, which is not the parser's own so that several
    /// commands can be looked at together.
    #[inline]
    pub fn next<'a>(&mut self, input: &'a [u8], room: &'a mut KeyBuffer) -> (usize, Step<'a>) {
        match self.state {
            State::Line { scanned } => self.line(input, scanned, room),
            State::Keys(keys) => next_key(&mut self.state, input, keys),
            State::Skip(bytes) => {
                let skipped = bytes.min(input.len() as u64);
                if skipped < bytes {
                    self.state = State::Skip(bytes - skipped);
                    return (input.len(), Step::Incomplete(1));
                }
                self.state = NEW_LINE;
                let (consumed, step) = self.line(&input[skipped as usize..], 0, room);
                (skipped as usize + consumed, step)
            }
        }
    }

    /// The next key to get, where `input` begins with a whole line `get KEY`, or is within a longer one, in the form in which
    /// nearly all clients send it: what [`next`](Self::next) would say of it, in a small part of the time. `None` says nothing.
    #[inline(always)]
    #[must_use]
    pub fn plain_get<'a>(&mut self, input: &'a [u8]) -> Option<PlainGet<'a>> {
        const VERB: &[u8] = b"get ";
        if let State::Keys(keys) = self.state {
            return self.plain_key(input, keys);
        }
        if !matches!(self.state, State::Line { scanned: 0 }) {
            return None;
        }
        let rest = input.strip_prefix(VERB)?;
        let length = printable(rest);
        let is_line = rest.get(length..length + 2) == Some(b"\r\n");
        (is_line && (1..=KEY_BYTES_MAX).contains(&length)).then(|| PlainGet {
            key: &rest[..length],
            consumed: VERB.len() + length + 2,
            left: 0,
        })
    }

    /// The next of `keys`, none of which is too long: that was seen when their line was. Apart, so that what is done for a
    /// line of its own stays short.
    #[inline(never)]
    fn plain_key<'a>(&mut self, input: &'a [u8], keys: Keys) -> Option<PlainGet<'a>> {
        if keys.with_cas || keys.exptime.is_some() || keys.end != 2 {
            return None;
        }
        let text = input.get(..keys.left + 2)?;
        let length = printable(text);
        let left = keys.left.saturating_sub(length + 1);
        // Behind it is one space and another key, or the end of the line.
        let is_plain = match left {
            0 => length == keys.left,
            _ => text[length] == b' ' && text[length + 1] > b' ',
        };
        if !is_plain || length == 0 {
            return None;
        }
        self.state = PlainGet::state_before(left);
        Some(PlainGet {
            key: &text[..length],
            consumed: length + if left == 0 { 2 } else { 1 },
            left,
        })
    }

    /// What it was made with.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// `input` starts with a line.
    #[inline]
    fn line<'a>(
        &mut self,
        input: &'a [u8],
        scanned: usize,
        room: &'a mut KeyBuffer,
    ) -> (usize, Step<'a>) {
        let newline = memchr(b'\n', input.get(scanned..).unwrap_or_default());
        let length = newline.map_or(input.len(), |at| scanned + at);
        if is_endless(input, length) {
            return (0, LINE_TOO_LONG);
        }
        if newline.is_none() {
            self.state = State::Line { scanned: length };
            return (0, Step::Incomplete(length + 1));
        }
        self.state = NEW_LINE;
        let line_end = length + 1;
        let line = content(&input[..length]);
        match parse_line(line, &mut room.0) {
            Line::Whole(request) => (line_end, Step::Request(request)),
            Line::Keys {
                with_cas,
                exptime,
                keys,
            } => {
                // Said before any item is, as memcached does.
                if has_long_key(keys) {
                    return (line_end, reject(BAD_LINE, false));
                }
                let start = line.len() - keys.len();
                let keys = Keys {
                    with_cas,
                    exptime,
                    left: keys.len(),
                    end: line_end - line.len(),
                };
                let (consumed, step) = next_key(&mut self.state, &input[start..], keys);
                (start + consumed, step)
            }
            Line::Value {
                store,
                quiet,
                bytes,
            } => value(
                &mut self.state,
                self.limits.item_bytes_max,
                (input, line_end),
                store,
                quiet,
                bytes,
            ),
            Line::Refused { error, bytes } => {
                self.state = State::Skip(bytes as u64 + 2);
                (line_end, reject(error, false))
            }
        }
    }

    /// Find no more commands in the line that the last one came from.
    pub fn abandon_line(&mut self) {
        if let State::Keys(keys) = self.state {
            self.state = State::Skip((keys.left + keys.end) as u64);
        }
    }

    /// Where the parser is, for [`restore`](Self::restore).
    #[inline]
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint(self.state)
    }

    /// Go back to where the parser was: what it found since is to be found again.
    #[inline]
    pub fn restore(&mut self, checkpoint: Checkpoint) {
        self.state = checkpoint.0;
    }
}

/// What [`Parser::plain_get`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainGet<'a> {
    /// What to get.
    pub key: &'a [u8],
    /// How many bytes are done with.
    pub consumed: usize,
    /// Bytes of keys behind it in its line; with none, the reply ends.
    pub left: usize,
}

impl PlainGet<'_> {
    /// Where the parser is while so many bytes of keys are left.
    #[inline]
    fn state_before(left: usize) -> State {
        if left == 0 {
            return NEW_LINE;
        }
        State::Keys(Keys {
            with_cas: false,
            exptime: None,
            left,
            end: 2,
        })
    }
}

/// A moment of a [`Parser`], after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint(State);

impl Checkpoint {
    /// Whether a command begins there: what comes next depends on nothing before.
    #[inline]
    #[must_use]
    pub fn is_line_start(&self) -> bool {
        matches!(self.0, State::Line { .. })
    }

    /// After a [`PlainGet`] that left so many bytes of keys.
    #[inline]
    #[must_use]
    pub fn plain(left: usize) -> Self {
        Self(PlainGet::state_before(left))
    }
}

impl Default for Checkpoint {
    /// Before a line.
    fn default() -> Self {
        Self(NEW_LINE)
    }
}

/// How many bytes come before the first that is a space or a control character.
#[inline]
fn printable(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut at = 0;
    while let Some(chunk) = bytes[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        // The highest bit of each byte that is less than 0x21, exact up to and including the first such byte.
        let low = word.wrapping_sub(ONES * 0x21) & !word & (ONES * 0x80);
        if low != 0 {
            return at + low.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    bytes[at..]
        .iter()
        .position(|&byte| byte <= b' ')
        .map_or(bytes.len(), |more| at + more)
}

/// Whether one of these keys is longer than a key may be; where none is, hardly a byte of them is looked at.
fn has_long_key(keys: &[u8]) -> bool {
    let mut rest = keys;
    while rest.len() > KEY_BYTES_MAX {
        match memrchr(b' ', &rest[..=KEY_BYTES_MAX]) {
            Some(space) => rest = &rest[space + 1..],
            None => return true,
        }
    }
    false
}

/// The next of `keys`, with which `input` starts.
#[inline]
fn next_key<'a>(state: &mut State, input: &'a [u8], keys: Keys) -> (usize, Step<'a>) {
    let Some(text) = input.get(..keys.left) else {
        return (0, Step::Incomplete(keys.left));
    };
    let start = skip_spaces(text, 0);
    let length = memchr(b' ', &text[start..]).unwrap_or(keys.left - start);
    let next = skip_spaces(text, start + length);
    let last = next == keys.left;
    *state = if last {
        NEW_LINE
    } else {
        State::Keys(Keys {
            left: keys.left - next,
            ..keys
        })
    };
    let key = &text[start..start + length];
    let with_cas = keys.with_cas;
    let command = match keys.exptime {
        None => Command::Get {
            key,
            with_cas,
            last,
        },
        Some(_) if key.is_empty() => Command::Answer("END"),
        Some(exptime) => Command::GetAndTouch {
            key,
            exptime,
            with_cas,
            last,
        },
    };
    let consumed = next + if last { keys.end } else { 0 };
    (
        consumed,
        Step::Request(Request {
            command,
            quiet: false,
        }),
    )
}

const LINE_TOO_LONG: Step<'static> = Step::Request(Request {
    command: Command::Disconnect("CLIENT_ERROR line too long"),
    quiet: false,
});

/// Whether a line that has `length` bytes so far is longer than its kind may be.
#[inline]
fn is_endless(line: &[u8], length: usize) -> bool {
    // The end of a line is a carriage return too.
    length > LINE_BYTES_MAX + 1
        && (length > KEYS_LINE_BYTES_MAX + 1 || !classic::is_keys_line(line))
}

/// A line without its carriage return, and without what a zero byte hides: memcached handles lines as C strings.
#[inline]
fn content(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    &line[..memchr(0, line).unwrap_or(line.len())]
}

#[inline]
fn skip_spaces(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at) == Some(&b' ') {
        at += 1;
    }
    at
}

#[inline]
fn parse_line<'a>(line: &'a [u8], key: &'a mut [u8; KEY_BYTES_MAX]) -> Line<'a> {
    if let Some(keys) = classic::keys_line(line) {
        return keys;
    }
    let words = Words::of(line);
    match words.get(0) {
        [b'm', kind] => meta::parse(*kind, &words, key),
        _ => classic::parse(&words),
    }
}

fn reject(error: &'static str, quiet: bool) -> Step<'static> {
    Step::Request(Request {
        command: Command::Answer(error),
        quiet,
    })
}

/// The value behind a line that `input` starts with and that ends at `line_end`.
#[inline]
fn value<'a>(
    state: &mut State,
    item_bytes_max: usize,
    (input, line_end): (&'a [u8], usize),
    store: Store<'a>,
    quiet: bool,
    bytes: usize,
) -> (usize, Step<'a>) {
    let key = match &store {
        Store::Classic { key, .. } => key,
        Store::Meta(meta) => meta.key,
    };
    if key.len() + bytes > item_bytes_max {
        *state = State::Skip(bytes as u64 + 2);
        let (remove, quiet) = match store {
            Store::Classic { mode, .. } => (mode == StoreMode::Set, quiet),
            Store::Meta(_) => (true, false),
        };
        let command = Command::TooLarge { key, remove };
        return (line_end, Step::Request(Request { command, quiet }));
    }
    let value_end = line_end + bytes;
    if input.len() < value_end + 2 {
        return (0, Step::Incomplete(value_end + 2));
    }
    if &input[value_end..value_end + 2] != b"\r\n" {
        let quiet = quiet && matches!(store, Store::Classic { .. });
        return (value_end + 2, reject("CLIENT_ERROR bad data chunk", quiet));
    }
    let value = &input[line_end..value_end];
    let command = match store {
        Store::Classic {
            mode,
            key,
            flags,
            exptime,
            cas,
        } => Command::Store {
            mode,
            key,
            flags,
            exptime,
            cas,
            value,
        },
        Store::Meta(meta) => Command::MetaSet(meta, value),
    };
    (value_end + 2, Step::Request(Request { command, quiet }))
}
