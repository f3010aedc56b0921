//! Many requests in one datagram, as MICA's clients send them (NSDI'14, section 3.2), so that what a datagram costs is
//! shared. Requests and answers are entries behind one another, without padding; all numbers are little-endian.
//!
//! ```text
//! request: 0           1           2          4             8
//!          | operation | key bytes | 0        | value bytes | flags, seconds (set only) | key | value
//! answer:  0           1                      4             8
//!          | status    | 0                    | value bytes | flags (found only)        | value
//! ```
//!
//! Answers come in the order of the requests. Where they do not all fit in one datagram, they are in several, each
//! of which holds whole answers; [`Frame::sequence`](crate::memcached::datagram::Frame::sequence) tells their order.

use crate::memcached::client::Attributes;

const HEAD_BYTES: usize = 8;
const FLAGS_BYTES: usize = 4;
const SET_BYTES: usize = 8;

const GET: u8 = 1;
const SET: u8 = 2;
const DELETE: u8 = 3;

/// What a set has beside key and value, in bytes: the most of all requests.
pub const SET_HEAD_BYTES: usize = HEAD_BYTES + SET_BYTES;

/// One request of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// What to do.
    pub operation: Operation<'a>,
    /// With which key, of 1 to 255 bytes.
    pub key: &'a [u8],
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<'a> {
    /// The value.
    Get,
    /// To store a value.
    Set {
        /// The client's flags.
        flags: u32,
        /// When the item expires, as memcached counts it.
        exptime: i32,
        /// The value.
        value: &'a [u8],
    },
    /// To remove the item.
    Delete,
}

/// The answer to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// To a get: the item.
    Found {
        /// The client's flags.
        flags: u32,
        /// The value.
        value: &'a [u8],
    },
    /// To a set or a delete.
    Done,
    /// There is no item.
    NotFound,
    /// It was not done.
    Refused(Refusal),
}

/// Why a request was not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The key belongs to another worker, which has a port of its own.
    OtherWorker,
    /// The value to store is larger than any item, or the value found is than any datagram, or the answers to the
    /// requests before it are so long that it must be asked for again.
    TooLarge,
    /// There is no memory left.
    OutOfMemory,
    /// The request, and so every one behind it, could not be read.
    Malformed,
}

const FOUND: u8 = 0;
const DONE: u8 = 1;
const NOT_FOUND: u8 = 2;
const REFUSALS: [(u8, Refusal); 4] = [
    (3, Refusal::OtherWorker),
    (4, Refusal::TooLarge),
    (5, Refusal::OutOfMemory),
    (6, Refusal::Malformed),
];

/// Entries could not be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an entry that is cut short, or has an unknown code")]
pub struct Malformed;

/// The next request of `entries`, and what follows it; nothing at the end.
#[inline]
pub fn parse_request(entries: &[u8]) -> Result<Option<(Request<'_>, &[u8])>, Malformed> {
    if entries.is_empty() {
        return Ok(None);
    }
    let (head, rest) = entries.split_first_chunk::<HEAD_BYTES>().ok_or(Malformed)?;
    let &[operation, key_bytes, 0, 0, ref value_bytes @ ..] = head else {
        return Err(Malformed);
    };
    let (key_bytes, value_bytes) = (usize::from(key_bytes), little_endian(*value_bytes) as usize);
    if key_bytes == 0 {
        return Err(Malformed);
    }
    let (settings, rest) = match operation {
        SET => rest.split_first_chunk::<SET_BYTES>().ok_or(Malformed)?,
        GET | DELETE if value_bytes == 0 => (&[0; SET_BYTES], rest),
        _ => return Err(Malformed),
    };
    let (key, rest) = rest.split_at_checked(key_bytes).ok_or(Malformed)?;
    let (value, rest) = rest.split_at_checked(value_bytes).ok_or(Malformed)?;
    let operation = match operation {
        GET => Operation::Get,
        DELETE => Operation::Delete,
        _ => {
            let [a, b, c, d, e, f, g, h] = *settings;
            Operation::Set {
                flags: little_endian([a, b, c, d]),
                exptime: little_endian([e, f, g, h]).cast_signed(),
                value,
            }
        }
    };
    Ok(Some((Request { operation, key }, rest)))
}

