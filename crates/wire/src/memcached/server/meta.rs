//! Command lines of the meta commands. Which mistake is told first is memcached's order.

use super::base64;
use super::command::{Command, Direction, Meta, MetaMode, StoreMode, tokens};
use super::line::{Line, Store, Words, whole};
use super::number::{parse_i32, parse_u32, parse_u64};
use super::{KEY_BYTES_MAX, OPAQUE_BYTES_MAX};

const BAD_LINE: &str = "CLIENT_ERROR bad command line format";
const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";
const OPAQUE_TOO_LONG: &str = "CLIENT_ERROR opaque token too long";

/// Words of the longest meta command.
const WORDS_MAX: usize = 19;

/// A line that starts with `m` and `kind`; a binary key is decoded into `room`.
pub(super) fn parse<'a>(
    kind: u8,
    words: &Words<'a>,
    room: &'a mut [u8; KEY_BYTES_MAX],
) -> Line<'a> {
    match kind {
        b'g' | b's' | b'd' | b'a' if words.count() < 2 => reject("ERROR"),
        b'g' | b's' | b'd' | b'a' if words.get(1).len() > KEY_BYTES_MAX => reject(BAD_LINE),
        b'g' => get(words, room),
        b's' => set(words, room),
        b'd' => delete(words, room),
        b'a' => arithmetic(words, room),
        b'n' => whole(Command::MetaNoop, false),
        b'e' => debug(words, room),
        _ => reject("ERROR"),
    }
}

fn get<'a>(words: &Words<'a>, room: &'a mut [u8; KEY_BYTES_MAX]) -> Line<'a> {
    if words.count() > WORDS_MAX {
        return reject("CLIENT_ERROR options flags are too long");
    }
    match Flags::parse(words, 2, room) {
        Err(error) => reject(error),
        Ok(flags) if flags.opaque_too_long => reject(OPAQUE_TOO_LONG),
        Ok(flags) => whole(Command::MetaGet(flags.meta), false),
    }
}

fn set<'a>(words: &Words<'a>, room: &'a mut [u8; KEY_BYTES_MAX]) -> Line<'a> {
    if words.count() == 2 {
        return reject(BAD_LINE);
    }
    if words.count() > WORDS_MAX {
        return reject("CLIENT_ERROR options flags too long");
    }
    let Some(bytes) = parse_i32(words.get(2))
        .and_then(|bytes| usize::try_from(bytes).ok())
        .filter(|&bytes| bytes <= i32::MAX as usize - 2)
    else {
        return reject(BAD_LINE);
    };
    let refused = |error| Line::Refused { error, bytes };
    let mut flags = match Flags::parse(words, 3, room) {
        Err(error) => return refused(error),
        Ok(flags) => flags,
    };
    flags.meta.mode = match flags.mode {
        None => None,
        Some(b'E') => Some(MetaMode::Store(StoreMode::Add)),
        Some(b'A') => Some(MetaMode::Store(StoreMode::Append)),
        Some(b'P') => Some(MetaMode::Store(StoreMode::Prepend)),
        Some(b'R') => Some(MetaMode::Store(StoreMode::Replace)),
        Some(b'S') => Some(MetaMode::Store(StoreMode::Set)),
        Some(_) => return refused("CLIENT_ERROR invalid mode for ms M token"),
    };
    if flags.opaque_too_long {
        return refused(OPAQUE_TOO_LONG);
    }
    Line::Value {
        store: Store::Meta(flags.meta),
        quiet: false,
        bytes,
    }
}

fn delete<'a>(words: &Words<'a>, room: &'a mut [u8; KEY_BYTES_MAX]) -> Line<'a> {
    match short_flags(words, room) {
        Err(error) => reject(error),
        Ok(flags) if flags.opaque_too_long => reject(OPAQUE_TOO_LONG),
        Ok(flags) => whole(Command::MetaDelete(flags.meta), false),
    }
}

fn arithmetic<'a>(words: &Words<'a>, room: &'a mut [u8; KEY_BYTES_MAX]) -> Line<'a> {
    let mut flags = match short_flags(words, room) {
        Err(error) => return reject(error),
        Ok(flags) => flags,
    };
    flags.meta.mode = match flags.mode {
        None => None,
        Some(b'I' | b'+') => Some(MetaMode::Count(Direction::Up)),
        Some(b'D' | b'-') => Some(MetaMode::Count(Direction::Down)),
        Some(_) => return reject("CLIENT_ERROR invalid mode for ma M token"),
    };
    if flags.opaque_too_long {
        return reject(OPAQUE_TOO_LONG);
    }
    whole(Command::MetaArithmetic(flags.meta), false)
}

