use super::*;
use crate::team::usable_cores;

#[test]
fn what_is_sent_arrives() {
    let cores = usable_cores().unwrap();
    let transfer =
        measure_loopback_bandwidth(cores[0], cores[cores.len() - 1], Duration::ZERO).unwrap();
    assert_eq!(transfer.bytes, CHUNK_BYTES as u64);
    assert!(transfer.duration > Duration::ZERO);
}

#[test]
fn an_unusable_core_is_named_for_either_end() {
    let core = usable_cores().unwrap()[0];
    for (sender, receiver) in [(1023, core), (core, 1023)] {
        let error =
            measure_loopback_bandwidth(sender, receiver, Duration::from_secs(30)).unwrap_err();
        assert!(error.to_string().contains("core 1023"), "{error}");
    }
}
