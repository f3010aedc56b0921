//! RESP tokens, whole, cut and broken.
use proptest::prelude::*;
use wire::resp::{Parsed, Token, parse_token, push_array_header, push_bulk, push_bulk_integer};

const TOKENS: &[(&[u8], Token<'_>)] = &[
    (b"+OK\r\n", Token::Simple(b"OK")),
    (b"+\r\n", Token::Simple(b"")),
    (
        b"-ERR unknown command\r\n",
        Token::Error(b"ERR unknown command"),
    ),
    (b":0\r\n", Token::Integer(0)),
    (b":-42\r\n", Token::Integer(-42)),
    (b":9223372036854775807\r\n", Token::Integer(i64::MAX)),
    (b"$2\r\nhi\r\n", Token::Bulk(b"hi")),
    (b"$4\r\n\r\n\r\n\r\n", Token::Bulk(b"\r\n\r\n")),
    (b"$0\r\n\r\n", Token::Bulk(b"")),
    (b"$-1\r\n", Token::Null),
    (b"*-1\r\n", Token::Null),
    (b"*0\r\n", Token::Array(0)),
    (b"*3\r\n", Token::Array(3)),
];

#[test]
fn every_token_is_understood_and_every_beginning_of_one_waits_for_more() {
    for &(bytes, token) in TOKENS {
        for extra in [&b""[..], b"+OK\r\n", b"x"] {
            let stream = [bytes, extra].concat();
            let length = bytes.len();
            assert_eq!(parse_token(&stream), Ok(Parsed::Complete { token, length }));
        }
        for cut in 0..bytes.len() {
            match parse_token(&bytes[..cut]) {
                Ok(Parsed::Partial { needed }) => assert!(needed > cut && needed <= bytes.len()),
                other => panic!("{:?}: {other:?}", bytes[..cut].escape_ascii().to_string()),
            }
        }
    }
}

#[test]
fn a_broken_token_says_what_is_wrong_and_shows_it() {
    for (bytes, what) in [
        (&b"VALUE\r\n"[..], "an unknown kind of reply: \"VALUE"),
        (b"+OK\n", "does not end in"),
        (b"+\n", "does not end in"),
        (b"$2\r\nhi!\r\n", "longer or shorter"),
        (b"$-2\r\n", "not a length"),
        (b"$4294967296\r\n", "not a length"),
        (b"*\r\n", "not a length"),
        (b":1.5\r\n", "not an integer"),
        (b":99999999999999999999\r\n", "not an integer"),
    ] {
        let message = parse_token(bytes).expect_err("malformed").to_string();
        assert!(message.contains(what), "{message}");
    }
    let endless = [b"+".as_slice(), &[b'x'; 70_000]].concat();
    assert!(parse_token(&endless).is_err());
}

#[test]
fn integers_are_written_as_bulk_strings() {
    for number in [0, 9, 10, 99, 100, u64::MAX] {
        let mut written = Vec::new();
        push_bulk_integer(&mut written, number);
        let mut expected = Vec::new();
        push_bulk(&mut expected, number.to_string().as_bytes());
        assert_eq!(written, expected);
    }
}

proptest! {
    #[test]
    fn a_request_reads_as_it_was_written_however_it_is_cut(
        arguments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..10),
        chunk in 1_usize..40,
    ) {
        let mut stream = Vec::new();
        push_array_header(&mut stream, arguments.len());
        for argument in &arguments {
            push_bulk(&mut stream, argument);
        }
        let mut expected = vec![Token::Array(arguments.len())];
        expected.extend(arguments.iter().map(|argument| Token::Bulk(argument)));
        let (mut start, mut end, mut needed, mut tokens) = (0, 0, 0, Vec::new());
        while end < stream.len() {
            end = (end + chunk).min(stream.len());
            while end - start >= needed && start < end {
                match parse_token(&stream[start..end]) {
                    Ok(Parsed::Complete { token, length }) => {
                        tokens.push(token);
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
        prop_assert_eq!(tokens, expected);
    }

    #[test]
    fn random_bytes_never_panic(
        kind in prop::sample::select(b"+-:$*x".to_vec()),
        rest in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\r'), Just(b'\n'), Just(b'1')], 0..40),
    ) {
        let bytes = [&[kind], &rest[..]].concat();
        match parse_token(&bytes) {
            Ok(Parsed::Complete { length, .. }) => prop_assert!(length <= bytes.len()),
            Ok(Parsed::Partial { needed }) => prop_assert!(needed > bytes.len()),
            Err(_) => {}
        }
    }
}
