//! Numbers as C's `strtol` family reads them, because clients depend on it: white space and a sign may stand in
//! front, white space or a zero byte ends them, and what does not fit the narrower type is cut to its low bits.

/// Sign, magnitude; `None` where there are no digits, something else follows, or 64 bits are not enough.
fn parse(text: &[u8]) -> Option<(bool, u64)> {
    let mut at = 0;
    while text.get(at).is_some_and(|byte| is_space(*byte)) {
        at += 1;
    }
    let negative = text.get(at) == Some(&b'-');
    if negative || text.get(at) == Some(&b'+') {
        at += 1;
    }
    let digits_at = at;
    let mut magnitude = 0_u64;
    while let Some(digit) = text.get(at).filter(|byte| byte.is_ascii_digit()) {
        magnitude = magnitude
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
        at += 1;
    }
    let ends = text.get(at).is_none_or(|&byte| byte == 0 || is_space(byte));
    (at > digits_at && ends).then_some((negative, magnitude))
}

/// C's `isspace`.
fn is_space(byte: u8) -> bool {
    byte == b' ' || (b'\t'..=b'\r').contains(&byte)
}

/// An unsigned 64-bit number, as the protocol reads deltas, CAS numbers, and the values that `incr` counts on.
#[must_use]
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    let (negative, magnitude) = parse(text)?;
    if !negative {
        return Some(magnitude);
    }
    // `strtoull` negates modulo 2^64, and memcached refuses what then looks negative.
    let value = magnitude.wrapping_neg();
    (value.cast_signed() >= 0).then_some(value)
}

/// An unsigned 32-bit number, as the protocol reads client flags.
pub(super) fn parse_u32(text: &[u8]) -> Option<u32> {
    parse_u64(text).map(|value| value as u32)
}

/// A signed 32-bit number, as the protocol reads expiration times and lengths.
pub(super) fn parse_i32(text: &[u8]) -> Option<i32> {
    let (negative, magnitude) = parse(text)?;
    let limit = i64::MAX as u64 + u64::from(negative);
    if magnitude > limit {
        return None;
    }
    let value = magnitude.cast_signed();
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    } as i32)
}

#[cfg(test)]
mod tests;