/// Append a request. The key must have 1 to 255 bytes, the value less than 4 GiB.
#[inline]
pub fn push_request(out: &mut Vec<u8>, request: Request<'_>) {
    let (operation, value): (u8, &[u8]) = match request.operation {
        Operation::Get => (GET, &[]),
        Operation::Delete => (DELETE, &[]),
        Operation::Set { value, .. } => (SET, value),
    };
    push_head(out, [operation, request.key.len() as u8, 0, 0], value.len());
    if let Operation::Set { flags, exptime, .. } = request.operation {
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&exptime.to_le_bytes());
    }
    out.extend_from_slice(request.key);
    out.extend_from_slice(value);
}

/// Append a set up to the value; that must follow.
#[inline]
pub fn push_set_head(out: &mut Vec<u8>, key: &[u8], attributes: Attributes, value_bytes: usize) {
    push_head(out, [SET, key.len() as u8, 0, 0], value_bytes);
    out.extend_from_slice(&attributes.flags.to_le_bytes());
    out.extend_from_slice(&attributes.expire_seconds.to_le_bytes());
    out.extend_from_slice(key);
}

/// The next answer of `entries`, and what follows it; nothing at the end.
#[inline]
pub fn parse_answer(entries: &[u8]) -> Result<Option<(Answer<'_>, &[u8])>, Malformed> {
    if entries.is_empty() {
        return Ok(None);
    }
    let (head, rest) = entries.split_first_chunk::<HEAD_BYTES>().ok_or(Malformed)?;
    let &[status, 0, 0, 0, ref value_bytes @ ..] = head else {
        return Err(Malformed);
    };
    let value_bytes = little_endian(*value_bytes) as usize;
    if status == FOUND {
        let (flags, rest) = rest.split_first_chunk::<FLAGS_BYTES>().ok_or(Malformed)?;
        let (value, rest) = rest.split_at_checked(value_bytes).ok_or(Malformed)?;
        let flags = little_endian(*flags);
        return Ok(Some((Answer::Found { flags, value }, rest)));
    }
    let answer = match status {
        DONE => Answer::Done,
        NOT_FOUND => Answer::NotFound,
        _ => {
            let known = REFUSALS.iter().find(|&&(number, _)| number == status);
            Answer::Refused(known.ok_or(Malformed)?.1)
        }
    };
    if value_bytes == 0 {
        Ok(Some((answer, rest)))
    } else {
        Err(Malformed)
    }
}

/// Append an answer.
#[inline]
pub fn push_answer(out: &mut Vec<u8>, answer: Answer<'_>) {
    let status = match answer {
        Answer::Found { flags, value } => {
            push_found(out, flags, value.len());
            return out.extend_from_slice(value);
        }
        Answer::Done => DONE,
        Answer::NotFound => NOT_FOUND,
        Answer::Refused(refusal) => {
            let known = REFUSALS.iter().find(|&&(_, known)| known == refusal);
            known.map_or(0, |&(number, _)| number)
        }
    };
    push_head(out, [status, 0, 0, 0], 0);
}

/// Append what is in front of a value that was found; it must follow.
#[inline]
pub fn push_found(out: &mut Vec<u8>, flags: u32, value_bytes: usize) {
    push_head(out, [FOUND, 0, 0, 0], value_bytes);
    out.extend_from_slice(&flags.to_le_bytes());
}

#[inline]
fn push_head(out: &mut Vec<u8>, first: [u8; 4], value_bytes: usize) {
    let [a, b, c, d] = first;
    let [e, f, g, h] = (value_bytes as u32).to_le_bytes();
    out.extend_from_slice(&[a, b, c, d, e, f, g, h]);
}

#[inline]
fn little_endian(bytes: [u8; 4]) -> u32 {
    u32::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests;
