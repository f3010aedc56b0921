use super::*;
use ceiling::team::usable_cores;

fn options(kind: Kind) -> Options {
    let core = usable_cores().unwrap()[0];
    Options {
        buffer_bytes: Some(1 << 20),
        ..Options::new(kind, vec![core])
    }
}

/// Waits for something that must come, without a bound on the speed of the machine.
fn until(done: impl Fn() -> bool) {
    while !done() {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn bytes_are_counted_until_the_stop_and_not_beyond() {
    for kind in [Kind::DramBandwidth, Kind::LastLevelCache] {
        let mut antagonist = Antagonist::start(&options(kind)).unwrap();
        until(|| antagonist.moved_bytes() > 10 << 20);
        antagonist.stop();
        let (moved, busy) = (antagonist.moved_bytes(), antagonist.busy());
        assert_eq!(moved % LINE_BYTES as u64, 0);
        assert!(!busy.is_zero());
        antagonist.stop();
        assert_eq!((antagonist.moved_bytes(), antagonist.busy()), (moved, busy));
    }
}

#[test]
fn a_placebo_is_busy_and_moves_nothing() {
    let antagonist = Antagonist::start(&Options {
        duty: 0.5,
        nice: 19,
        ..options(Kind::Placebo)
    })
    .unwrap();
    until(|| antagonist.busy() > Duration::from_millis(5));
    assert_eq!(antagonist.moved_bytes(), 0);
}

#[test]
fn a_pace_is_never_exceeded_by_more_than_a_portion_and_the_backlog() {
    let rate = 50e6;
    let start = Instant::now();
    let mut antagonist = Antagonist::start(&Options {
        bytes_per_second: Some(rate),
        ..options(Kind::DramBandwidth)
    })
    .unwrap();
    until(|| antagonist.moved_bytes() > 5_000_000);
    antagonist.stop();
    let portion = (PORTION_LINES * LINE_BYTES) as f64;
    let most = rate * start.elapsed().as_secs_f64() + portion;
    assert!(antagonist.moved_bytes() as f64 <= most);
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let good = options(Kind::DramBandwidth);
    for (wrong, part) in [
        (
            Options {
                cores: vec![],
                ..good.clone()
            },
            "no core",
        ),
        (
            Options {
                duty: 0.0,
                ..good.clone()
            },
            "busy for 0 of the time",
        ),
        (
            Options {
                duty: f64::NAN,
                ..good.clone()
            },
            "busy for NaN",
        ),
        (
            Options {
                bytes_per_second: Some(-1.0),
                ..good.clone()
            },
            "-1 bytes a second",
        ),
        (
            Options {
                bytes_per_second: Some(1.0),
                ..options(Kind::Placebo)
            },
            "placebo",
        ),
        (
            Options {
                nice: -1,
                ..good.clone()
            },
            "niceness -1",
        ),
        (
            Options {
                buffer_bytes: Some(1),
                ..good.clone()
            },
            "buffer of 1 bytes",
        ),
        (
            Options {
                cores: vec![100_000],
                ..good.clone()
            },
            "core 100000",
        ),
    ] {
        let message = Antagonist::start(&wrong).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
    assert!(
        "gpu"
            .parse::<Kind>()
            .unwrap_err()
            .to_string()
            .contains("'gpu'")
    );
}
