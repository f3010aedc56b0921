use super::request::{HEADER_BYTES, Request};
use super::status::Status;

const RESPONSE_MAGIC: u8 = 0x81;

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
