use super::*;
use proptest::prelude::*;

type Owned = (u8, Vec<u8>, Vec<u8>, u32, i32);

fn request(of: &Owned) -> Request<'_> {
    let (kind, key, value, flags, exptime) = of;
    let (flags, exptime) = (*flags, *exptime);
    let operation = match kind {
        0 => Operation::Get,
        1 => Operation::Delete,
        _ => Operation::Set {
            flags,
            exptime,
            value,
        },
    };
    Request { operation, key }
}

fn owned() -> impl Strategy<Value = Owned> {
    let bytes = |range| prop::collection::vec(any::<u8>(), range);
    (
        0..3_u8,
        bytes(1..=255),
        bytes(0..=300),
        any::<u32>(),
        any::<i32>(),
    )
}

proptest! {
    #[test]
    fn requests_come_back(all in prop::collection::vec(owned(), 0..10), cut in any::<prop::sample::Index>()) {
        let mut entries = Vec::new();
        for one in &all {
            push_request(&mut entries, request(one));
        }
        let mut rest = &entries[..];
        for one in &all {
            let (found, behind) = parse_request(rest).expect("whole").expect("one more");
            prop_assert_eq!(found, request(one));
            rest = behind;
        }
        prop_assert_eq!(parse_request(rest), Ok(None));
        // However it is cut, what is read was sent.
        let mut rest = &entries[..cut.index(entries.len() + 1)];
        let mut read = all.iter();
        while let Ok(Some((found, behind))) = parse_request(rest) {
            prop_assert_eq!(Some(found), read.next().map(request));
            rest = behind;
        }
    }

    #[test]
    fn answers_come_back(values in prop::collection::vec((0..7_u8, prop::collection::vec(any::<u8>(), 0..300), any::<u32>()), 0..10)) {
        let answer = |(kind, value, flags): &(u8, Vec<u8>, u32)| -> Answer<'static> {
            let value: &'static [u8] = value.clone().leak();
            match kind {
                0 => Answer::Found { flags: *flags, value },
                1 => Answer::Done,
                2 => Answer::NotFound,
                refusal => Answer::Refused(REFUSALS[usize::from(*refusal) - 3].1),
            }
        };
        let mut entries = Vec::new();
        for one in &values {
            push_answer(&mut entries, answer(one));
        }
        let mut rest = &entries[..];
        for one in &values {
            let (found, behind) = parse_answer(rest).expect("whole").expect("one more");
            prop_assert_eq!(found, answer(one));
            rest = behind;
        }
        prop_assert_eq!(parse_answer(rest), Ok(None));
    }

    #[test]
    fn nothing_is_read_from_noise_that_is_not_there(noise in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(Some((_, rest))) = parse_request(&noise) {
            prop_assert!(rest.len() < noise.len());
        }
        if let Ok(Some((_, rest))) = parse_answer(&noise) {
            prop_assert!(rest.len() < noise.len());
        }
    }
}

#[test]
fn what_nobody_knows_is_malformed() {
    for entries in [
        &[GET, 1, 0, 0, 0, 0, 0][..],
        &[9, 1, 0, 0, 0, 0, 0, 0, b'k'],
        &[GET, 0, 0, 0, 0, 0, 0, 0],
        &[GET, 1, 0, 1, 0, 0, 0, 0, b'k'],
        &[GET, 1, 0, 0, 1, 0, 0, 0, b'k', b'v'],
        &[
            SET, 1, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, b'k', b'v',
        ],
    ] {
        assert_eq!(parse_request(entries), Err(Malformed), "{entries:?}");
    }
    assert_eq!(parse_answer(&[7, 0, 0, 0, 0, 0, 0, 0]), Err(Malformed));
    assert_eq!(
        parse_answer(&[DONE, 0, 0, 0, 1, 0, 0, 0, 0]),
        Err(Malformed)
    );
}

#[test]
fn the_head_of_a_set_is_that_of_the_whole() {
    for (flags, expire_seconds) in [(0, 0), (7, 60), (u32::MAX, 2_592_000)] {
        let attributes = Attributes {
            flags,
            expire_seconds,
        };
        let (mut head, mut whole) = (Vec::new(), Vec::new());
        push_set_head(&mut head, b"key", attributes, 5);
        head.extend_from_slice(b"value");
        let operation = Operation::Set {
            flags,
            exptime: expire_seconds.cast_signed(),
            value: b"value",
        };
        let key = b"key";
        push_request(&mut whole, Request { operation, key });
        assert_eq!(head, whole);
    }
}
