//! See `fuzz::memcached_replies`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::memcached_replies::run(data));
