use super::request::{HEADER_BYTES, Request};

const RESPONSE_MAGIC: u8 = 0x81;

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// There is no such item.
    NotFound,
    /// There is an item, or one with another CAS number.
    Exists,
    /// The value is larger than any that is kept.
    TooLarge,
    /// The request makes no sense.
    InvalidArguments,
    /// There is nothing to append or prepend to.
    NotStored,
    /// The item's value is not a number.
    NotANumber,
    /// It is forbidden to this client, or to all.
    NotAllowed,
    /// The opcode, or its layout, is not known.
    UnknownCommand,
    /// There is no memory for it; these words say for what.
    OutOfMemory(&'static str),
}

impl Status {
    fn code(self) -> u16 {
        match self {
            Self::NotFound => 0x01,
            Self::Exists => 0x02,
            Self::TooLarge => 0x03,
            Self::InvalidArguments => 0x04,
            Self::NotStored => 0x05,
            Self::NotANumber => 0x06,
            Self::NotAllowed => 0x20,
            Self::UnknownCommand => 0x81,
            Self::OutOfMemory(_) => 0x82,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Exists => "Data exists for key.",
            Self::TooLarge => "Too large.",
            Self::InvalidArguments => "Invalid arguments",
            Self::NotStored => "Not stored.",
            Self::NotANumber => "Non-numeric server-side value for incr or decr",
            Self::NotAllowed => "Auth failure.",
            Self::UnknownCommand => "Unknown command",
            Self::OutOfMemory(words) => words,
        }
    }
}

/// The front of an answer that it worked: header, extras and key. A value of `value_bytes` is to follow.
#[inline]
pub fn success(
    out: &mut Vec<u8>,
    request: &Request<'_>,
    cas: u64,
    (extras, key): (&[u8], &[u8]),
    value_bytes: usize,
) {
    out.reserve(HEADER_BYTES + extras.len() + key.len() + value_bytes);
    header(out, request, 0, cas, (extras.len(), key.len(), value_bytes));
    out.extend_from_slice(extras);
    out.extend_from_slice(key);
}

/// The answer that it did not work. With a `key`, that is sent in place of words.
pub fn error(out: &mut Vec<u8>, request: &Request<'_>, status: Status, key: &[u8]) {
    let text = if key.is_empty() {
        status.text().as_bytes()
    } else {
        &[]
    };
    header(out, request, status.code(), 0, (0, key.len(), text.len()));
    out.extend_from_slice(key);
    out.extend_from_slice(text);
}

/// A statistic; the last one of an answer has neither name nor value.
pub fn statistic(out: &mut Vec<u8>, request: &Request<'_>, name: &[u8], value: &[u8]) {
    success(out, request, 0, (&[], name), value.len());
    out.extend_from_slice(value);
}

#[inline]
fn header(
    out: &mut Vec<u8>,
    request: &Request<'_>,
    status: u16,
    cas: u64,
    (extras_bytes, key_bytes, value_bytes): (usize, usize, usize),
) {
    let mut bytes = [0; HEADER_BYTES];
    bytes[0] = RESPONSE_MAGIC;
    bytes[1] = request.opcode;
    bytes[2..4].copy_from_slice(&(key_bytes as u16).to_be_bytes());
    bytes[4] = extras_bytes as u8;
    bytes[6..8].copy_from_slice(&status.to_be_bytes());
    bytes[8..12].copy_from_slice(&((extras_bytes + key_bytes + value_bytes) as u32).to_be_bytes());
    bytes[12..16].copy_from_slice(&request.opaque.to_be_bytes());
    bytes[16..24].copy_from_slice(&cas.to_be_bytes());
    out.extend_from_slice(&bytes);
}
