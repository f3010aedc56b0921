//! See `fuzz::recipe`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::recipe::run(data));
