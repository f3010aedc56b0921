use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Mutex;

#[test]
fn a_read_after_an_acknowledged_write_must_see_it() {
    let ledger = Ledger::new(1);
    assert_eq!(ledger.begin_write(0), 1);
    assert_eq!(ledger.floor(0), 0);
    ledger.end_write(0);
    assert_eq!(ledger.floor(0), 1);
    assert_eq!(ledger.begin_write(0), 2);
    assert_eq!(ledger.floor(0), 1);
    assert_eq!(ledger.check(0, 1, 1), Ok(()));
    assert_eq!(ledger.check(0, 1, 2), Ok(()));
    assert_eq!(
        ledger.check(0, 1, 3),
        Err(WrongVersion::NeverWritten { found: 3, last: 2 })
    );
    ledger.end_write(0);
    let floor = ledger.floor(0);
    assert_eq!(
        ledger.check(0, floor, 1),
        Err(WrongVersion::Stale { found: 1, floor: 2 })
    );
    assert_eq!(
        ledger.check(0, 0, 0),
        Err(WrongVersion::Stale { found: 0, floor: 0 })
    );
}

#[test]
fn a_refused_write_raises_no_floor() {
    let ledger = Ledger::new(1);
    ledger.begin_write(0);
    ledger.end_write(0);
    ledger.begin_write(0);
    ledger.begin_write(0);
    ledger.abandon_write(0);
    ledger.end_write(0);
    assert_eq!(ledger.floor(0), 1);
    ledger.begin_write(0);
    ledger.end_write(0);
    assert_eq!(ledger.floor(0), 4);
}

#[test]
fn a_lost_write_may_take_effect_whenever_it_likes() {
    let ledger = Ledger::new(2);
    for id in [0, 1] {
        ledger.begin_write(id);
        ledger.end_write(id);
    }
    assert_eq!(ledger.begin_write(0), 2);
    ledger.lose_write(0);
    assert_eq!(ledger.begin_write(0), 3);
    ledger.end_write(0);
    let floor = ledger.floor(0);
    assert_eq!(ledger.check(0, floor, 2), Ok(()));
    assert_eq!(ledger.check(0, floor, 3), Ok(()));
    for _ in 0..3 * MOST_LOST {
        ledger.begin_write(1);
        ledger.lose_write(1);
    }
    let state = ledger.initial[1].state.load(Acquire);
    assert_eq!(state >> VERSION_BITS, MOST_LOST);
    assert_eq!(ledger.floor(1), 1);
}

#[test]
fn keys_that_inserts_add_are_tracked() {
    let ledger = Ledger::new(3);
    for id in [3, 4, 3 + SEGMENT_KEYS, 2 + SEGMENT_KEYS * SEGMENTS as u64] {
        assert_eq!(ledger.floor(id), 0);
        assert_eq!(ledger.begin_write(id), 1);
        ledger.end_write(id);
        assert_eq!(ledger.floor(id), 1, "{id}");
    }
    let untracked = 3 + SEGMENT_KEYS * SEGMENTS as u64;
    assert_eq!(ledger.begin_write(untracked), 1);
    ledger.end_write(untracked);
    assert_eq!(ledger.check(untracked, ledger.floor(untracked), 1), Ok(()));
}

#[test]
fn versions_beyond_32_bits_compare_rightly() {
    let ledger = Ledger::new(1);
    let entry = &ledger.initial[0];
    entry.state.store((5 << 32) - 1, Release);
    entry.floor.store(u32::MAX - 9, Release);
    assert_eq!(ledger.floor(0), (5 << 32) - 10);
    assert_eq!(ledger.begin_write(0), 5 << 32);
    ledger.end_write(0);
    assert_eq!(ledger.floor(0), 5 << 32);
}

#[test]
fn an_endless_burst_stops_issuing_versions_rather_than_raise_a_false_alarm() {
    let ledger = Ledger::new(1);
    ledger.begin_write(0);
    let entry = &ledger.initial[0];
    entry
        .state
        .store(ONE_UNDER_WAY | u64::from(MOST_ABOVE_FLOOR), Release);
    assert_eq!(ledger.begin_write(0), u64::from(MOST_ABOVE_FLOOR));
    ledger.end_write(0);
    ledger.end_write(0);
    assert_eq!(ledger.floor(0), 1);
}

/// One step of a made-up history of a linearizable register, with operations that overlap.
#[derive(Debug, Clone)]
enum Step {
    BeginWrite,
    Apply(prop::sample::Index),
    Acknowledge(prop::sample::Index),
    GiveUp(prop::sample::Index),
    SendRead,
    AnswerRead(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::BeginWrite),
        any::<prop::sample::Index>().prop_map(Step::Apply),
        any::<prop::sample::Index>().prop_map(Step::Acknowledge),
        any::<prop::sample::Index>().prop_map(Step::GiveUp),
        Just(Step::SendRead),
        any::<prop::sample::Index>().prop_map(Step::AnswerRead),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    /// No history of a correct server raises an alarm: writes take effect at any moment between being sent and
    /// acknowledged, or after being sent if they are given up, reads see the register at any moment between being sent and answered.
    #[test]
    fn a_correct_server_is_never_accused(steps in steps()) {
        let ledger = Ledger::new(1);
        let mut register = 0;
        let (mut sent, mut applied, mut lost) = (Vec::new(), Vec::new(), BTreeSet::new());
        let mut reads = Vec::<(u64, BTreeSet<u64>)>::new();
        for step in steps {
            match step {
                Step::BeginWrite => sent.push(ledger.begin_write(0)),
                Step::Apply(index) if !sent.is_empty() => {
                    register = sent.remove(index.index(sent.len()));
                    applied.push(register);
                    for (_, seen) in &mut reads {
                        seen.insert(register);
                    }
                }
                Step::Acknowledge(index) if !applied.is_empty() => {
                    let version = applied.remove(index.index(applied.len()));
                    if !lost.contains(&version) {
                        ledger.end_write(0);
                    }
                }
                Step::GiveUp(index) if !sent.is_empty() && lost.insert(*index.get(&sent)) => {
                    ledger.lose_write(0);
                }
                Step::SendRead if register > 0 => reads.push((ledger.floor(0), [register].into())),
                Step::AnswerRead(index) if !reads.is_empty() => {
                    let (floor, seen) = reads.remove(index.index(reads.len()));
                    for version in seen {
                        prop_assert_eq!(ledger.check(0, floor, version), Ok(()));
                    }
                }
                _ => {}
            }
        }
    }
}

#[test]
fn threads_never_accuse_a_correct_register() {
    let ledger = Ledger::new(1);
    let register = Mutex::new(0);
    let write = |_| {
        let version = ledger.begin_write(0);
        *register.lock().expect("no panic") = version;
        ledger.end_write(0);
    };
    write(());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..20_000).for_each(|_| write(())));
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let floor = ledger.floor(0);
                    let found = *register.lock().expect("no panic");
                    ledger.check(0, floor, found).expect("a correct register");
                }
            });
        }
    });
    let last = *register.lock().expect("no panic");
    assert_eq!(ledger.floor(0).min(last), ledger.floor(0));
}
