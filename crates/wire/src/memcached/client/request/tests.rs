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
        written(|out| push_set_header(out, b"a", Attributes::NONE, 1000)),
        "set a 0 0 1000\r\n"
    );
    assert_eq!(written(|out| push_meta_get(out, b"a", false)), "mg a v\r\n");
    assert_eq!(
        written(|out| push_meta_get(out, b"a", true)),
        "mg a v k q\r\n"
    );
    assert_eq!(
        written(|out| push_meta_set_header(out, b"a", Attributes::NONE, 0)),
        "ms a 0\r\n"
    );
    for (flags, expire_seconds, text, meta) in [
        (7, 60, "set a 7 60 5\r\n", "ms a 5 F7 T60\r\n"),
        (
            u32::MAX,
            0,
            "set a 4294967295 0 5\r\n",
            "ms a 5 F4294967295 T0\r\n",
        ),
        (0, 1, "set a 0 1 5\r\n", "ms a 5 F0 T1\r\n"),
    ] {
        let attributes = Attributes {
            flags,
            expire_seconds,
        };
        assert_eq!(
            written(|out| push_set_header(out, b"a", attributes, 5)),
            text
        );
        assert_eq!(
            written(|out| push_meta_set_header(out, b"a", attributes, 5)),
            meta
        );
    }
    assert_eq!(written(push_meta_noop), "mn\r\n");
}
