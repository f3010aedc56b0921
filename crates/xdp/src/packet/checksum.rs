/// A sum in ones' complement of 16-bit numbers (RFC 1071), not yet folded, in the machine's order of bytes: the order
/// does not matter to the sum as long as the result is stored the same way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum(u64);

impl Sum {
    /// And these bytes, at an even distance from the start; a last odd one counts as if a zero followed.
    #[must_use]
    #[inline]
    pub fn and(self, bytes: &[u8]) -> Self {
        // 32 bits at a time into 64: no carry is lost in anything shorter than 16 GiB, and compilers make vectors of it.
        let (words, rest) = bytes.as_chunks::<4>();
        let mut sum = self.0;
        for word in words {
            sum += u64::from(u32::from_ne_bytes(*word));
        }
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        Self(sum + u64::from(u32::from_ne_bytes(last)))
    }

    /// And a number as 32 bits.
    #[must_use]
    #[inline]
    pub fn and_number(self, number: u32) -> Self {
        self.and(&number.to_be_bytes())
    }

    /// The sum of 16 bits, as it is stored.
    #[must_use]
    #[inline]
    pub fn folded(self) -> [u8; 2] {
        let mut sum = self.0;
        sum = (sum & 0xffff_ffff) + (sum >> 32);
        sum = (sum & 0xffff_ffff) + (sum >> 32);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        (sum as u16).to_ne_bytes()
    }

    /// The checksum, as it is stored: zero over bytes that hold a right one.
    #[must_use]
    #[inline]
    pub fn finish(self) -> [u8; 2] {
        self.folded().map(|byte| !byte)
    }
}

#[cfg(test)]
mod tests {
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
}
