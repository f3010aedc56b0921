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

/// Keep the calling thread on `core` from now on. Fails when the host has no such core or this process may not use it
/// (a container's cpuset).
pub fn pin_current_thread(core: usize) -> Result<(), Error> {
    let failed = |what: &str| {
        let allowed = allowed_cores();
        Error::Pin(
            core,
            format!("{what}; this process may use cores {allowed:?}"),
        )
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
mod tests;
