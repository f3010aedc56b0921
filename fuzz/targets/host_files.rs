//! See `fuzz::host_files`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::host_files::run(data));
