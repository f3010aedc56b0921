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

/// Append `set KEY 0 0 LENGTH\r\n` (no flags, never expires); the value and `\r\n` must follow.
#[inline]
pub fn push_set_header(out: &mut Vec<u8>, key: &[u8], value_bytes: usize) {
    out.extend_from_slice(b"set ");
    out.extend_from_slice(key);
    out.extend_from_slice(b" 0 0 ");
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

/// Append `ms KEY LENGTH\r\n`; the value and `\r\n` must follow.
#[inline]
pub fn push_meta_set_header(out: &mut Vec<u8>, key: &[u8], value_bytes: usize) {
    out.extend_from_slice(b"ms ");
    out.extend_from_slice(key);
    out.push(b' ');
    decimal::push(out, value_bytes as u64);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn requests_read_as_the_protocol_says() {
        let get = written(|out| {
            push_get(out);
            push_get_key(out, b"a");
            push_get_key(out, b"b");
            out.extend_from_slice(b"\r\n");
        });
        assert_eq!(get, "get a b\r\n");
        assert_eq!(
            written(|out| push_set_header(out, b"a", 1000)),
            "set a 0 0 1000\r\n"
        );
        assert_eq!(written(|out| push_meta_get(out, b"a", false)), "mg a v\r\n");
        assert_eq!(
            written(|out| push_meta_get(out, b"a", true)),
            "mg a v k q\r\n"
        );
        assert_eq!(
            written(|out| push_meta_set_header(out, b"a", 0)),
            "ms a 0\r\n"
        );
        assert_eq!(written(push_meta_noop), "mn\r\n");
    }
}
