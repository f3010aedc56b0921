//! The loops: plain Rust that the compiler vectorises, and cache-bypassing stores where the processor has them.
//!
//! Reading takes a line from each of [`LANES`] neighbouring pages in turn. A hardware prefetcher follows one stream a
//! page, so one page at a time leaves most of a core's outstanding misses unused: on a Sapphire Rapids core eight
//! read half as much again as one. Stores past the caches gain nothing from it and go straight on.

#[cfg(target_arch = "x86_64")]
mod x86_64;

/// How a kernel stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stores {
    /// Past the caches: the bytes written are all the traffic there is.
    NonTemporal,
    /// Through the caches: a line is read before it is overwritten, unless the processor notices that all of it will
    /// be, so there may be one byte read for each byte written that the count does not show.
    Ordinary,
}

/// Words in a cache line of 64 bytes; where lines are longer, neighbours are read together all the same.
const LINE_WORDS: usize = 8;
/// Lines in a page of 4 KiB, past which prefetchers do not run.
const PAGE_LINES: usize = 64;
/// Pages that are read side by side.
const LANES: usize = 8;
/// Lines of the pages that are read side by side.
const BLOCK_LINES: usize = LANES * PAGE_LINES;

type Line = [u64; LINE_WORDS];

/// Sum of all words, wrapping.
pub(super) fn sum(words: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { x86_64::sum_avx2(words) };
    }
    sum_portable(words)
}

/// Stores `value` into all words.
pub(super) fn fill(words: &mut [u64], value: u64) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        unsafe { x86_64::fill_avx2(words, value) }
    } else {
        x86_64::fill_sse2(words, value);
    }
    #[cfg(not(target_arch = "x86_64"))]
    words.fill(value);
}

/// Copies `source` over `destination`, which is as long.
pub(super) fn copy(source: &[u64], destination: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        unsafe { x86_64::copy_avx2(source, destination) }
    } else {
        x86_64::copy_sse2(source, destination);
    }
    #[cfg(not(target_arch = "x86_64"))]
    copy_lines(source, destination, |line, from| *line = *from);
}

/// How `fill` and `copy` store on this machine.
pub(super) fn stores() -> Stores {
    if cfg!(target_arch = "x86_64") {
        Stores::NonTemporal
    } else {
        Stores::Ordinary
    }
}

/// The widest instructions that the kernels use on this machine.
pub(super) fn instructions() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    return if is_x86_feature_detected!("avx2") {
        "avx2"
    } else {
        "sse2"
    };
    #[cfg(target_arch = "aarch64")]
    return "neon";
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return "portable";
}

/// Two lines of sums, so that additions seldom wait for each other; inlined where wider registers are allowed.
#[inline(always)]
fn sum_portable(words: &[u64]) -> u64 {
    let (lines, rest) = words.as_chunks::<LINE_WORDS>();
    let (blocks, rest_lines) = lines.as_chunks::<BLOCK_LINES>();
    let mut sums: [Line; 2] = Default::default();
    let add = |sums: &mut Line, line: &Line| {
        for (sum, word) in sums.iter_mut().zip(line) {
            *sum = sum.wrapping_add(*word);
        }
    };
    for block in blocks {
        for line in 0..PAGE_LINES {
            for lane in 0..LANES {
                add(&mut sums[lane % 2], &block[lane * PAGE_LINES + line]);
            }
        }
    }
    for line in rest_lines {
        add(&mut sums[0], line);
    }
    sums.as_flattened()
        .iter()
        .chain(rest)
        .fold(0, |sum, word| sum.wrapping_add(*word))
}

/// Copies line by line with `store`, in the order that reads fastest; inlined so that `store` may use wide registers.
#[inline(always)]
fn copy_lines(source: &[u64], destination: &mut [u64], store: impl Fn(&mut Line, &Line)) {
    assert_eq!(source.len(), destination.len(), "halves are equally long");
    let (lines, rest) = destination.as_chunks_mut::<LINE_WORDS>();
    let (source_lines, source_rest) = source.as_chunks::<LINE_WORDS>();
    let (blocks, rest_lines) = lines.as_chunks_mut::<BLOCK_LINES>();
    let (source_blocks, source_rest_lines) = source_lines.as_chunks::<BLOCK_LINES>();
    for (block, from) in blocks.iter_mut().zip(source_blocks) {
        for line in 0..PAGE_LINES {
            for lane in 0..LANES {
                let place = lane * PAGE_LINES + line;
                store(&mut block[place], &from[place]);
            }
        }
    }
    for (line, from) in rest_lines.iter_mut().zip(source_rest_lines) {
        store(line, from);
    }
    rest.copy_from_slice(source_rest);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::Buffer;

    proptest! {
        // Lengths around a line, a page and a block, where a loop would forget a rest.
        #[test]
        fn every_word_is_summed_copied_and_filled(words in 0..3 * BLOCK_LINES * LINE_WORDS, seed in any::<u64>()) {
            let mut source = Buffer::zeroed(words).unwrap();
            for (word, number) in source.iter_mut().zip(1..) {
                *word = seed.wrapping_mul(number);
            }
            let expected = source.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
            prop_assert_eq!(sum(&source), expected);
            prop_assert_eq!(sum_portable(&source), expected);

            let mut destination = Buffer::zeroed(words).unwrap();
            copy(&source, &mut destination);
            prop_assert_eq!(&source[..], &destination[..]);
            destination.fill(0);
            copy_lines(&source, &mut destination, |line, from| *line = *from);
            prop_assert_eq!(&source[..], &destination[..]);

            fill(&mut destination, seed);
            prop_assert!(destination.iter().all(|&word| word == seed));
        }
    }
}
