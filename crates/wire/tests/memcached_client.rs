//! Replies of a memcached server, whole, cut and broken.
use proptest::prelude::*;
use wire::memcached::client::{Parsed, Reply, parse_reply};

/// Every kind of reply there is, with how it reads.
const REPLIES: &[(&[u8], Reply<'_>)] = &[
    (b"END\r\n", Reply::End),
    (b"STORED\r\n", Reply::Stored),
    (b"NOT_STORED\r\n", Reply::NotStored),
    (b"EXISTS\r\n", Reply::NotStored),
    (b"NOT_FOUND\r\n", Reply::NotStored),
    (
        b"VALUE key 7 2\r\nhi\r\n",
        Reply::Value {
            key: b"key",
            flags: 7,
            value: b"hi",
        },
    ),
    (
        b"VALUE key 0 4 99\r\n\r\n\r\n\r\n",
        Reply::Value {
            key: b"key",
            flags: 0,
            value: b"\r\n\r\n",
        },
    ),
    (
        b"VALUE key 0 0\r\n\r\n",
        Reply::Value {
            key: b"key",
            flags: 0,
            value: b"",
        },
    ),
    (
        b"VA 2\r\nhi\r\n",
        Reply::MetaValue {
            flags: b"",
            value: b"hi",
        },
    ),
    (
        b"VA 5 kkey c9\r\nEND\r\n\r\n",
        Reply::MetaValue {
            flags: b"kkey c9",
            value: b"END\r\n",
        },
    ),
    (b"HD\r\n", Reply::MetaDone { flags: b"" }),
    (b"HD Oabc\r\n", Reply::MetaDone { flags: b"Oabc" }),
    (b"EN\r\n", Reply::MetaMiss),
    (b"NS\r\n", Reply::MetaNotStored),
    (b"EX\r\n", Reply::MetaNotStored),
    (b"NF\r\n", Reply::MetaNotStored),
    (b"MN\r\n", Reply::MetaNoop),
    (b"ERROR\r\n", Reply::Refused(b"ERROR")),
    (
        b"SERVER_ERROR out of memory\r\n",
        Reply::Refused(b"SERVER_ERROR out of memory"),
    ),
    (
        b"CLIENT_ERROR bad data chunk\r\n",
        Reply::Refused(b"CLIENT_ERROR bad data chunk"),
    ),
];

#[test]
fn every_reply_is_understood_and_every_beginning_of_one_waits_for_more() {
    for &(bytes, reply) in REPLIES {
        for extra in [&b""[..], b"END\r\n", b"x"] {
            let stream = [bytes, extra].concat();
            let length = bytes.len();
            assert_eq!(parse_reply(&stream), Ok(Parsed::Complete { reply, length }));
        }
        for cut in 0..bytes.len() {
            match parse_reply(&bytes[..cut]) {
                Ok(Parsed::Partial { needed }) => assert!(needed > cut && needed <= bytes.len()),
                other => panic!("{:?}: {other:?}", bytes[..cut].escape_ascii().to_string()),
            }
        }
    }
}

#[test]
fn a_broken_reply_says_what_is_wrong_and_shows_it() {
    for (bytes, what) in [
        (&b"HELLO\r\n"[..], "an unknown reply: \"HELLO\""),
        (b"END\n", "does not end in"),
        (b"VALUE key 0 2\r\nhi!\r\n", "longer or shorter"),
        (b"VALUE key 0 -1\r\n", "without a length"),
        (b"VALUE key 0 4294967296\r\n", "without a length"),
        (b"VALUE key\r\n", "without key or flags"),
        (b"VALUE\r\n", "without key or flags"),
        (b"VA x\r\n", "without a length"),
        (&[b'x'; 5000], "a line that does not end"),
    ] {
        let message = parse_reply(bytes).expect_err("malformed").to_string();
        assert!(message.contains(what), "{message}");
    }
}

fn any_reply() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0..REPLIES.len()).prop_map(|index| REPLIES[index].0.to_vec()),
        (
            "[!-~]{1,250}",
            any::<u32>(),
            prop::collection::vec(any::<u8>(), 0..300)
        )
            .prop_map(|(key, flags, value)| {
                let header = format!("VALUE {key} {flags} {}\r\n", value.len());
                [header.as_bytes(), &value, b"\r\n"].concat()
            }),
    ]
}

proptest! {
    #[test]
    fn a_stream_reads_the_same_however_it_is_cut(
        replies in prop::collection::vec(any_reply(), 1..20),
        chunk in 1_usize..64,
    ) {
        let stream = replies.concat();
        let (mut start, mut end, mut needed, mut lengths) = (0, 0, 0, Vec::new());
        while end < stream.len() {
            end = (end + chunk).min(stream.len());
            while end - start >= needed && start < end {
                match parse_reply(&stream[start..end]) {
                    Ok(Parsed::Complete { length, .. }) => {
                        lengths.push(length);
                        start += length;
                        needed = 0;
                    }
                    Ok(Parsed::Partial { needed: more }) => {
                        prop_assert!(more > end - start);
                        needed = more;
                    }
                    Err(error) => prop_assert!(false, "{error}"),
                }
            }
        }
        let expected: Vec<usize> = replies.iter().map(Vec::len).collect();
        prop_assert_eq!(lengths, expected);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_bounds(&bytes);
    }

    #[test]
    fn almost_replies_never_panic(
        mut bytes in any_reply(),
        position in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let index = position.index(bytes.len());
        bytes[index] = byte;
        check_bounds(&bytes);
    }
}

fn check_bounds(bytes: &[u8]) {
    match parse_reply(bytes) {
        Ok(Parsed::Complete { length, .. }) => assert!(length > 0 && length <= bytes.len()),
        Ok(Parsed::Partial { needed }) => assert!(needed > bytes.len()),
        Err(_) => {}
    }
}
