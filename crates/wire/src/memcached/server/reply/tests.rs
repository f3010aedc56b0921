use super::*;

#[test]
fn an_item_is_two_lines() {
    let mut out = Vec::new();
    value(&mut out, b"key", 7, b"a\r\nb", None);
    value(&mut out, b"k", u32::MAX, b"", Some(u64::MAX));
    assert_eq!(
        out.escape_ascii().to_string(),
        b"VALUE key 7 4\r\na\r\nb\r\nVALUE k 4294967295 0 18446744073709551615\r\n\r\n"
            .escape_ascii()
            .to_string()
    );
}
