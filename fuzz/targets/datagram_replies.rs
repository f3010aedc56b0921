//! See `fuzz::datagram_replies`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::datagram_replies::run(data));
