//! See `fuzz::metrics`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::metrics::run(data));
