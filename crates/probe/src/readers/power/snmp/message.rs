//! SNMP version 2c (RFC 3416, in the frame of RFC 1901) in the basic encoding rules (ITU-T X.690), as far as asking for
//! values takes it. No sockets.
//!
//! Our own, and not a crate: it is one request and its answer, 300 lines, and the crates that are kept bring an ASN.1
//! compiler or cryptography along.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// Numbers that an object identifier may have (RFC 2578, section 3.5).
const MOST_PARTS: usize = 128;
/// Values in a message: as many as are ever asked for, and some.
const MOST_BINDINGS: usize = 64;
/// The longest community or text that is taken.
const LONGEST_TEXT: usize = 255;

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const NULL: u8 = 0x05;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const COUNTER_32: u8 = 0x41;
const GAUGE_32: u8 = 0x42;
const TIME_TICKS: u8 = 0x43;
const COUNTER_64: u8 = 0x46;
const NO_SUCH_OBJECT: u8 = 0x80;
const NO_SUCH_INSTANCE: u8 = 0x81;
const END_OF_VIEW: u8 = 0x82;
const GET: u8 = 0xa0;
const RESPONSE: u8 = 0xa2;

const VERSION_2C: i128 = 1;

/// The name of a value: `1.3.6.1.2.1.1.3.0`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Oid(Vec<u32>);

impl Oid {
    /// The numbers, the first two of which share a byte: 2 to 128 of them, the first 0 to 2, the second below 40.
    pub fn new(parts: Vec<u32>) -> Option<Self> {
        let fits = (2..=MOST_PARTS).contains(&parts.len()) && parts[0] <= 2 && parts[1] < 40;
        fits.then_some(Self(parts))
    }
}

impl FromStr for Oid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.strip_prefix('.').unwrap_or(text).split('.');
        parts
            .map(|part| part.parse().ok())
            .collect::<Option<Vec<u32>>>()
            .and_then(Self::new)
            .ok_or_else(|| {
                format!("'{text}' is not an object identifier such as 1.3.6.1.2.1.1.3.0")
            })
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, part) in self.0.iter().enumerate() {
            let dot = if position > 0 { "." } else { "" };
            write!(formatter, "{dot}{part}")?;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Oid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Nothing yet: as a request has it.
    Unspecified,
    /// A number of 32 bits (here up to 64: agents differ).
    Integer(i64),
    /// Text, or bytes.
    Text(Vec<u8>),
    /// Another name.
    Name(Oid),
    /// A count that begins again after 2^32.
    Counter32(u32),
    /// A number that does not go below zero.
    Gauge32(u32),
    /// Hundredths of a second.
    TimeTicks(u32),
    /// A count that begins again after 2^64.
    Counter64(u64),
    /// The agent knows no such name.
    NoSuchObject,
    /// The agent knows the name, but not this one of them (an outlet that is not there).
    NoSuchInstance,
    /// Nothing comes behind the name.
    EndOfView,
}

/// Whether values are asked for or told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Asked for.
    Get,
    /// Told.
    Response,
}

/// A request or its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who may ask: the only protection there is, and it goes over the wire as it is.
    pub community: Vec<u8>,
    /// Which of the two it is.
    pub kind: Kind,
    /// Ties the answer to the request.
    pub request_id: i32,
    /// 0, or why there are no values.
    pub error_status: i32,
    /// The binding at which it went wrong, from 1.
    pub error_index: i32,
    /// Names with what they stand for.
    pub bindings: Vec<(Oid, Value)>,
}

/// Bytes are no message, or none that is ever asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no message of SNMP version 2c")]
pub struct Malformed;

