use super::*;

#[test]
fn an_address_may_have_a_port_and_a_prefix() {
    for (text, is_plain, host, port) in [
        ("127.0.0.1", false, "127.0.0.1", None),
        ("127.0.0.1:11212", false, "127.0.0.1", Some(11212)),
        ("localhost:0", false, "localhost", Some(0)),
        ("::1", false, "::1", None),
        ("[::1]", false, "::1", None),
        ("[::1]:7", false, "::1", Some(7)),
        ("notls:::1", true, "::1", None),
        ("notls:[fe80::1]:65535", true, "fe80::1", Some(65535)),
        ("notls:cache", true, "cache", None),
    ] {
        let address = ListenAddress {
            is_plain,
            host,
            port,
        };
        assert_eq!(ListenAddress::parse(text), Ok(address), "{text}");
    }
    for text in [
        "",
        "notls:",
        ":11211",
        "[::1",
        "[::1]11211",
        "[::1]:",
        "host:65536",
        "host:x",
        "btls:127.0.0.1",
        "mtls:127.0.0.1:11212",
    ] {
        assert!(ListenAddress::parse(text).is_err(), "{text}");
    }
}
