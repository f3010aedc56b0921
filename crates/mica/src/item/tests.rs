use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_header_is_read_as_it_was_written(
        key_bytes in 0..256_usize,
        length in prop_oneof![0..300_usize, 16_000..17_000_usize, Just(1 << 29), Just((1 << 30) - 1)],
        flags in prop_oneof![Just(0), any::<u32>()],
        expires_at in prop_oneof![Just(0), any::<u32>()],
        cas in prop_oneof![Just(0), any::<u64>()],
        marks in 0..16_u8,
        now in any::<u32>(),
    ) {
        let contents = Contents { value: &[], flags, expires_at, marks: Marks(marks), cas };
        let header = Header::new(key_bytes, &contents, now).sized(length);
        let mut bytes = [0xaa; WINDOW_BYTES];
        let written = header.encode(&mut bytes);
        prop_assert_eq!(written, header.bytes());
        prop_assert!((PLAIN_BYTES..=HEADER_BYTES).contains(&written));
        prop_assert_eq!(Header::decode(&bytes), (header, written));
        prop_assert_eq!(header.item_bytes(), written + key_bytes + length);
        prop_assert_eq!((header.flags(), header.expires_at(), header.marks()), (flags, expires_at, Marks(marks)));
        prop_assert_eq!(header.explicit_cas(), (cas != 0).then_some(cas));
    }

    /// The short way says what the long one does.
    #[test]
    fn the_first_bytes_agree_with_the_header(
        first in any::<[u8; 8]>(),
        plain in any::<bool>(),
        length in 0..140_usize,
        flags in prop_oneof![Just(0), any::<u32>()],
        marks in 0..16_u8,
        now in any::<u32>(),
    ) {
        let mut bytes = [0x55; WINDOW_BYTES];
        bytes[..8].copy_from_slice(&first);
        bytes[1] &= Marks::PUBLIC;
        if plain {
            bytes[6] = length as u8 & 0x7f;
        }
        let first = First::from_bytes(*bytes.first_chunk().expect("eight bytes"));
        let (header, header_bytes) = Header::decode(&bytes);
        prop_assert_eq!(first.is_plain(), header_bytes == PLAIN_BYTES);
        prop_assert_eq!(first.key_bytes(), usize::from(header.key_bytes));
        prop_assert_eq!((first.edition(), first.marks()), (header.edition, header.marks()));
        if first.is_plain() {
            prop_assert_eq!(first.value_bytes(), header.value_bytes as usize);
        }
        prop_assert_eq!(first.accessed_at(now), header.accessed_at(now));
        let noted = header.accessed(now).marked(header.marks().with(Marks::FETCHED));
        if first.is_plain() {
            let mut written = bytes;
            noted.encode(&mut written);
            written[PLAIN_BYTES] = bytes[PLAIN_BYTES];
            let written = First::from_bytes(*written.first_chunk().expect("eight bytes"));
            prop_assert_eq!(first.noted(now), written);
        }
        let value = vec![0; length];
        let contents = Contents { flags, marks: Marks(marks), ..Contents::of(&value) };
        let new = Header::new(first.key_bytes(), &contents, now).next_edition(&header);
        let same_length = new.is_some_and(|new| new.item_bytes() == header.item_bytes());
        match first.replaced_by(&contents, now) {
            None => prop_assert!(
                !same_length || !first.is_plain() || new.is_some_and(|new| new.bytes() != PLAIN_BYTES)
            ),
            Some(next) => {
                prop_assert!(same_length);
                let behind = bytes[PLAIN_BYTES];
                new.expect("an edition").encode(&mut bytes);
                bytes[PLAIN_BYTES] = behind;
                let expected = First::from_bytes(*bytes.first_chunk().expect("eight bytes"));
                prop_assert_eq!(next, expected);
            }
        }
    }

    /// As does the way for a short value with flags or an expiry.
    #[test]
    fn a_short_header_is_renewed_as_any_other_is(
        start in any::<[u8; 8]>(),
        fields in 0..8_u8,
        options in any::<[u8; 16]>(),
        length in 0..140_usize,
        flags in prop_oneof![Just(0), any::<u32>()],
        expires_at in prop_oneof![Just(0), any::<u32>()],
        now in any::<u32>(),
    ) {
        let mut bytes = [0x55; WINDOW_BYTES];
        bytes[..8].copy_from_slice(&start);
        bytes[1] = start[1] & Marks::PUBLIC | fields << 4;
        bytes[6] = length as u8 & 0x7f;
        bytes[PLAIN_BYTES..PLAIN_BYTES + 16].copy_from_slice(&options);
        let first = First::from_bytes(*bytes.first_chunk().expect("eight bytes"));
        let (header, header_bytes) = Header::decode(&bytes);
        prop_assert_eq!(first.is_short(), header.explicit_cas().is_none());
        let behind = u64::from_le_bytes(*options.first_chunk().expect("eight bytes"));
        if first.is_short() {
            prop_assert_eq!(PLAIN_BYTES + first.option_bytes(), header_bytes);
            prop_assert_eq!(first.options(behind), (header.flags(), header.expires_at()));
        }
        let value = vec![0; length];
        let contents = Contents { flags, expires_at, ..Contents::of(&value) };
        let new = Header::new(first.key_bytes(), &contents, now).next_edition(&header);
        let has_same_fields = new.is_some_and(|new| {
            let fields = |header: &Header| header.bits & (HAS_FLAGS | HAS_EXPIRY);
            new.value_bytes == header.value_bytes && fields(&new) == fields(&header)
        });
        let renewed = first.renewed_by(&contents, now);
        prop_assert_eq!(renewed.is_some(), has_same_fields && first.is_short());
        if let (Some((next, options)), Some(new)) = (renewed, new) {
            let mut expected = bytes;
            let length = new.encode(&mut expected);
            expected[length..].copy_from_slice(&bytes[length..]);
            bytes[..8].copy_from_slice(&next.to_bytes());
            let end = PLAIN_BYTES + next.option_bytes();
            bytes[PLAIN_BYTES..end].copy_from_slice(&options.to_le_bytes()[..end - PLAIN_BYTES]);
            prop_assert_eq!(bytes, expected);
        }
    }

    #[test]
    fn any_bytes_are_some_header_within_the_window(bytes in any::<[u8; WINDOW_BYTES]>()) {
        let (_, length) = Header::decode(&bytes);
        prop_assert!(length <= HEADER_BYTES);
    }

    #[test]
    fn a_time_within_half_a_year_is_told_exactly(at in any::<u32>(), age in 0..=ACCESSED_MASK) {
        let header = Header::new(1, &Contents::of(b"v"), at);
        prop_assert_eq!(header.accessed_at(at.wrapping_add(age)), at);
    }
}

