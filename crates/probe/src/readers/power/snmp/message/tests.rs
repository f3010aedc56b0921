use super::*;
use proptest::prelude::*;

fn oid(text: &str) -> Oid {
    text.parse().unwrap()
}

/// `snmpget -v2c -c public HOST 1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.4`, as the standard has it written.
const GET_BYTES: [u8; 51] = [
    0x30, 0x31, 0x02, 0x01, 0x01, 0x04, 0x06, b'p', b'u', b'b', b'l', b'i', b'c', 0xa0, 0x24, 0x02,
    0x04, 0x12, 0x34, 0x56, 0x78, 0x02, 0x01, 0x00, 0x02, 0x01, 0x00, 0x30, 0x16, 0x30, 0x14, 0x06,
    0x10, 0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x3e, 0x01, 0x01, 0x1a, 0x09, 0x04, 0x03, 0x01, 0x07,
    0x04, 0x05, 0x00,
];

fn get() -> Message {
    Message {
        community: b"public".to_vec(),
        kind: Kind::Get,
        request_id: 0x1234_5678,
        error_status: 0,
        error_index: 0,
        bindings: vec![(
            oid("1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.4"),
            Value::Unspecified,
        )],
    }
}

#[test]
fn a_request_is_written_as_others_write_it() {
    assert_eq!(encode(&get()), GET_BYTES);
    assert_eq!(decode(&GET_BYTES), Ok(get()));
}

#[test]
fn names_are_read_and_shown() {
    for text in [
        "1.3.6.1.2.1.1.3.0",
        "0.0",
        "2.39.4294967295",
        "1.3.128.16383.16384",
    ] {
        assert_eq!(oid(text).to_string(), text);
    }
    assert_eq!(oid(".1.3.6").to_string(), "1.3.6");
    for text in [
        "",
        "1",
        "3.1",
        "1.40",
        "1..3",
        "1.3.x",
        "1.3.4294967296",
        "1.-3",
    ] {
        assert!(text.parse::<Oid>().is_err(), "{text}");
    }
}

#[test]
fn numbers_of_agents_that_write_more_bytes_than_needed_are_read() {
    for (bytes, number) in [
        (&[0x00, 0x00, 0x05][..], 5),
        (&[0xff, 0xff], -1),
        (&[0x00, 0xff, 0xff, 0xff, 0xff], 4_294_967_295),
        (&[0x80], -128),
    ] {
        assert_eq!(Elements(bytes).number(), Ok(number));
    }
    assert_eq!(Elements(&[0; 10]).number(), Err(Malformed));
    assert_eq!(Elements(&[]).number(), Err(Malformed));
}

#[test]
fn what_is_no_answer_is_refused_in_words() {
    let bytes = encode(&get());
    assert_eq!(decode(&bytes[..20]), Err(Malformed));
    let mut more = bytes.clone();
    more.push(0);
    assert_eq!(decode(&more), Err(Malformed));
    let mut version_1 = bytes.clone();
    version_1[4] = 0;
    assert_eq!(decode(&version_1), Err(Malformed));
    let mut trap = bytes.clone();
    trap[13] = 0xa7;
    assert!(matches!(decode(&trap), Err(Malformed)));
    // A length without an end, and one of four gigabytes.
    assert_eq!(decode(&[0x30, 0x80, 0, 0]), Err(Malformed));
    assert_eq!(
        decode(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]),
        Err(Malformed)
    );
    let many = Message {
        bindings: vec![(oid("1.3"), Value::Integer(1)); MOST_BINDINGS + 1],
        ..get()
    };
    assert_eq!(decode(&encode(&many)), Err(Malformed));
}

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::Integer),
        prop::collection::vec(any::<u8>(), 0..LONGEST_TEXT).prop_map(Value::Text),
        any::<u32>().prop_map(Value::Counter32),
        any::<u32>().prop_map(Value::Gauge32),
        any::<u32>().prop_map(Value::TimeTicks),
        any::<u64>().prop_map(Value::Counter64),
        Just(Value::Unspecified),
        Just(Value::NoSuchObject),
        Just(Value::NoSuchInstance),
        Just(Value::EndOfView),
    ]
}

fn oids() -> impl Strategy<Value = Oid> {
    (
        0_u32..3,
        0_u32..40,
        prop::collection::vec(any::<u32>(), 0..126),
    )
        .prop_map(|(first, second, rest)| {
            let parts = [first, second].into_iter().chain(rest).collect();
            Oid::new(parts).unwrap()
        })
}

proptest! {
    #[test]
    fn what_was_written_is_read(
        community in prop::collection::vec(any::<u8>(), 0..LONGEST_TEXT),
        numbers: (i32, i32, i32),
        bindings in prop::collection::vec((oids(), values()), 0..8),
        asks: bool,
    ) {
        let kind = if asks { Kind::Get } else { Kind::Response };
        let (request_id, error_status, error_index) = numbers;
        let message = Message { community, kind, request_id, error_status, error_index, bindings };
        prop_assert_eq!(decode(&encode(&message)), Ok(message));
    }

    #[test]
    fn any_bytes_are_a_message_or_refused(bytes: Vec<u8>, place: usize, byte: u8) {
        let _ = decode(&bytes);
        let mut changed = encode(&get());
        let place = place % changed.len();
        changed[place] = byte;
        if let Ok(message) = decode(&changed) {
            prop_assert_eq!(decode(&encode(&message)), Ok(message));
        }
    }
}
