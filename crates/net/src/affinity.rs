//! Which cores a thread may run on (`sched_setaffinity(2)`), and before whom (`setpriority(2)`).
use crate::Error;
use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};

/// The cores that the calling thread may run on, ascending; empty where the kernel would not say.
#[must_use]
pub fn allowed_cores() -> Vec<usize> {
    sched_getaffinity(None).map_or_else(
        |_| Vec::new(),
        |set| {
            (0..CpuSet::MAX_CPU)
                .filter(|&core| set.is_set(core))
                .collect()
        },
    )
}

/// Keep the calling thread on `core` from now on.
///
/// # Errors
/// [`Error::Pin`] when the host has no such core or this process may not use it (a container's cpuset).
pub fn pin_current_thread(core: usize) -> Result<(), Error> {
    let failed = |what: &str| Error::Pin {
        core,
        reason: format!("{what}; this process may use cores {:?}", allowed_cores()),
    };
    if core >= CpuSet::MAX_CPU {
        return Err(failed("the number is out of range"));
    }
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(|error| failed(&error.to_string()))
}

/// Have the calling thread go before all others of ordinary policy on its core: nice −20. Says whether it does; that
/// takes `CAP_SYS_NICE` or `RLIMIT_NICE`.
#[must_use]
pub fn put_current_thread_first() -> bool {
    // Linux takes a thread's number where POSIX has a process's, and changes that thread alone.
    setpriority_process(Some(gettid()), -20).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_goes_first_alone_or_says_that_it_may_not() {
        let nice =
            || rustix::process::getpriority_process(Some(gettid())).expect("a thread that runs");
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
}
