use super::*;
use crate::clock;
use proptest::prelude::*;

fn counts(enabled: u64, running: u64, value: u64) -> Counts {
    Counts {
        enabled,
        running,
        values: [value, 0, 0, 0],
    }
}

#[test]
fn counts_are_scaled_by_the_time_that_was_not_counted() {
    let mut group = Counts::default();
    let progress = group.step(counts(100, 50, 10));
    assert_eq!(
        (progress.values[0], progress.enabled, progress.running),
        (20.0, 100, 50)
    );
    // Not counted at all: nothing is known yet.
    assert_eq!(group.step(counts(200, 50, 10)).values[0], 0.0);
    // 10 events in 50 of 200 nanoseconds.
    assert_eq!(group.step(counts(300, 100, 20)).values[0], 40.0);
    assert_eq!(group.step(counts(400, 200, 25)).values[0], 5.0);
}

#[test]
fn what_the_kernel_hands_over_is_checked() {
    let words = |words: &[u64]| {
        words
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect::<Vec<u8>>()
    };
    let whole = words(&[2, 100, 50, 7, 8]);
    assert_eq!(
        parse(&whole, 2),
        Some(Counts {
            enabled: 100,
            running: 50,
            values: [7, 8, 0, 0]
        })
    );
    assert_eq!(parse(&whole, 1), None);
    assert_eq!(parse(&whole[..39], 2), None);
    assert_eq!(parse(&[], 1), None);
}

proptest! {
    #[test]
    fn scaled_counts_never_go_back(steps in prop::collection::vec((0u64..1000, 0u64..1000, 0u64..1000), 1..20)) {
        let (mut group, mut now) = (Counts::default(), Counts::default());
        for (enabled, running, value) in steps {
            now.enabled += enabled;
            now.running += running.min(enabled);
            now.values[0] += value;
            let progress = group.step(now);
            prop_assert!(progress.values[0] >= 0.0 && progress.values[0].is_finite());
            prop_assert!(progress.running <= progress.enabled.max(progress.running));
        }
    }
}

/// Software events need no hardware counters, and the kernel groups, inherits and reads them the same way.
#[test]
fn a_group_counts_a_thread_and_those_that_it_starts() {
    let events = [
        Event::TASK_CLOCK,
        Event::CONTEXT_SWITCHES,
        Event::PAGE_FAULTS,
    ];
    let own = rustix::thread::gettid().as_raw_pid() as u32;
    let mut group = match Group::open(&events, Target::Thread(own), true) {
        Ok(group) => group,
        Err(Errno::ACCESS | Errno::PERM | Errno::NOSYS) => {
            eprintln!("skipped: perf events are not permitted here");
            return;
        }
        Err(errno) => panic!("{errno}"),
    };
    group.advance().unwrap();
    const WORK_NANOSECONDS: u64 = 30_000_000;
    let work = || {
        let start = clock::thread_cpu();
        while clock::thread_cpu() - start < WORK_NANOSECONDS {}
        // Too large for the allocator to have at hand: fresh pages, which fault.
        std::hint::black_box(vec![1u8; 8 << 20]);
    };
    work();
    std::thread::spawn(work).join().unwrap();
    let progress = group.advance().unwrap();
    assert!(
        progress.values[0] >= 2.0 * WORK_NANOSECONDS as f64,
        "{progress:?}"
    );
    assert!(progress.values[2] >= 1.0, "{progress:?}");
    assert_eq!(
        progress.enabled, progress.running,
        "software events are always counted"
    );
}
