//! Answers, appended to a buffer. Nothing else is allocated.

use super::base64;
use crate::decimal;

/// A line, with its end.
#[inline]
pub fn line(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// One item of a retrieval: `VALUE key flags bytes [cas]`, the value, and the ends of both lines.
#[inline]
pub fn value(out: &mut Vec<u8>, key: &[u8], flags: u32, value: &[u8], cas: Option<u64>) {
    value_line(out, key, flags, value.len(), cas);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The first line of an item, with room for the rest.
#[inline]
pub fn value_line(out: &mut Vec<u8>, key: &[u8], flags: u32, value_bytes: usize, cas: Option<u64>) {
    out.reserve(key.len() + value_bytes + 64);
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    // From its end to its front, so that it is copied once.
    let mut rest = [b' '; 3 * (1 + DECIMAL_BYTES_MAX) + 2];
    let mut start = rest.len() - 2;
    rest[start..].copy_from_slice(b"\r\n");
    let mut put = |number: u64| start = decimal::write_before(&mut rest, start, number) - 1;
    if let Some(cas) = cas {
        put(cas);
    }
    put(value_bytes as u64);
    put(flags.into());
    out.extend_from_slice(&rest[start..]);
}

/// `STAT name value`.
pub fn statistic(out: &mut Vec<u8>, name: &str, value: impl std::fmt::Display) {
    use std::io::Write;
    // Writing to a vector cannot fail.
    _ = write!(out, "STAT {name} {value}\r\n");
}

/// A space and a flag of a meta answer with a number.
#[inline]
pub fn meta_number(out: &mut Vec<u8>, flag: u8, number: u64) {
    meta_flag(out, flag);
    decimal(out, number);
}

/// A space and a flag of a meta answer.
#[inline]
pub fn meta_flag(out: &mut Vec<u8>, flag: u8) {
    out.extend_from_slice(&[b' ', flag]);
}

/// A space and the key of a meta answer, as base64 (and marked so) where it is binary.
pub fn meta_key(out: &mut Vec<u8>, bytes: &[u8], binary: bool) {
    meta_flag(out, b'k');
    key(out, bytes, binary);
    if binary {
        meta_flag(out, b'b');
    }
}

/// A key, as base64 where it is binary.
pub fn key(out: &mut Vec<u8>, key: &[u8], binary: bool) {
    if binary {
        base64::encode(key, out);
    } else {
        out.extend_from_slice(key);
    }
}

/// A number in decimal.
#[inline]
pub fn decimal(out: &mut Vec<u8>, number: u64) {
    decimal::push(out, number);
}

/// Digits of the largest number.
pub const DECIMAL_BYTES_MAX: usize = decimal::DIGITS_MAX;

/// Write a number in decimal to the end of `digits`, and return where it starts.
#[inline]
pub fn write_decimal(digits: &mut [u8; DECIMAL_BYTES_MAX], number: u64) -> usize {
    decimal::write(digits, number)
}

#[cfg(test)]
mod tests;
