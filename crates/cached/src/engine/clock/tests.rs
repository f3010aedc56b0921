use super::*;

#[test]
fn deadlines_follow_the_protocol() {
    let clock = Clock {
        zero: 0,
        zero_unix: 1_700_000_000,
        started: START,
    };
    for (exptime, deadline) in [
        (0, 0),
        (-1, PAST),
        (i32::MIN, PAST),
        (1, 1001),
        (2_592_000, 2_593_000),
        // A second more than 30 days is a moment of 1970.
        (2_592_001, PAST),
        (1_699_999_999, PAST),
        (1_700_000_000, PAST),
        (1_700_005_000, 5000),
        (i32::MAX, 447_483_647),
    ] {
        assert_eq!(clock.deadline(exptime, 1000), deadline, "{exptime}");
    }
}

#[test]
fn it_runs_from_its_start() {
    let clock = Clock::start();
    assert!((0..10).contains(&clock.uptime_seconds(clock.now())));
}

#[test]
fn it_goes_on_from_another() {
    let unix = Clock::start().unix_seconds(START);
    // A hundred seconds after the other stood at 1000.
    let clock = Clock::resume(unix - 1100, 1000).expect("a time");
    assert!((1100..1110).contains(&clock.now()));
    assert!((0..10).contains(&clock.uptime_seconds(clock.now())));
    assert!((unix..unix + 10).contains(&clock.unix_seconds(clock.now())));
    // The host's clock was set back.
    let clock = Clock::resume(unix - 900, 1000).expect("a time");
    assert!((1000..1010).contains(&clock.now()));
    assert!((unix..unix + 10).contains(&clock.unix_seconds(clock.now())));
    for (zero, then) in [
        (unix - (1 << 32), 5),
        (i64::MIN, 5),
        (unix, u32::MAX),
        (i64::MAX, 0),
    ] {
        assert!(Clock::resume(zero, then).is_none(), "{zero} {then}");
    }
}
