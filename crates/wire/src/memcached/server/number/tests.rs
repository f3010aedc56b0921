use super::*;

#[test]
fn unsigned_numbers_read_as_strtoull_reads_them() {
    for (text, expected) in [
        (&b"0"[..], Some(0)),
        (b"18446744073709551615", Some(u64::MAX)),
        (b"18446744073709551616", None),
        (b"", None),
        (b" ", None),
        (b"+7", Some(7)),
        (b" \t7", Some(7)),
        (b"7 apples", Some(7)),
        (b"7\0apples", Some(7)),
        (b"7apples", None),
        (b"-0", Some(0)),
        (b"-1", None),
        (b"-18446744073709551615", Some(1)),
        (b"--1", None),
        (b"0x10", None),
    ] {
        assert_eq!(parse_u64(text), expected, "{:?}", text.escape_ascii());
    }
}

#[test]
fn narrow_numbers_are_cut() {
    assert_eq!(parse_u32(b"4294967295"), Some(u32::MAX));
    assert_eq!(parse_u32(b"4294967296"), Some(0));
    assert_eq!(parse_i32(b"-1"), Some(-1));
    assert_eq!(parse_i32(b"4294967295"), Some(-1));
    assert_eq!(parse_i32(b"9223372036854775807"), Some(-1));
    assert_eq!(parse_i32(b"-9223372036854775808"), Some(0));
    assert_eq!(parse_i32(b"9223372036854775808"), None);
    assert_eq!(parse_i32(b"-9223372036854775809"), None);
}
