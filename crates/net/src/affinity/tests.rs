use super::*;

#[test]
fn a_thread_goes_first_alone_or_says_that_it_may_not() {
    let nice = || rustix::process::getpriority_process(Some(gettid())).expect("a thread that runs");
    let before = nice();
    std::thread::spawn(move || {
        let expected = if put_current_thread_first() {
            -20
        } else {
            before
        };
        assert_eq!(nice(), expected);
    })
    .join()
    .expect("no panic");
    assert_eq!(nice(), before);
}

#[test]
fn a_pinned_thread_may_run_on_its_core_only() {
    let cores = allowed_cores();
    let core = *cores.last().expect("at least one core");
    std::thread::spawn(move || {
        pin_current_thread(core).expect("an allowed core");
        assert_eq!(allowed_cores(), [core]);
    })
    .join()
    .expect("no panic");
}

#[test]
fn an_unknown_core_is_named_with_those_there_are() {
    for core in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU, usize::MAX] {
        let message = pin_current_thread(core)
            .expect_err("no such core")
            .to_string();
        assert!(
            message.contains(&core.to_string()) && message.contains("may use cores ["),
            "{message}"
        );
    }
}
