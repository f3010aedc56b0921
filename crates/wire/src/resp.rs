//! RESP, the Redis serialization protocol (version 2): requests, replies, and the tokens that both consist of.
//!
//! A request is an array of bulk strings: [`push_array_header`], then [`push_bulk`] for each. A reply is parsed token
//! by token: an [`Token::Array`] announces how many tokens belong to it, so that neither recursion nor memory is
//! needed for nested ones.
use crate::decimal;
use crate::malformed::{Malformed, malformed};

/// Append the header of an array of `elements` elements, which must follow.
#[inline]
pub fn push_array_header(out: &mut Vec<u8>, elements: usize) {
    push_header(out, b'*', elements);
}

/// Append a bulk string.
#[inline]
pub fn push_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    push_bulk_header(out, bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Append the header of a bulk string of `bytes` bytes; they and `\r\n` must follow.
#[inline]
pub fn push_bulk_header(out: &mut Vec<u8>, bytes: usize) {
    push_header(out, b'$', bytes);
}

/// Append `number` in decimal, as a bulk string.
pub fn push_bulk_integer(out: &mut Vec<u8>, number: u64) {
    let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
    push_bulk_header(out, digits);
    decimal::push(out, number);
    out.extend_from_slice(b"\r\n");
}

#[inline]
fn push_header(out: &mut Vec<u8>, kind: u8, number: usize) {
    out.push(kind);
    decimal::push(out, number as u64);
    out.extend_from_slice(b"\r\n");
}

/// One piece of a request or reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// `+`: a status, such as `OK`.
    Simple(&'a [u8]),
    /// `-`: an error, such as `ERR unknown command`.
    Error(&'a [u8]),
    /// `:`: an integer.
    Integer(i64),
    /// `$`: a string of bytes.
    Bulk(&'a [u8]),
    /// `*`: an array; so many elements follow.
    Array(usize),
    /// `$-1` or `*-1`: nothing is there.
    Null,
}

/// What the beginning of a stream holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A whole token.
    Complete {
        /// The token.
        token: Token<'a>,
        /// How many bytes of the stream it took.
        length: usize,
    },
    /// Not yet a whole token: parsing again is of no use before the stream has `needed` bytes.
    Partial {
        /// The least length, in bytes and from the beginning, of which more can be said.
        needed: usize,
    },
}

/// The longest status or error line (Redis cuts its own at 64 KiB).
const MAX_LINE_BYTES: usize = 65_536;

/// Parse the first token of `stream`. [`Malformed`] when no continuation of `stream` would be RESP.
#[inline]
pub fn parse_token(stream: &[u8]) -> Result<Parsed<'_>, Malformed> {
    let Some(&kind) = stream.first() else {
        return Ok(Parsed::Partial { needed: 1 });
    };
    if !matches!(kind, b'+' | b'-' | b':' | b'$' | b'*') {
        return Err(malformed("an unknown kind of reply", stream));
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
    let Some(line) = window[1..newline.max(1)].strip_suffix(b"\r") else {
        return Err(malformed("a line that does not end in \\r\\n", stream));
    };
    let length = newline + 1;
    let token = match kind {
        b'+' => Token::Simple(line),
        b'-' => Token::Error(line),
        b':' => Token::Integer(integer(line).ok_or_else(|| malformed("not an integer", stream))?),
        _ if line == b"-1" => Token::Null,
        kind => {
            let number = decimal::parse(line).and_then(|number| u32::try_from(number).ok());
            let Some(number) = number.map(|number| number as usize) else {
                return Err(malformed("not a length", stream));
            };
            if kind == b'$' {
                return bulk(stream, length, length + number);
            }
            Token::Array(number)
        }
    };
    Ok(Parsed::Complete { token, length })
}

#[inline]
fn bulk(stream: &[u8], start: usize, end: usize) -> Result<Parsed<'_>, Malformed> {
    match stream.get(end..end + 2) {
        None => Ok(Parsed::Partial { needed: end + 2 }),
        Some(b"\r\n") => Ok(Parsed::Complete {
            token: Token::Bulk(&stream[start..end]),
            length: end + 2,
        }),
        Some(_) => Err(malformed(
            "a string that is longer or shorter than announced",
            stream,
        )),
    }
}

#[inline]
fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let magnitude = i64::try_from(decimal::parse(digits)?).ok()?;
    Some(if negative { -magnitude } else { magnitude })
}
