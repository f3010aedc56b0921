use proptest::prelude::*;

use super::portable::{BLOCK_LINES, LINE_WORDS, copy_lines};
use super::*;
use crate::memory;

proptest! {
    // Lengths around a line, a page and a block, where a loop would forget a rest.
    #[test]
    fn every_word_is_summed_copied_and_filled(words in 0..3 * BLOCK_LINES * LINE_WORDS, seed in any::<u64>()) {
        let mut source = memory::zeroed(words).unwrap();
        for (word, number) in source.iter_mut().zip(1..) {
            *word = seed.wrapping_mul(number);
        }
        let expected = source.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
        prop_assert_eq!(sum(&source), expected);
        prop_assert_eq!(sum_portable(&source), expected);

        let mut destination = memory::zeroed(words).unwrap();
        copy(&source, &mut destination);
        prop_assert_eq!(&source[..], &destination[..]);
        destination.fill(0);
        copy_lines(&source, &mut destination, |line, from| *line = *from);
        prop_assert_eq!(&source[..], &destination[..]);

        fill(&mut destination, seed);
        prop_assert!(destination.iter().all(|&word| word == seed));
    }
}