/// The bytes of a message; texts and values beyond the limits of [`decode`] are not checked here.
pub fn encode(message: &Message) -> Vec<u8> {
    let bindings = message.bindings.iter();
    let bindings = bindings.map(|(name, value)| element(SEQUENCE, &[oid(name), value.encode()]));
    let unit = [
        integer(INTEGER, message.request_id),
        integer(INTEGER, message.error_status),
        integer(INTEGER, message.error_index),
        element(SEQUENCE, &bindings.collect::<Vec<_>>()),
    ];
    let kind = match message.kind {
        Kind::Get => GET,
        Kind::Response => RESPONSE,
    };
    let whole = [
        integer(INTEGER, VERSION_2C),
        element(OCTET_STRING, &[&message.community]),
        element(kind, &unit),
    ];
    element(SEQUENCE, &whole)
}

/// An element with these parts in it.
fn element<P: AsRef<[u8]>>(element: u8, parts: &[P]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.as_ref().len()).sum();
    let mut bytes = vec![element];
    if length < 0x80 {
        bytes.push(length as u8);
    } else {
        let unused = length.leading_zeros() as usize / 8;
        let length = &length.to_be_bytes()[unused..];
        bytes.push(0x80 | length.len() as u8);
        bytes.extend(length);
    }
    bytes.extend(parts.iter().flat_map(|part| part.as_ref()));
    bytes
}

/// As few bytes as hold the number with its sign.
fn integer(kind: u8, number: impl Into<i128>) -> Vec<u8> {
    let bytes = number.into().to_be_bytes();
    let says_the_same = |pair: &&[u8]| pair[0] == if pair[1] & 0x80 == 0 { 0 } else { 0xff };
    let unused = bytes.windows(2).take_while(says_the_same).count();
    element(kind, &[&bytes[unused..]])
}

/// Seven bits a byte, the last of each part without the mark that more follow.
fn oid(Oid(parts): &Oid) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in [&[parts[0] * 40 + parts[1]], &parts[2..]].concat() {
        let sevens = (u32::BITS - part.leading_zeros()).div_ceil(7).max(1);
        for place in (1..sevens).rev() {
            bytes.push((part >> (7 * place)) as u8 | 0x80);
        }
        bytes.push(part as u8 & 0x7f);
    }
    element(OBJECT_IDENTIFIER, &[bytes])
}

impl Value {
    fn encode(&self) -> Vec<u8> {
        let empty = |kind| element::<&[u8]>(kind, &[]);
        match self {
            Self::Unspecified => empty(NULL),
            Self::Integer(number) => integer(INTEGER, *number),
            Self::Text(text) => element(OCTET_STRING, &[text]),
            Self::Name(name) => oid(name),
            Self::Counter32(number) => integer(COUNTER_32, *number),
            Self::Gauge32(number) => integer(GAUGE_32, *number),
            Self::TimeTicks(number) => integer(TIME_TICKS, *number),
            Self::Counter64(number) => integer(COUNTER_64, *number),
            Self::NoSuchObject => empty(NO_SUCH_OBJECT),
            Self::NoSuchInstance => empty(NO_SUCH_INSTANCE),
            Self::EndOfView => empty(END_OF_VIEW),
        }
    }
}

// Reading. Every length is checked against what is left, and no more is kept than the limits say.

/// The message that `bytes` are, all of them.
pub fn decode(bytes: &[u8]) -> Result<Message, Malformed> {
    let mut outside = Elements(bytes);
    let mut whole = outside.expect(SEQUENCE)?;
    outside.end()?;
    if whole.expect(INTEGER)?.number()? != VERSION_2C {
        return Err(Malformed);
    }
    let community = whole.expect(OCTET_STRING)?.bytes()?;
    let (element, content) = whole.next()?;
    whole.end()?;
    let kind = match element {
        GET => Kind::Get,
        RESPONSE => Kind::Response,
        _ => return Err(Malformed),
    };
    let mut unit = Elements(content);
    let mut number = || unit.expect(INTEGER)?.narrow::<i32>();
    let [request_id, error_status, error_index] = [number()?, number()?, number()?];
    let mut list = unit.expect(SEQUENCE)?;
    unit.end()?;
    let mut bindings = Vec::new();
    while !list.0.is_empty() {
        if bindings.len() == MOST_BINDINGS {
            return Err(Malformed);
        }
        let mut binding = list.expect(SEQUENCE)?;
        let name = binding.expect(OBJECT_IDENTIFIER)?.name()?;
        let value = binding.value()?;
        binding.end()?;
        bindings.push((name, value));
    }
    Ok(Message {
        community,
        kind,
        request_id,
        error_status,
        error_index,
        bindings,
    })
}

