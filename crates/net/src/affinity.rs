//! Which cores a thread may run on (`sched_setaffinity(2)`).
use crate::Error;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

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

#[cfg(test)]
mod tests {
    use super::*;

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