#[test]
fn a_small_item_without_options_has_seven_bytes_in_front() {
    assert_eq!(Header::new(8, &Contents::of(&[0; 127]), 5).bytes(), 7);
    assert_eq!(Header::new(8, &Contents::of(&[0; 128]), 5).bytes(), 8);
}

/// Whoever reads in the middle of a change must see another CAS number behind it: that of the item's own, if it has
/// one, or of its edition.
#[test]
fn an_edition_follows_one_whose_cas_number_is_of_its_own_kind() {
    let header = |cas| {
        Header::new(
            3,
            &Contents {
                cas,
                ..Contents::of(b"value")
            },
            0,
        )
    };
    let (plain, own, other) = (header(0), header(7), header(8));
    let next = plain.next_edition(&plain);
    assert_eq!(next.map(|next| next.edition), Some(plain.edition + 1));
    assert_eq!(own.next_edition(&other), Some(own));
    assert_eq!(own.next_edition(&plain), Some(own));
    // Not told from the one before: the same number again, or none behind one of its own.
    assert_eq!(own.next_edition(&own), None);
    assert_eq!(plain.next_edition(&own), None);
    let last = Header {
        edition: EDITION_MAX,
        ..plain
    };
    assert_eq!(plain.next_edition(&last), None);
    let before = Header {
        edition: EDITION_MAX - 1,
        ..plain
    };
    assert_eq!(plain.next_edition(&before), Some(last));
}
