use crate::decimal;
use crate::malformed::{Malformed, malformed};

/// One reply, or for a text get one of several: each [`Reply::Value`] and then [`Reply::End`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<'a> {
    /// `VALUE`: an item that a text get found.
    Value {
        /// Its key.
        key: &'a [u8],
        /// Its client flags.
        flags: u32,
        /// Its bytes.
        value: &'a [u8],
    },
    /// `END`: a text get is answered; keys that were not named are misses.
    End,
    /// `STORED`.
    Stored,
    /// `NOT_STORED`, `EXISTS` or `NOT_FOUND`: the condition of a storage command did not hold.
    NotStored,
    /// `VA`: an item that a meta get found.
    MetaValue {
        /// The flags that were asked for, as sent: `kKEY`, `cCAS` and so on, separated by spaces.
        flags: &'a [u8],
        /// Its bytes.
        value: &'a [u8],
    },
    /// `HD`: a meta command succeeded and has no value to show.
    MetaDone {
        /// The flags that were asked for, as sent.
        flags: &'a [u8],
    },
    /// `EN`: a meta get missed.
    MetaMiss,
    /// `NS`, `EX` or `NF`: a meta command was not carried out.
    MetaNotStored,
    /// `MN`: the answer to a no-op.
    MetaNoop,
    /// `ERROR`, `CLIENT_ERROR ...` or `SERVER_ERROR ...`, the whole line: a request was refused.
    Refused(&'a [u8]),
}

/// What the beginning of a stream holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A whole reply.
    Complete {
        /// The reply.
        reply: Reply<'a>,
        /// How many bytes of the stream it took.
        length: usize,
    },
    /// Not yet a whole reply: parsing again is of no use before the stream has `needed` bytes.
    Partial {
        /// The least length, in bytes and from the beginning, of which more can be said.
        needed: usize,
    },
}

/// The longest line that a server sends: a key, some flags or an error message.
const MAX_LINE_BYTES: usize = 4096;

/// Parse the first reply of `stream`. [`Malformed`] when no continuation of `stream` would be a reply.
#[inline]
pub fn parse_reply(stream: &[u8]) -> Result<Parsed<'_>, Malformed> {
    if stream.starts_with(b"END\r\n") {
        return Ok(complete(Reply::End, 5));
    }
    let window = &stream[..stream.len().min(MAX_LINE_BYTES)];
    let Some(newline) = memchr::memchr(b'\n', window) else {
        if window.len() == MAX_LINE_BYTES {
            return Err(malformed("a line that does not end", stream));
        }
        return Ok(Parsed::Partial {
            needed: stream.len() + 1,
        });
    };
    let Some(line) = window[..newline].strip_suffix(b"\r") else {
        return Err(malformed("a line that does not end in \\r\\n", stream));
    };
    let length = newline + 1;
    let (word, rest) = split_word(line);
    let reply = match word {
        b"VALUE" => return parse_value(stream, length, rest),
        b"VA" => return parse_meta_value(stream, length, rest),
        b"STORED" => Reply::Stored,
        b"HD" => Reply::MetaDone { flags: rest },
        b"EN" => Reply::MetaMiss,
        b"MN" => Reply::MetaNoop,
        b"NOT_STORED" | b"EXISTS" | b"NOT_FOUND" => Reply::NotStored,
        b"NS" | b"EX" | b"NF" => Reply::MetaNotStored,
        b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR" => Reply::Refused(line),
        _ => return Err(malformed("an unknown reply", line)),
    };
    Ok(complete(reply, length))
}

/// `VALUE <key> <flags> <bytes> [<cas unique>]\r\n<data block>\r\n`
#[inline]
fn parse_value<'a>(
    stream: &'a [u8],
    header: usize,
    rest: &'a [u8],
) -> Result<Parsed<'a>, Malformed> {
    let (key, rest) = split_word(rest);
    let (flags, rest) = split_word(rest);
    let (bytes, _cas) = split_word(rest);
    let flags = decimal::parse(flags).and_then(|flags| u32::try_from(flags).ok());
    let (Some(flags), false) = (flags, key.is_empty()) else {
        return Err(malformed("a VALUE line without key or flags", stream));
    };
    with_data(stream, header, bytes, |value| Reply::Value {
        key,
        flags,
        value,
    })
}

/// `VA <size> <flags>*\r\n<data block>\r\n`
#[inline]
fn parse_meta_value<'a>(
    stream: &'a [u8],
    header: usize,
    rest: &'a [u8],
) -> Result<Parsed<'a>, Malformed> {
    let (bytes, flags) = split_word(rest);
    with_data(stream, header, bytes, |value| Reply::MetaValue {
        flags,
        value,
    })
}

#[inline]
fn with_data<'a>(
    stream: &'a [u8],
    header: usize,
    bytes: &[u8],
    reply: impl FnOnce(&'a [u8]) -> Reply<'a>,
) -> Result<Parsed<'a>, Malformed> {
    let Some(bytes) = decimal::parse(bytes).and_then(|bytes| u32::try_from(bytes).ok()) else {
        return Err(malformed("a value without a length", stream));
    };
    let end = header + bytes as usize;
    let Some(after) = stream.get(end..end + 2) else {
        return Ok(Parsed::Partial { needed: end + 2 });
    };
    if after != b"\r\n" {
        return Err(malformed(
            "a value that is longer or shorter than announced",
            stream,
        ));
    }
    Ok(complete(reply(&stream[header..end]), end + 2))
}

#[inline]
fn complete(reply: Reply<'_>, length: usize) -> Parsed<'_> {
    Parsed::Complete { reply, length }
}

/// The bytes before the first space, and those after it.
#[inline]
fn split_word(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b' ', line) {
        Some(space) => (&line[..space], &line[space + 1..]),
        None => (line, &[]),
    }
}
