//! See `fuzz::partition`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::partition::run(data));
