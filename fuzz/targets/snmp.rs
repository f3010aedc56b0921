//! See `fuzz::snmp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::snmp::run(data));
