use super::*;
use proptest::prelude::*;

/// As RFC 1071 describes it, one number after the other.
fn slowly(bytes: &[u8]) -> [u8; 2] {
    let mut sum = 0_u16;
    for pair in bytes.chunks(2) {
        let number = u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]);
        let (wrapped, carry) = sum.overflowing_add(number);
        sum = wrapped + u16::from(carry);
    }
    sum.to_be_bytes()
}

#[test]
fn the_examples_of_the_standard() {
    // RFC 1071, section 3.
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(Sum::default().and(&bytes).folded(), [0xdd, 0xf2]);
    assert_eq!(Sum::default().and(&bytes).finish(), [0x22, 0x0d]);
    assert_eq!(Sum::default().folded(), [0, 0]);
}

proptest! {
    #[test]
    fn as_one_number_after_the_other(
        first in proptest::collection::vec(any::<u8>(), 0..50).prop_map(|mut bytes| {
            bytes.truncate(bytes.len() & !1);
            bytes
        }),
        second in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..2_000),
            proptest::collection::vec(Just(0xff), 0..2_000),
        ],
        number in any::<u32>(),
    ) {
        let all = [&first[..], &number.to_be_bytes(), &second].concat();
        let sum = Sum::default().and(&first).and_number(number).and(&second);
        prop_assert_eq!(sum.folded(), slowly(&all));
    }
}
