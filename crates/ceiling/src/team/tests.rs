use std::sync::atomic::AtomicU64;

use super::*;

fn cores_for_test() -> Vec<usize> {
    usable_cores().unwrap().into_iter().take(2).collect()
}

#[test]
fn every_round_adds_up_what_all_threads_did() {
    let cores = cores_for_test();
    let done = AtomicU64::new(0);
    let result = run_together(
        &cores,
        Duration::ZERO,
        |place| Ok(place as u64),
        |place| {
            done.fetch_add(*place + 1, Ordering::Relaxed);
            *place + 1
        },
    )
    .unwrap();
    let each: u64 = (1..=cores.len() as u64).sum();
    assert_eq!(result.rounds.len(), FEWEST_ROUNDS);
    assert!(result.rounds.iter().all(|round| round.amount == each));
    assert_eq!(result.amount(), each * FEWEST_ROUNDS as u64);
    // One more round than was counted: the one that warms up.
    assert_eq!(done.into_inner(), each * (FEWEST_ROUNDS as u64 + 1));
    assert_eq!(result.states, (0..cores.len() as u64).collect::<Vec<_>>());
}

#[test]
fn each_thread_runs_on_its_own_core() {
    let cores = cores_for_test();
    let result = run_together(&cores, Duration::ZERO, |_| usable_cores(), |_| 1).unwrap();
    let pinned: Vec<usize> = result.states.into_iter().flatten().collect();
    assert_eq!(pinned, cores);
}

#[test]
fn one_failing_thread_ends_the_others() {
    let cores = cores_for_test();
    let failing = cores.len() - 1;
    let result = run_together(
        &cores,
        Duration::from_secs(60),
        |place| {
            if place == failing {
                Err(Error::Argument("no".into()))
            } else {
                Ok(())
            }
        },
        |()| 1,
    );
    assert!(matches!(result, Err(Error::Argument(text)) if text == "no"));
}

#[test]
fn bad_cores_are_named() {
    let attempt = |cores: &[usize]| {
        run_together(cores, Duration::ZERO, |_| Ok(()), |()| 1)
            .unwrap_err()
            .to_string()
    };
    assert!(attempt(&[]).contains("no core"));
    assert!(attempt(&[0, 0]).contains("core 0 was given twice"));
    assert!(attempt(&[CpuSet::MAX_CPU]).contains(&CpuSet::MAX_CPU.to_string()));
    assert!(attempt(&[CpuSet::MAX_CPU - 1]).contains("cannot be used"));
}

#[test]
fn median_of_odd_even_and_none() {
    assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    assert!(median(&[]).is_nan());
}
