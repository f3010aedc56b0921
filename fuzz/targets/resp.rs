//! See `fuzz::resp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::resp::run(data));
