//! Command lines of the classic commands. Which mistake is told first is memcached's order.

use super::command::{Command, Direction, StoreMode};
use super::line::{Line, Store, Words, whole};
use super::number::{parse_i32, parse_u32, parse_u64};
use super::{KEY_BYTES_MAX, administration};

const ERROR: &str = "ERROR";
const BAD_LINE: &str = "CLIENT_ERROR bad command line format";
const BAD_EXPTIME: &str = "CLIENT_ERROR invalid exptime argument";

/// As memcached takes them in front of a line that is long. Were there no limit, the beginning of a line would not tell
/// what the whole of it does.
const SPACES_IN_FRONT_MAX: usize = 100;

/// Whether a line (or the start of one) is of keys to read, and may be long.
#[inline]
pub(super) fn is_keys_line(line: &[u8]) -> bool {
    let front = &line[..line.len().min(SPACES_IN_FRONT_MAX + b"gets ".len())];
    let spaces = front.iter().take_while(|&&byte| byte == b' ').count();
    spaces <= SPACES_IN_FRONT_MAX && verb(front).is_some()
}

/// The verb of a line of keys: whether it wants CAS numbers, whether an expiration time follows, and where it ends.
#[inline]
fn verb(line: &[u8]) -> Option<(bool, bool, usize)> {
    let start = line.iter().position(|&byte| byte != b' ')?;
    let line = &line[start..];
    Some(match line {
        [b'g', b'e', b't', b' ', ..] => (false, false, start + 4),
        // As old as the protocol, and the same.
        [b'b', b'g', b'e', b't', b' ', ..] => (false, false, start + 5),
        [b'g', b'e', b't', b's', b' ', ..] => (true, false, start + 5),
        [b'g', b'a', b't', b' ', ..] => (false, true, start + 4),
        [b'g', b'a', b't', b's', b' ', ..] => (true, true, start + 5),
        _ => return None,
    })
}

/// A line of keys to read, if it is one.
#[inline]
pub(super) fn keys_line(line: &[u8]) -> Option<Line<'_>> {
    let (with_cas, touch, end) = verb(line)?;
    let keys = line[end..].trim_ascii_start_spaces();
    if keys.is_empty() {
        return Some(whole(Command::Answer(ERROR), false));
    }
    if !touch {
        return Some(Line::Keys {
            with_cas,
            exptime: None,
            keys,
        });
    }
    let length = keys
        .iter()
        .position(|&byte| byte == b' ')
        .unwrap_or(keys.len());
    let Some(exptime) = parse_i32(&keys[..length]) else {
        return Some(whole(Command::Answer(BAD_EXPTIME), false));
    };
    Some(Line::Keys {
        with_cas,
        exptime: Some(exptime),
        keys: &keys[length..],
    })
}

trait TrimSpaces {
    fn trim_ascii_start_spaces(&self) -> &Self;
}

impl TrimSpaces for [u8] {
    #[inline]
    fn trim_ascii_start_spaces(&self) -> &Self {
        let start = self
            .iter()
            .position(|&byte| byte != b' ')
            .unwrap_or(self.len());
        &self[start..]
    }
}

/// Any other classic command.
pub(super) fn parse<'a>(words: &Words<'a>) -> Line<'a> {
    let quiet = words.count() > 1 && words.last() == b"noreply";
    let command = match words.get(0) {
        b"set" => return store(words, StoreMode::Set, quiet),
        b"add" => return store(words, StoreMode::Add, quiet),
        b"replace" => return store(words, StoreMode::Replace, quiet),
        b"append" => return store(words, StoreMode::Append, quiet),
        b"prepend" => return store(words, StoreMode::Prepend, quiet),
        b"cas" => return store(words, StoreMode::Cas, quiet),
        // What could be a key is one.
        b"delete" if words.count() == 2 => return whole(delete(words, false), false),
        b"delete" => delete(words, quiet),
        b"incr" => arithmetic(words, Direction::Up),
        b"decr" => arithmetic(words, Direction::Down),
        b"touch" => touch(words),
        b"flush_all" => flush(words, quiet),
        b"verbosity" => verbosity(words),
        // These take no `noreply`.
        b"version" => return whole(Command::Version, false),
        b"refresh_certs" => return whole(Command::RefreshCertificates, false),
        b"quit" => return whole(Command::Quit, false),
        b"shutdown" => return whole(shutdown(words), false),
        b"stats" if !matches!(words.get(1), b"cachedump" | b"detail") => {
            let section = words.get(1);
            return whole(Command::Stats { section }, false);
        }
        _ if words.last().starts_with(b"HTTP/") => return whole(Command::Disconnect(""), false),
        _ => Command::Answer(administration::answer(words)),
    };
    // A line of the wrong length is answered before `noreply` is looked for.
    let quiet = quiet && command != Command::Answer(ERROR);
    whole(command, quiet)
}

