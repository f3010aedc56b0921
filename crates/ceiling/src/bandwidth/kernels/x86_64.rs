//! Wide registers and stores past the caches on x86-64.

use std::arch::x86_64::{
    _mm_loadu_si128, _mm_set1_epi64x, _mm_sfence, _mm_stream_si128, _mm256_loadu_si256,
    _mm256_set1_epi64x, _mm256_stream_si256,
};

use super::portable::{LINE_WORDS, Line, copy_lines, sum_portable};

/// The portable loop, compiled for 256-bit registers.
#[target_feature(enable = "avx2")]
pub(super) fn sum_avx2(words: &[u64]) -> u64 {
    sum_portable(words)
}

#[target_feature(enable = "avx2")]
pub(super) fn fill_avx2(words: &mut [u64], value: u64) {
    assert_aligned(words);
    let vector = _mm256_set1_epi64x(value.cast_signed());
    let (lines, rest) = words.as_chunks_mut::<LINE_WORDS>();
    for place in lines.as_flattened_mut().as_chunks_mut::<4>().0 {
        // SAFETY: `place` is as long as the vector, and aligned because its line is.
        unsafe { _mm256_stream_si256(place.as_mut_ptr().cast(), vector) };
    }
    rest.fill(value);
    _mm_sfence();
}

#[target_feature(enable = "avx2")]
pub(super) fn copy_avx2(source: &[u64], destination: &mut [u64]) {
    assert_aligned(destination);
    copy_lines(source, destination, |line, from| {
        for (place, from) in line
            .as_chunks_mut::<4>()
            .0
            .iter_mut()
            .zip(from.as_chunks::<4>().0)
        {
            // SAFETY: both are as long as a vector; `place` is aligned because its line is, and the load needs no
            // alignment. The processor has AVX2, as the enclosing function demands.
            unsafe {
                _mm256_stream_si256(
                    place.as_mut_ptr().cast(),
                    _mm256_loadu_si256(from.as_ptr().cast()),
                );
            }
        }
    });
    _mm_sfence();
}

pub(super) fn fill_sse2(words: &mut [u64], value: u64) {
    assert_aligned(words);
    let (lines, rest) = words.as_chunks_mut::<LINE_WORDS>();
    for place in lines.as_flattened_mut().as_chunks_mut::<2>().0 {
        // SAFETY: `place` is as long as the vector, and aligned because its line is; every x86-64 processor has SSE2.
        unsafe {
            _mm_stream_si128(
                place.as_mut_ptr().cast(),
                _mm_set1_epi64x(value.cast_signed()),
            );
        }
    }
    rest.fill(value);
    // SAFETY: every x86-64 processor has SSE.
    unsafe { _mm_sfence() };
}

pub(super) fn copy_sse2(source: &[u64], destination: &mut [u64]) {
    assert_aligned(destination);
    copy_lines(source, destination, |line: &mut Line, from: &Line| {
        for (place, from) in line
            .as_chunks_mut::<2>()
            .0
            .iter_mut()
            .zip(from.as_chunks::<2>().0)
        {
            // SAFETY: as in `copy_avx2`; every x86-64 processor has SSE2.
            unsafe {
                _mm_stream_si128(
                    place.as_mut_ptr().cast(),
                    _mm_loadu_si128(from.as_ptr().cast()),
                );
            }
        }
    });
    // SAFETY: every x86-64 processor has SSE.
    unsafe { _mm_sfence() };
}

/// Stores past the caches fault unless they are aligned: words must begin where a cache line does.
fn assert_aligned(words: &[u64]) {
    assert_eq!(
        words.as_ptr().align_offset(size_of::<Line>()),
        0,
        "buffers begin at a cache line"
    );
}

#[cfg(test)]
mod tests;
