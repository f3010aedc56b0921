use super::*;
use crate::team::usable_cores;

#[test]
fn every_core_is_read_and_readings_only_grow() {
    let cores = usable_cores().unwrap();
    let mut speedometer = Speedometer::start(&cores).unwrap();
    let all_started = |readings: &[Reading]| readings.iter().all(|one| one.instructions > 0);
    let mut first = speedometer.read();
    while !all_started(&first) {
        thread::yield_now();
        first = speedometer.read();
    }
    assert_eq!(first.len(), cores.len());
    speedometer.stop();
    let last = speedometer.read();
    for (early, late) in first.iter().zip(&last) {
        assert!(late.instructions >= early.instructions && late.busy >= early.busy);
        assert!(late.busy > Duration::ZERO);
    }
    assert_eq!(speedometer.read(), last);
}

#[test]
fn a_core_that_is_not_there_is_an_error_and_leaves_no_thread() {
    let error = Speedometer::start(&[usable_cores().unwrap()[0], 100_000]).unwrap_err();
    assert!(error.to_string().contains("core 100000 cannot be used"));
}