/// The flags of `md` and `ma`, which tell all mistakes alike.
fn short_flags<'a>(
    words: &Words<'a>,
    room: &'a mut [u8; KEY_BYTES_MAX],
) -> Result<Flags<'a>, &'static str> {
    if words.count() > WORDS_MAX {
        return Err("CLIENT_ERROR options flags too long");
    }
    Flags::parse(words, 2, room).map_err(|_| "CLIENT_ERROR invalid or duplicate flag")
}

fn debug<'a>(words: &Words<'a>, room: &'a mut [u8; KEY_BYTES_MAX]) -> Line<'a> {
    let key = words.get(1);
    if words.count() < 2 || key.len() > KEY_BYTES_MAX {
        return reject(BAD_LINE);
    }
    if words.get(2) != b"b" {
        return whole(Command::MetaDebug { key }, false);
    }
    match base64::decode(key, room) {
        Some(length) => whole(
            Command::MetaDebug {
                key: &room[..length],
            },
            false,
        ),
        None => reject(BAD_LINE),
    }
}

fn reject(error: &'static str) -> Line<'static> {
    whole(Command::Answer(error), false)
}

struct Flags<'a> {
    meta: Meta<'a>,
    mode: Option<u8>,
    opaque_too_long: bool,
}

impl<'a> Flags<'a> {
    /// The flags from word `first` on.
    fn parse(
        words: &Words<'a>,
        first: usize,
        room: &'a mut [u8; KEY_BYTES_MAX],
    ) -> Result<Self, &'static str> {
        let mut meta = Meta {
            key: words.get(1),
            binary: false,
            value: false,
            quiet: false,
            no_update: false,
            invalidate: false,
            exptime: None,
            vivify: None,
            renew_before: None,
            cas: None,
            new_cas: 0,
            remove_value: false,
            client_flags: 0,
            mode: None,
            delta: 1,
            initial: 0,
            flags: words.rest(first),
        };
        let mut mode = None;
        let mut opaque_too_long = false;
        let mut seen = 0_u128;
        let mut mistake = None;
        let mut decoded = None;
        for word in tokens(meta.flags) {
            let (flag, token) = (word[0], &word[1..]);
            if flag >= 127 || seen >> flag & 1 == 1 {
                return Err("CLIENT_ERROR duplicate flag");
            }
            seen |= 1 << flag;
            let mut check = |valid: bool, error| {
                if !valid {
                    mistake = Some(error);
                }
            };
            match flag {
                b'b' => {
                    meta.binary = true;
                    decoded = base64::decode(meta.key, room);
                    check(decoded.is_some(), "CLIENT_ERROR error decoding key");
                }
                b'v' => meta.value = true,
                b'q' => meta.quiet = true,
                b'u' => meta.no_update = true,
                b'I' => meta.invalidate = true,
                b'N' => {
                    meta.vivify = parse_i32(token);
                    check(meta.vivify.is_some(), BAD_TOKEN);
                }
                b'T' => {
                    meta.exptime = parse_i32(token);
                    check(meta.exptime.is_some(), BAD_TOKEN);
                }
                b'R' => {
                    meta.renew_before = parse_i32(token);
                    check(meta.renew_before.is_some(), BAD_TOKEN);
                }
                b'C' => {
                    meta.cas = parse_u64(token);
                    check(meta.cas.is_some(), BAD_TOKEN);
                }
                b'E' => {
                    let parsed = parse_u64(token);
                    meta.new_cas = parsed.unwrap_or_default();
                    check(parsed.is_some(), BAD_TOKEN);
                }
                b'x' => meta.remove_value = true,
                b'F' => {
                    let parsed = parse_u32(token);
                    meta.client_flags = parsed.unwrap_or_default();
                    // The one mistake without words of its own.
                    if parsed.is_none() {
                        mistake = mistake.or(Some(BAD_LINE));
                    }
                }
                b'J' => {
                    let parsed = parse_u64(token);
                    meta.initial = parsed.unwrap_or_default();
                    check(
                        parsed.is_some(),
                        "CLIENT_ERROR invalid numeric initial value",
                    );
                }
                b'D' => {
                    let parsed = parse_u64(token);
                    meta.delta = parsed.unwrap_or_default();
                    check(parsed.is_some(), "CLIENT_ERROR invalid numeric delta value");
                }
                b'M' => {
                    mode = token.first().copied().filter(|_| token.len() == 1);
                    check(mode.is_some(), "CLIENT_ERROR incorrect length for M token");
                }
                b'O' => opaque_too_long = word.len() > OPAQUE_BYTES_MAX,
                // Answered from `Meta::steps`, or meant for proxies.
                b'c' | b'f' | b'h' | b'k' | b'l' | b's' | b't' | b'P' | b'L' => {}
                _ => return Err("CLIENT_ERROR invalid flag"),
            }
        }
        if let Some(length) = decoded {
            meta.key = &room[..length];
        }
        mistake.map_or(
            Ok(Self {
                meta,
                mode,
                opaque_too_long,
            }),
            Err,
        )
    }
}
