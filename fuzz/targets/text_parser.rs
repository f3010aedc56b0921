//! See `fuzz::text_parser`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::text_parser::run(data));
