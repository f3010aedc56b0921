//! Keeping a core from going to sleep, without taking anything of it that others want.

use rustix::process::{Pid, getppid};

/// Between two looks at the parent: tens of microseconds.
const PAUSES: u32 = 1000;

/// Spins on the calling thread's core until the process `parent` is this one's parent no more.
///
/// Pauses leave a core's other hardware thread nearly all of the core. In user mode they do not leave a guest, either
/// (Intel's manual, volume 3C, 25.1.3: pause-loop exiting looks at the highest privilege only).
pub fn stay_awake(parent: i32) {
    while getppid().is_some_and(|now| Pid::as_raw(Some(now)) == parent) {
        for _ in 0..PAUSES {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests;
