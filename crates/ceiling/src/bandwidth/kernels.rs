//! The loops: plain Rust that the compiler vectorises, and cache-bypassing stores where the processor has them.
//!
//! Reading takes a line from each of [`LANES`] neighbouring pages in turn. A hardware prefetcher follows one stream a
//! page, so one page at a time leaves most of a core's outstanding misses unused: on a Sapphire Rapids core eight
//! read half as much again as one. Stores past the caches gain nothing from it and go straight on.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(not(target_arch = "x86_64"))]
use portable::copy_lines;
use portable::sum_portable;

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

/// How `fill` and `copy` store on this machine. `non-temporal` is past the caches: the bytes written are all the traffic
/// there is. With `ordinary` stores a line is read before it is overwritten, unless the processor notices that all of it
/// will be, so there may be one byte read for each byte written that the count does not show.
pub(super) const STORES: &str = match cfg!(target_arch = "x86_64") {
    true => "non-temporal",
    false => "ordinary",
};

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

#[cfg(test)]
mod tests;
