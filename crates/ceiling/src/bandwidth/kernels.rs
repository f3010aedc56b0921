//! The loops: plain Rust that the compiler vectorises, and cache-bypassing stores where the processor has them.

/// How a kernel stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stores {
    /// Past the caches: the bytes written are all the traffic there is.
    NonTemporal,
    /// Through the caches: a line is read before it is overwritten, unless the processor notices that all of it will
    /// be, so there may be one byte read for each byte written that the count does not show.
    Ordinary,
}

/// Words that one step of a loop handles: 256 bytes, four cache lines on most processors.
const STEP_WORDS: usize = 32;

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
        return unsafe { x86_64::fill_avx2(words, value) };
    }
    #[cfg(target_arch = "x86_64")]
    x86_64::fill_sse2(words, value);
    #[cfg(not(target_arch = "x86_64"))]
    words.fill(value);
}

/// Copies `source` over `destination`, which is as long.
pub(super) fn copy(source: &[u64], destination: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { x86_64::copy_avx2(source, destination) };
    }
    #[cfg(target_arch = "x86_64")]
    x86_64::copy_sse2(source, destination);
    #[cfg(not(target_arch = "x86_64"))]
    destination.copy_from_slice(source);
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

/// Independent sums, so that no addition waits for another and the compiler can keep them in vector registers.
#[inline(always)]
fn sum_portable(words: &[u64]) -> u64 {
    let (steps, rest) = words.as_chunks::<STEP_WORDS>();
    let mut sums = [0_u64; STEP_WORDS];
    for step in steps {
        for (sum, word) in sums.iter_mut().zip(step) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter()
        .chain(rest)
        .fold(0, |sum, word| sum.wrapping_add(*word))
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::{
        _mm_loadu_si128, _mm_set1_epi64x, _mm_sfence, _mm_stream_si128, _mm256_loadu_si256,
        _mm256_set1_epi64x, _mm256_stream_si256,
    };

    use super::sum_portable;

    /// Words in a cache line.
    const LINE_WORDS: usize = 8;
    const LINE_BYTES: usize = 64;

    /// Cache lines that begin where the hardware's do, which makes every vector inside them aligned as well.
    fn lines(words: &mut [u64]) -> (&mut [[u64; LINE_WORDS]], &mut [u64]) {
        assert_eq!(
            words.as_ptr().align_offset(LINE_BYTES),
            0,
            "buffers begin at a cache line"
        );
        words.as_chunks_mut::<LINE_WORDS>()
    }

    /// The portable loop, compiled for 256-bit registers.
    #[target_feature(enable = "avx2")]
    pub(super) fn sum_avx2(words: &[u64]) -> u64 {
        sum_portable(words)
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn fill_avx2(words: &mut [u64], value: u64) {
        let (lines, rest) = lines(words);
        let vector = _mm256_set1_epi64x(value.cast_signed());
        for line in lines {
            for place in line.as_chunks_mut::<4>().0 {
                // SAFETY: `place` is as long as the vector, and aligned because its line is.
                unsafe { _mm256_stream_si256(place.as_mut_ptr().cast(), vector) };
            }
        }
        rest.fill(value);
        _mm_sfence();
    }

    pub(super) fn fill_sse2(words: &mut [u64], value: u64) {
        let (lines, rest) = lines(words);
        // SAFETY: every x86-64 processor has SSE2.
        let vector = unsafe { _mm_set1_epi64x(value.cast_signed()) };
        for line in lines {
            for place in line.as_chunks_mut::<2>().0 {
                // SAFETY: `place` is as long as the vector, and aligned because its line is.
                unsafe { _mm_stream_si128(place.as_mut_ptr().cast(), vector) };
            }
        }
        rest.fill(value);
        // SAFETY: every x86-64 processor has SSE.
        unsafe { _mm_sfence() };
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn copy_avx2(source: &[u64], destination: &mut [u64]) {
        assert_eq!(source.len(), destination.len(), "halves are equally long");
        let (lines, rest) = lines(destination);
        let (source_lines, source_rest) = source.as_chunks::<LINE_WORDS>();
        for (line, source_line) in lines.iter_mut().zip(source_lines) {
            for (place, from) in line
                .as_chunks_mut::<4>()
                .0
                .iter_mut()
                .zip(source_line.as_chunks::<4>().0)
            {
                // SAFETY: both are as long as a vector; `place` is aligned because its line is, and the load needs
                // no alignment.
                unsafe {
                    _mm256_stream_si256(
                        place.as_mut_ptr().cast(),
                        _mm256_loadu_si256(from.as_ptr().cast()),
                    )
                };
            }
        }
        rest.copy_from_slice(source_rest);
        _mm_sfence();
    }

    pub(super) fn copy_sse2(source: &[u64], destination: &mut [u64]) {
        assert_eq!(source.len(), destination.len(), "halves are equally long");
        let (lines, rest) = lines(destination);
        let (source_lines, source_rest) = source.as_chunks::<LINE_WORDS>();
        for (line, source_line) in lines.iter_mut().zip(source_lines) {
            for (place, from) in line
                .as_chunks_mut::<2>()
                .0
                .iter_mut()
                .zip(source_line.as_chunks::<2>().0)
            {
                // SAFETY: as in `copy_avx2`, and every x86-64 processor has SSE2.
                unsafe {
                    _mm_stream_si128(
                        place.as_mut_ptr().cast(),
                        _mm_loadu_si128(from.as_ptr().cast()),
                    )
                };
            }
        }
        rest.copy_from_slice(source_rest);
        // SAFETY: every x86-64 processor has SSE.
        unsafe { _mm_sfence() };
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::memory::Buffer;

        fn numbered(count: usize) -> Buffer {
            let mut words = Buffer::zeroed(count).unwrap();
            words
                .iter_mut()
                .zip(7..)
                .for_each(|(word, number)| *word = number);
            words
        }

        #[test]
        fn processors_without_avx2_fill_and_copy_the_same() {
            for count in [0, 1, 7, 8, 9, 1000] {
                let source = numbered(count);
                let mut destination = Buffer::zeroed(count).unwrap();
                copy_sse2(&source, &mut destination);
                assert_eq!(&source[..], &destination[..]);
                fill_sse2(&mut destination, 5);
                assert!(destination.iter().all(|&word| word == 5));
            }
        }

        #[test]
        fn a_rest_shorter_than_a_line_is_not_forgotten() {
            for count in [0, 1, 7, 8, 9, 1000] {
                let source = numbered(count);
                let mut destination = Buffer::zeroed(count).unwrap();
                super::super::copy(&source, &mut destination);
                assert_eq!(&source[..], &destination[..]);
                super::super::fill(&mut destination, 5);
                assert_eq!(super::super::sum(&destination), 5 * count as u64);
            }
        }
    }
}
