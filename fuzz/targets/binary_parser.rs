//! See `fuzz::binary_parser`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::binary_parser::run(data));
