//! See `fuzz::memory_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::memory_file::run(data));
