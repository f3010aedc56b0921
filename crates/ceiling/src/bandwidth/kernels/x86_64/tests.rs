use proptest::prelude::*;

use super::*;
use crate::memory;

proptest! {
    #[test]
    fn processors_without_avx2_fill_and_copy_the_same(words in 0_usize..10_000, value in any::<u64>()) {
        let mut source = memory::zeroed(words).unwrap();
        fill_sse2(&mut source, value);
        prop_assert!(source.iter().all(|&word| word == value));
        for (word, number) in source.iter_mut().zip(1..) {
            *word = value.wrapping_mul(number);
        }
        let mut destination = memory::zeroed(words).unwrap();
        copy_sse2(&source, &mut destination);
        prop_assert_eq!(&source[..], &destination[..]);
    }
}
