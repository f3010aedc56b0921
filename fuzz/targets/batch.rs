//! See `fuzz::batch`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::batch::run(data));
