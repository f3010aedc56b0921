//! See `fuzz::packets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::packets::run(data));