fn store<'a>(words: &Words<'a>, mode: StoreMode, quiet: bool) -> Line<'a> {
    let fixed = if mode == StoreMode::Cas { 6 } else { 5 };
    if words.count() != fixed && words.count() != fixed + 1 {
        return whole(Command::Answer(ERROR), false);
    }
    let key = words.get(1);
    let parsed = || {
        let flags = parse_u32(words.get(2))?;
        let exptime = parse_i32(words.get(3))?;
        let bytes = parse_i32(words.get(4))?;
        let cas = if mode == StoreMode::Cas {
            parse_u64(words.get(5))?
        } else {
            0
        };
        // Room for the line end behind the value, in the type that memcached counts with.
        let bytes = usize::try_from(bytes)
            .ok()
            .filter(|&bytes| bytes <= i32::MAX as usize - 2)?;
        Some((flags, exptime, bytes, cas))
    };
    match parsed() {
        Some((flags, exptime, bytes, cas)) if key.len() <= KEY_BYTES_MAX => Line::Value {
            store: Store::Classic {
                mode,
                key,
                flags,
                exptime,
                cas,
            },
            quiet,
            bytes,
        },
        _ => whole(Command::Answer(BAD_LINE), quiet),
    }
}

fn delete<'a>(words: &Words<'a>, quiet: bool) -> Command<'a> {
    let zero = words.get(2) == b"0";
    let valid = match words.count() {
        2 => true,
        // A time was once an argument; 0 is what is left of it.
        3 => zero || quiet,
        4 => zero && quiet,
        _ => return Command::Answer(ERROR),
    };
    if !valid {
        return Command::Answer(
            "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]",
        );
    }
    with_key(words, |key| Command::Delete { key })
}

fn arithmetic<'a>(words: &Words<'a>, direction: Direction) -> Command<'a> {
    if !(3..=4).contains(&words.count()) {
        return Command::Answer(ERROR);
    }
    with_key(words, |key| match parse_u64(words.get(2)) {
        Some(delta) => Command::Arithmetic {
            key,
            direction,
            delta,
        },
        None => Command::Answer("CLIENT_ERROR invalid numeric delta argument"),
    })
}

fn touch<'a>(words: &Words<'a>) -> Command<'a> {
    if !(3..=4).contains(&words.count()) {
        return Command::Answer(ERROR);
    }
    with_key(words, |key| match parse_i32(words.get(2)) {
        Some(exptime) => Command::Touch { key, exptime },
        None => Command::Answer(BAD_EXPTIME),
    })
}

fn flush<'a>(words: &Words<'a>, quiet: bool) -> Command<'a> {
    match words.count() {
        1 => Command::Flush { delay: 0 },
        2 if quiet => Command::Flush { delay: 0 },
        2 | 3 => match parse_i32(words.get(1)) {
            Some(delay) => Command::Flush { delay },
            None => Command::Answer(BAD_EXPTIME),
        },
        _ => Command::Answer(ERROR),
    }
}

fn verbosity<'a>(words: &Words<'a>) -> Command<'a> {
    if !(2..=3).contains(&words.count()) {
        return Command::Answer(ERROR);
    }
    // Nothing is logged per command at any level.
    Command::Answer(parse_u32(words.get(1)).map_or(BAD_LINE, |_| "OK"))
}

fn shutdown<'a>(words: &Words<'a>) -> Command<'a> {
    Command::Shutdown {
        has_mode: matches!((words.count(), words.get(1)), (1, _) | (2, b"graceful")),
    }
}

fn with_key<'a>(words: &Words<'a>, command: impl FnOnce(&'a [u8]) -> Command<'a>) -> Command<'a> {
    let key = words.get(1);
    if key.len() > KEY_BYTES_MAX {
        Command::Answer(BAD_LINE)
    } else {
        command(key)
    }
}
