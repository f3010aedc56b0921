//! What a server of the text protocol may answer to each command.

use crate::values::{Values, counted};
use wire::memcached::client::{Parsed, Reply, parse_reply};
use wire::memcached::server::{Command, Direction, Meta, MetaMode, Request, StoreMode, parse_u64};

/// `answer` is all that a server said to `request`: it must be a whole answer to that, and tell no value that was not
/// stored under the key.
pub(crate) fn check(request: &Request<'_>, answer: &[u8], values: &mut Values) {
    let mut said = Said {
        rest: answer,
        all: answer,
    };
    if request.quiet {
        assert!(answer.is_empty(), "a quiet request was answered: {said}");
        note_quiet(&request.command, values);
        return;
    }
    match request.command {
        Command::Get { key, .. } | Command::GetAndTouch { key, .. } => {
            return check_keys(&[key], answer, values);
        }
        Command::Store {
            mode, key, value, ..
        } => match said.reply() {
            Reply::Stored => note_stored(values, mode, key, value, false),
            Reply::NotStored | Reply::Refused(_) => {}
            other => panic!("{other:?}"),
        },
        Command::TooLarge { key, remove } => {
            assert!(matches!(said.reply(), Reply::Refused(_)), "{said}");
            if remove {
                values.removed(key);
            }
        }
        Command::Delete { key } => {
            if said.line_of(&[b"DELETED", b"NOT_FOUND"]) == b"DELETED" {
                values.removed(key);
            }
        }
        Command::Arithmetic { key, .. } => {
            let line = said.line();
            if let Some(number) = decimal(line) {
                values.changed(key, |before| counted(before, number));
            } else {
                assert!(
                    line == b"NOT_FOUND" || line.starts_with(b"CLIENT_ERROR "),
                    "{said}"
                );
            }
        }
        Command::Touch { .. } => _ = said.line_of(&[b"TOUCHED", b"NOT_FOUND"]),
        Command::Flush { delay } => {
            assert_eq!(said.line(), b"OK");
            if delay <= 0 {
                values.flushed();
            }
        }
        Command::Version => assert!(said.line().starts_with(b"VERSION 1.")),
        // Nothing is encrypted.
        Command::RefreshCertificates => assert_eq!(said.line(), b"ERROR"),
        Command::Stats { .. } => loop {
            let line = said.line();
            if [&b"END"[..], b"RESET", b"ERROR"].contains(&line) {
                break;
            }
            assert!(line.starts_with(b"STAT "), "{said}");
        },
        Command::Shutdown { .. } => assert_eq!(said.line(), b"ERROR: shutdown not enabled"),
        Command::Quit | Command::Disconnect("") => {}
        Command::MetaNoop => assert_eq!(said.reply(), Reply::MetaNoop),
        Command::MetaGet(ref meta) => meta_get(&mut said, meta, values),
        Command::MetaSet(ref meta, value) => meta_set(&mut said, meta, value, values),
        Command::MetaDelete(ref meta) => meta_delete(&mut said, meta, values),
        Command::MetaArithmetic(ref meta) => meta_arithmetic(&mut said, meta, values),
        Command::MetaDebug { .. } => {
            let line = said.line();
            assert!(line == b"EN" || line.starts_with(b"ME "), "{said}");
        }
        Command::Answer(line) | Command::Disconnect(line) => {
            assert_eq!(said.line(), line.as_bytes());
        }
    }
    assert!(said.rest.is_empty(), "more than an answer: {said}");
}

/// `answer` is all that a server said to a line of these keys.
pub(crate) fn check_keys(keys: &[&[u8]], answer: &[u8], values: &mut Values) {
    let mut said = Said {
        rest: answer,
        all: answer,
    };
    let mut left = keys.iter();
    loop {
        match said.reply() {
            Reply::End => break,
            // Keys that are not there are passed over.
            Reply::Value { key, value, .. } => {
                assert!(
                    left.any(|left| *left == key),
                    "{} was not asked for, or not here: {said}",
                    key.escape_ascii()
                );
                values.hit(key, value);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(said.rest.is_empty(), "more than an answer: {said}");
}

/// An answer, and what of it was not looked at yet.
struct Said<'a> {
    rest: &'a [u8],
    all: &'a [u8],
}

impl std::fmt::Display for Said<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.all.escape_ascii())
    }
}

impl<'a> Said<'a> {
    /// As a client reads it.
    fn reply(&mut self) -> Reply<'a> {
        match parse_reply(self.rest) {
            Ok(Parsed::Complete { reply, length }) => {
                self.rest = &self.rest[length..];
                reply
            }
            other => panic!("{other:?} of {self}"),
        }
    }

    fn line(&mut self) -> &'a [u8] {
        let end = memchr::memmem::find(self.rest, b"\r\n");
        let Some(end) = end else {
            panic!("no line in {self}");
        };
        let (line, rest) = self.rest.split_at(end);
        self.rest = &rest[2..];
        line
    }

    fn line_of(&mut self, lines: &[&[u8]]) -> &'a [u8] {
        let line = self.line();
        assert!(lines.contains(&line), "{self}");
        line
    }
}

fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Nobody was told what became of it.
fn note_quiet(command: &Command<'_>, values: &mut Values) {
    match *command {
        Command::Store {
            mode, key, value, ..
        } => match mode {
            StoreMode::Append => {
                values.maybe_changed(key, |before| [before, value].concat());
            }
            StoreMode::Prepend => {
                values.maybe_changed(key, |before| [value, before].concat());
            }
            _ => values.maybe_stored(key, value),
        },
        Command::TooLarge { key, remove: true } => values.removed(key),
        Command::Arithmetic {
            key,
            direction,
            delta,
        } => values.maybe_changed(key, |before| match (parse_u64(before), direction) {
            (None, _) => before.to_vec(),
            (Some(number), Direction::Up) => counted(before, number.wrapping_add(delta)),
            (Some(number), Direction::Down) => counted(before, number.saturating_sub(delta)),
        }),
        _ => {}
    }
}

/// `or_alone`: it may also have become the value where there was nothing.
fn note_stored(values: &mut Values, mode: StoreMode, key: &[u8], value: &[u8], or_alone: bool) {
    match mode {
        StoreMode::Append => values.changed(key, |before| [before, value].concat()),
        StoreMode::Prepend => values.changed(key, |before| [value, before].concat()),
        _ => return values.stored(key, value),
    }
    if or_alone {
        values.maybe_stored(key, value);
    }
}

fn meta_get(said: &mut Said<'_>, meta: &Meta<'_>, values: &mut Values) {
    if meta.vivify.is_some() {
        values.maybe_stored(meta.key, b"");
    }
    if meta.quiet && said.all.is_empty() {
        return;
    }
    match said.reply() {
        Reply::MetaValue { flags, value } => {
            assert!(meta.value);
            check_flags(flags, meta, Some(value.len()));
            values.hit(meta.key, value);
        }
        Reply::MetaDone { flags } => check_flags(flags, meta, None),
        Reply::MetaMiss => assert!(!meta.quiet),
        other => panic!("{other:?}"),
    }
}

fn meta_set(said: &mut Said<'_>, meta: &Meta<'_>, value: &[u8], values: &mut Values) {
    if !said.all.is_empty() {
        match said.reply() {
            Reply::MetaDone { flags } => check_flags(flags, meta, None),
            Reply::MetaNotStored | Reply::Refused(_) => return,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(said.all.is_empty(), meta.quiet, "{said}");
    let mode = match meta.mode {
        Some(MetaMode::Store(mode)) => mode,
        _ => StoreMode::Set,
    };
    note_stored(values, mode, meta.key, value, meta.vivify.is_some());
}

fn meta_delete(said: &mut Said<'_>, meta: &Meta<'_>, values: &mut Values) {
    if !said.all.is_empty() {
        match said.reply() {
            Reply::MetaDone { flags } => check_flags(flags, meta, None),
            Reply::MetaNotStored => return,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(said.all.is_empty(), meta.quiet, "{said}");
    if meta.remove_value {
        values.stored(meta.key, b"");
    } else if !meta.invalidate {
        values.removed(meta.key);
    }
}

fn meta_arithmetic(said: &mut Said<'_>, meta: &Meta<'_>, values: &mut Values) {
    let number = if said.all.is_empty() {
        assert!(meta.quiet);
        None
    } else {
        match said.reply() {
            Reply::MetaValue { flags, value } => {
                check_flags(flags, meta, Some(value.len()));
                Some(decimal(value).expect("a number"))
            }
            Reply::MetaDone { flags } => {
                check_flags(flags, meta, None);
                None
            }
            Reply::MetaNotStored | Reply::Refused(_) => return,
            other => panic!("{other:?}"),
        }
    };
    let initial = meta.initial.to_string();
    match number {
        Some(number) => {
            values.changed(meta.key, |before| counted(before, number));
            if meta.vivify.is_some() && number == meta.initial {
                values.maybe_stored(meta.key, initial.as_bytes());
            }
        }
        None => {
            values.changed(meta.key, |before| match (parse_u64(before), meta.mode) {
                (None, _) => before.to_vec(),
                (Some(number), Some(MetaMode::Count(Direction::Down))) => {
                    counted(before, number.saturating_sub(meta.delta))
                }
                (Some(number), _) => counted(before, number.wrapping_add(meta.delta)),
            });
            if meta.vivify.is_some() {
                values.maybe_stored(meta.key, initial.as_bytes());
            }
        }
    }
}

/// The flags of an answer are some that it may have, and what they tell of key and value is so.
fn check_flags(flags: &[u8], meta: &Meta<'_>, value_bytes: Option<usize>) {
    for flag in flags.split(|&byte| byte == b' ') {
        let Some((&letter, token)) = flag.split_first() else {
            continue;
        };
        match letter {
            b'k' => assert!(
                token == meta.key || token == base64(meta.key),
                "{} is not the key that was asked for",
                token.escape_ascii()
            ),
            b's' => {
                let size = decimal(token).expect("a size");
                assert!(value_bytes.is_none_or(|bytes| size == bytes as u64));
            }
            b'c' | b'f' | b'h' | b'l' => assert!(decimal(token).is_some()),
            b't' => assert!(token == b"-1" || decimal(token).is_some()),
            b'O' => {}
            b'b' | b'W' | b'X' | b'Z' => assert!(token.is_empty()),
            _ => panic!("no such flag: {}", flag.escape_ascii()),
        }
    }
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    wire::memcached::server::reply::key(&mut out, bytes, true);
    out
}
