//! See `fuzz::accounts`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::accounts::run(data));
