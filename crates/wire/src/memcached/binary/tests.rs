use super::*;
use crate::memcached::server::{Direction, Limits, StoreMode};
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    item_bytes_max: 100,
};

fn packet(opcode: u8, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![MAGIC, opcode];
    bytes.extend((key.len() as u16).to_be_bytes());
    bytes.extend([extras.len() as u8, 0, 0, 0]);
    bytes.extend(((extras.len() + key.len() + value.len()) as u32).to_be_bytes());
    bytes.extend(0xdead_beef_u32.to_be_bytes());
    bytes.extend(77_u64.to_be_bytes());
    [bytes, extras.to_vec(), key.to_vec(), value.to_vec()].concat()
}

fn only(bytes: &[u8]) -> Request<'_> {
    match Parser::new(LIMITS).next(bytes) {
        (_, Step::Request(request)) => request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_are_read_as_memcached_reads_them() {
    let get = packet(0x00, &[], b"key", &[]);
    let request = only(&get);
    assert_eq!(
        (request.opcode, request.opaque, request.cas, request.quiet),
        (0, 0xdead_beef, 77, false)
    );
    let expected = Command::Get {
        key: b"key",
        with_key: false,
        with_value: true,
        exptime: None,
    };
    assert_eq!(request.command, expected);
    let getkq = packet(0x0d, &[], b"key", &[]);
    assert!(only(&getkq).quiet);
    assert!(matches!(
        only(&getkq).command,
        Command::Get { with_key: true, .. }
    ));
    let touch = packet(0x1c, &5_u32.to_be_bytes(), b"key", &[]);
    assert!(matches!(
        only(&touch).command,
        Command::Get {
            with_value: false,
            exptime: Some(5),
            ..
        }
    ));
    let extras = [7_u32.to_be_bytes(), u32::MAX.to_be_bytes()].concat();
    let set = packet(0x11, &extras, b"key", b"value");
    assert!(only(&set).quiet);
    let expected = Command::Store {
        mode: StoreMode::Set,
        key: b"key",
        flags: 7,
        exptime: i32::MAX,
        value: b"value",
    };
    assert_eq!(only(&set).command, expected);
    let prepend = packet(0x0f, &[], b"key", b"");
    assert!(matches!(
        only(&prepend).command,
        Command::Store {
            mode: StoreMode::Prepend,
            value: b"",
            ..
        }
    ));
    for (expiry, initial) in [(u32::MAX, None), (9, Some((2, 9)))] {
        let extras = [
            &1_u64.to_be_bytes()[..],
            &2_u64.to_be_bytes(),
            &expiry.to_be_bytes(),
        ]
        .concat();
        let decrement = packet(0x06, &extras, b"key", &[]);
        let expected = Command::Arithmetic {
            key: b"key",
            direction: Direction::Down,
            delta: 1,
            initial,
        };
        assert_eq!(only(&decrement).command, expected);
    }
    assert_eq!(
        only(&packet(0x08, &[], b"", &[])).command,
        Command::Flush { delay: 0 }
    );
    assert_eq!(
        only(&packet(0x18, &3_u32.to_be_bytes(), b"", &[])).command,
        Command::Flush { delay: 3 }
    );
    assert_eq!(
        only(&packet(0x10, &[], b"settings", &[])).command,
        Command::Stats {
            section: b"settings"
        }
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |bytes: &[u8]| match only(bytes).command {
        Command::Refuse(refusal) => (refusal.status, refusal.close),
        other => panic!("{other:?}"),
    };
    let invalid = (Some(Status::InvalidArguments), true);
    assert_eq!(refused(&packet(0x00, &[], b"", &[])), invalid);
    assert_eq!(refused(&packet(0x00, &[], b"key", b"value")), invalid);
    assert_eq!(refused(&packet(0x01, &[0; 4], b"key", b"value")), invalid);
    assert_eq!(refused(&packet(0x0a, &[], b"key", &[])), invalid);
    assert_eq!(refused(&packet(0x00, &[], &[b'k'; 251], &[])), invalid);
    assert_eq!(
        refused(&packet(0x7f, &[], b"key", &[])),
        (Some(Status::UnknownCommand), false)
    );
    let mut short = packet(0x00, &[], b"key", &[]);
    short[11] = 2;
    assert_eq!(refused(&short), (Some(Status::UnknownCommand), true));
    let mut long = packet(0x01, &[0; 8], b"key", b"value");
    long[8] = 0x7f;
    assert_eq!(refused(&long), invalid);
    assert_eq!(refused(b"get key\r\n"), (None, true));
}

#[test]
fn what_is_too_large_or_not_known_is_skipped_as_it_arrives() {
    let mut parser = Parser::new(LIMITS);
    let mut bytes = packet(0x01, &[0; 8], b"key", &[b'v'; 98]);
    bytes.extend(packet(0x7f, &[1, 2], b"key", b"whatever"));
    bytes.extend(packet(0x0a, &[], b"", &[]));
    let mut found = Vec::new();
    let mut at = 0;
    for end in 0..=bytes.len() {
        loop {
            let (consumed, step) = parser.next(&bytes[at..end]);
            // A value that nobody wants is not waited for.
            at += consumed;
            let Step::Request(request) = step else { break };
            found.push(match request.command {
                Command::TooLarge {
                    key: b"key",
                    remove: true,
                } => "too large",
                Command::Refuse(Refusal { close: false, .. }) => "unknown",
                Command::Noop => "noop",
                other => panic!("{other:?}"),
            });
        }
    }
    assert_eq!(found, ["too large", "unknown", "noop"]);
    assert_eq!(at, bytes.len());
}

#[test]
fn the_first_byte_of_a_stranger_is_enough() {
    let mut parser = Parser::new(LIMITS);
    assert_eq!(parser.next(b""), (0, Step::Incomplete(1)));
    assert_eq!(parser.next(&[MAGIC]), (0, Step::Incomplete(HEADER_BYTES)));
    assert!(matches!(parser.next(b"g"), (0, Step::Request(_))));
}

#[test]
fn a_value_without_a_meaning_is_not_waited_for() {
    for (opcode, extras, key) in [
        (0x1d, &5_u32.to_be_bytes()[..], &b"key"[..]),
        (0x10, b"", b""),
    ] {
        let mut bytes = packet(opcode, extras, key, b"");
        bytes[8..12].copy_from_slice(&(1_u32 << 29).to_be_bytes());
        let mut parser = Parser::new(LIMITS);
        let (consumed, step) = parser.next(&bytes);
        assert_eq!(consumed, bytes.len());
        assert!(matches!(step, Step::Request(_)), "{step:?}");
        // All that is left of it is skipped as it arrives.
        assert_eq!(parser.next(&[0; 500]), (500, Step::Incomplete(1)));
    }
}

#[test]
fn answers_are_laid_out_as_the_protocol_says() {
    let get = packet(0x0c, &[], b"key", &[]);
    let mut out = Vec::new();
    success(&mut out, &only(&get), 9, (&[0, 0, 0, 7], b"key"), 2);
    out.extend_from_slice(b"ok");
    let expected = b"\x81\x0c\x00\x03\x04\x00\x00\x00\x00\x00\x00\x09\xde\xad\xbe\xef\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x07keyok";
    assert_eq!(
        out.escape_ascii().to_string(),
        expected.escape_ascii().to_string()
    );
    out.clear();
    error(&mut out, &only(&get), Status::NotFound, b"");
    assert!(
        out.starts_with(b"\x81\x0c\x00\x00\x00\x00\x00\x01\x00\x00\x00\x09")
            && out.ends_with(b"Not found")
    );
    out.clear();
    error(&mut out, &only(&get), Status::NotFound, b"key");
    assert!(
        out.starts_with(b"\x81\x0c\x00\x03\x00\x00\x00\x01\x00\x00\x00\x03")
            && out.ends_with(b"key")
    );
}

proptest! {
    /// However the stream is cut, the requests are the same, and no bytes whatever bring the parser to a halt.
    #[test]
    fn cutting_a_stream_changes_nothing(
        requests in prop::collection::vec(
            (any::<u8>(), prop::collection::vec(any::<u8>(), 0..24), prop::collection::vec(any::<u8>(), 0..8), prop::collection::vec(any::<u8>(), 0..150)),
            1..8,
        ),
        cut in 1..40_usize,
    ) {
        let bytes: Vec<u8> = requests.iter().flat_map(|(opcode, extras, key, value)| packet(opcode % 0x26, extras, key, value)).collect();
        let read = |pieces: usize| {
            let mut parser = Parser::new(LIMITS);
            let (mut at, mut found) = (0, Vec::new());
            let mut ends: Vec<usize> = (pieces..bytes.len()).step_by(pieces).collect();
            ends.push(bytes.len());
            for end in ends {
                loop {
                    let (consumed, step) = parser.next(&bytes[at..end]);
                    at += consumed;
                    match step {
                        Step::Request(request) => {
                            found.push(format!("{request:?}"));
                            if matches!(request.command, Command::Refuse(Refusal { close: true, .. })) {
                                return found;
                            }
                        }
                        Step::Incomplete(wanted) => {
                            assert!(wanted > bytes[at..end].len() || wanted == 1);
                            break;
                        }
                    }
                }
            }
            found
        };
        prop_assert_eq!(read(bytes.len()), read(cut));
    }
}

/// What is there of a request: bytes of extras, a key, a value.
type Shape = (usize, bool, bool);

fn is_valid(opcode: u8, (extras, has_key, has_value): Shape) -> bool {
    let key: &[u8] = if has_key { b"key" } else { b"" };
    let value: &[u8] = if has_value { b"value" } else { b"" };
    let bytes = packet(opcode, &[0; 24][..extras], key, value);
    match only(&bytes).command {
        Command::Refuse(refusal) => {
            assert_eq!(refusal.status, Some(Status::InvalidArguments));
            false
        }
        _ => true,
    }
}

#[test]
fn each_command_has_its_own_parts_and_no_others() {
    let values = [false, true];
    let shapes = |extras: &[usize], keys: &[bool], values: &[bool]| -> Vec<Shape> {
        let mut all = Vec::new();
        for &extras in extras {
            for &key in keys {
                all.extend(values.iter().map(|&value| (extras, key, value)));
            }
        }
        all
    };
    for (opcodes, valid) in [
        // Reads and deletes.
        (
            &[0x00, 0x09, 0x0c, 0x0d, 0x04, 0x14][..],
            shapes(&[0], &[true], &[false]),
        ),
        // Those that touch: memcached looks at no value there either.
        (
            &[0x1c, 0x1d, 0x1e, 0x23, 0x24],
            shapes(&[4], &[true], &values),
        ),
        (
            &[0x01, 0x02, 0x03, 0x11, 0x12, 0x13],
            shapes(&[8], &[true], &values),
        ),
        (&[0x0e, 0x0f, 0x19, 0x1a], shapes(&[0], &[true], &values)),
        (&[0x05, 0x06, 0x15, 0x16], shapes(&[20], &[true], &[false])),
        (&[0x07, 0x17, 0x0a, 0x0b], shapes(&[0], &[false], &[false])),
        (&[0x08, 0x18], shapes(&[0, 4], &[false], &[false])),
        (&[0x10], shapes(&[0], &values, &values)),
    ] {
        for &opcode in opcodes {
            for shape in shapes(&[0, 3, 4, 8, 20, 24], &values, &values) {
                let expected = valid.contains(&shape);
                assert_eq!(is_valid(opcode, shape), expected, "{opcode:#x} {shape:?}");
            }
        }
    }
}

#[test]
fn opcodes_tell_what_is_replied_and_how_much() {
    let extras = 5_u32.to_be_bytes();
    for (opcode, key_too, value_too) in [
        (0x00, false, true),
        (0x09, false, true),
        (0x0c, true, true),
        (0x0d, true, true),
        (0x1c, false, false),
        (0x1d, false, true),
        (0x1e, false, true),
        (0x23, true, true),
        (0x24, true, true),
    ] {
        let touches = opcode > 0x10;
        let bytes = packet(opcode, if touches { &extras } else { &[] }, b"key", &[]);
        let expected = Command::Get {
            key: b"key",
            with_key: key_too,
            with_value: value_too,
            exptime: touches.then_some(5),
        };
        assert_eq!(only(&bytes).command, expected, "{opcode:#x}");
        let is_quiet = matches!(opcode, 0x09 | 0x0d | 0x1e | 0x24);
        assert_eq!(only(&bytes).quiet, is_quiet, "{opcode:#x}");
    }
    let counting = |opcode| packet(opcode, &[0; 20], b"key", &[]);
    for (opcode, expected) in [
        (0x05, Direction::Up),
        (0x06, Direction::Down),
        (0x15, Direction::Up),
        (0x16, Direction::Down),
    ] {
        let bytes = counting(opcode);
        let Command::Arithmetic { direction, .. } = only(&bytes).command else {
            panic!("{opcode:#x}")
        };
        assert_eq!(direction, expected, "{opcode:#x}");
    }
}
