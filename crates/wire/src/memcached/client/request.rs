use crate::decimal;

/// Append the command word of a get; follow it with [`push_get_key`] for each key, then `\r\n`.
///
/// Keys must be 1 to [`MAX_KEY_BYTES`](super::MAX_KEY_BYTES) bytes without spaces or control characters; this is
/// not checked, here and below.
#[inline]
pub fn push_get(out: &mut Vec<u8>) {
    out.extend_from_slice(b"get");
}

/// Append one key of a get that [`push_get`] began.
#[inline]
pub fn push_get_key(out: &mut Vec<u8>, key: &[u8]) {
    out.push(b' ');
    out.extend_from_slice(key);
}

/// What a set gives an item beside its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// The client's flags.
    pub flags: u32,
    /// After how many seconds the item expires: at most 30 days, as memcached takes more for a date; 0 is never.
    pub expire_seconds: u32,
}

impl Attributes {
    /// No flags, never expires.
    pub const NONE: Self = Self {
        flags: 0,
        expire_seconds: 0,
    };
}

/// Append `set KEY FLAGS SECONDS LENGTH\r\n`; the value and `\r\n` must follow.
#[inline]
pub fn push_set_header(out: &mut Vec<u8>, key: &[u8], attributes: Attributes, value_bytes: usize) {
    out.extend_from_slice(b"set ");
    out.extend_from_slice(key);
    if attributes == Attributes::NONE {
        out.extend_from_slice(b" 0 0 ");
    } else {
        out.push(b' ');
        decimal::push(out, attributes.flags.into());
        out.push(b' ');
        decimal::push(out, attributes.expire_seconds.into());
        out.push(b' ');
    }
    decimal::push(out, value_bytes as u64);
    out.extend_from_slice(b"\r\n");
}

/// Append a meta get that asks for the value (`v`). With `quiet`, the reply names its key (`k`) and a miss is
/// silent (`q`): end a run of these with [`push_meta_noop`], whose reply marks the end.
#[inline]
pub fn push_meta_get(out: &mut Vec<u8>, key: &[u8], quiet: bool) {
    out.extend_from_slice(b"mg ");
    out.extend_from_slice(key);
    out.extend_from_slice(if quiet { b" v k q\r\n" } else { b" v\r\n" });
}

/// Append a meta no-op, answered by `MN\r\n`.
#[inline]
pub fn push_meta_noop(out: &mut Vec<u8>) {
    out.extend_from_slice(b"mn\r\n");
}

/// Append `ms KEY LENGTH\r\n`, with `FFLAGS` and `TSECONDS` where there are any; the value and `\r\n` must follow.
#[inline]
pub fn push_meta_set_header(
    out: &mut Vec<u8>,
    key: &[u8],
    attributes: Attributes,
    value_bytes: usize,
) {
    out.extend_from_slice(b"ms ");
    out.extend_from_slice(key);
    out.push(b' ');
    decimal::push(out, value_bytes as u64);
    if attributes != Attributes::NONE {
        out.extend_from_slice(b" F");
        decimal::push(out, attributes.flags.into());
        out.extend_from_slice(b" T");
        decimal::push(out, attributes.expire_seconds.into());
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests;