/// Elements behind one another.
struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.0.split_first().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*first)
    }

    /// The next element and what is in it.
    fn next(&mut self) -> Result<(u8, &'a [u8]), Malformed> {
        let element = self.byte()?;
        let length = match self.byte()? {
            short @ 0..=0x7f => usize::from(short),
            // No datagram is longer than two bytes say; some agents write three or four all the same.
            long @ 0x81..=0x84 => {
                let mut length = 0;
                for _ in 0x80..long {
                    length = length << 8 | usize::from(self.byte()?);
                }
                length
            }
            _ => return Err(Malformed),
        };
        let content = self.0.get(..length).ok_or(Malformed)?;
        self.0 = &self.0[length..];
        Ok((element, content))
    }

    fn expect(&mut self, expected: u8) -> Result<Elements<'a>, Malformed> {
        match self.next()? {
            (found, content) if found == expected => Ok(Elements(content)),
            _ => Err(Malformed),
        }
    }

    fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Malformed)
        }
    }

    fn value(&mut self) -> Result<Value, Malformed> {
        let (element, content) = self.next()?;
        let content = Elements(content);
        let empty = |value: Value| content.end().map(|()| value);
        match element {
            NULL => empty(Value::Unspecified),
            INTEGER => content.narrow().map(Value::Integer),
            OCTET_STRING => content.bytes().map(Value::Text),
            OBJECT_IDENTIFIER => content.name().map(Value::Name),
            COUNTER_32 => content.narrow().map(Value::Counter32),
            GAUGE_32 => content.narrow().map(Value::Gauge32),
            TIME_TICKS => content.narrow().map(Value::TimeTicks),
            COUNTER_64 => content.narrow().map(Value::Counter64),
            NO_SUCH_OBJECT => empty(Value::NoSuchObject),
            NO_SUCH_INSTANCE => empty(Value::NoSuchInstance),
            END_OF_VIEW => empty(Value::EndOfView),
            _ => Err(Malformed),
        }
    }

    // What is in one element.

    fn bytes(&self) -> Result<Vec<u8>, Malformed> {
        if self.0.len() > LONGEST_TEXT {
            return Err(Malformed);
        }
        Ok(self.0.to_vec())
    }

    /// A number of up to nine bytes with its sign: a count of 64 bits may have one more.
    fn number(&self) -> Result<i128, Malformed> {
        let first = *self.0.first().ok_or(Malformed)?;
        if self.0.len() > 9 {
            return Err(Malformed);
        }
        let sign = if first & 0x80 == 0 { 0 } else { -1 };
        Ok(self
            .0
            .iter()
            .fold(sign, |number, byte| number << 8 | i128::from(*byte)))
    }

    fn narrow<N: TryFrom<i128>>(&self) -> Result<N, Malformed> {
        N::try_from(self.number()?).map_err(|_| Malformed)
    }

    fn name(&self) -> Result<Oid, Malformed> {
        if self.0.last().is_some_and(|byte| byte & 0x80 != 0) {
            return Err(Malformed);
        }
        let mut parts: Vec<u32> = Vec::new();
        for bytes in self.0.split_inclusive(|byte| byte & 0x80 == 0) {
            let part = bytes.iter().try_fold(0_u32, |part, byte| {
                part.checked_mul(0x80)?.checked_add((byte & 0x7f).into())
            });
            match part.ok_or(Malformed)? {
                // The first two numbers share the first.
                part if parts.is_empty() => {
                    let first = (part / 40).min(2);
                    parts.extend([first, part - first * 40]);
                }
                part => parts.push(part),
            }
            if parts.len() > MOST_PARTS {
                return Err(Malformed);
            }
        }
        Oid::new(parts).ok_or(Malformed)
    }
}

#[cfg(test)]
mod tests;
