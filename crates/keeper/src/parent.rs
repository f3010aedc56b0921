//! Knowing when the parent has ended.
//!
//! A pidfd (`pidfd_open(2)`, Linux 5.3) becomes readable when the process that it names ends, whichever process reaps it and
//! whatever its number is used for later. It is checked against `getppid(2)` after it was opened: a parent that had
//! ended before that is no longer the parent, so a reused number is never watched.
//!
//! Two other ways were weighed. The end of file of a pipe from the parent comes late when a fork of the parent still
//! holds the other end. `PR_SET_PDEATHSIG` fires when the *thread* that forked ends, which would end a system that was
//! started from a worker thread. So the second line, for a host whose filters refuse pidfds, is `getppid(2)` itself,
//! looked at ten times a second.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};

use crate::error::Error;

/// How often to look again when a pidfd tells.
const WITH_PIDFD: Duration = Duration::from_secs(10);
/// How often to look when only `getppid(2)` tells.
const WITHOUT_PIDFD: Duration = Duration::from_millis(100);

/// The process whose end ends everything.
pub(crate) struct Parent {
    pid: Pid,
    descriptor: Option<OwnedFd>,
}

impl Parent {
    /// Watches `pid`, which must be this process's parent and alive. An error otherwise.
    pub(crate) fn watch(pid: Pid) -> Result<Self, Error> {
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok();
        let parent = Self { pid, descriptor };
        if parent.is_gone() {
            Err(Error::parent_gone(pid))
        } else {
            Ok(parent)
        }
    }

    /// Whether it has ended: this process was given to another.
    pub(crate) fn is_gone(&self) -> bool {
        getppid() != Some(self.pid)
    }

    /// Readable once it has ended; `None` where this host gives none.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(AsFd::as_fd)
    }

    /// How long to wait at most before looking again.
    pub(crate) fn look_again(&self) -> Duration {
        if self.descriptor.is_some() {
            WITH_PIDFD
        } else {
            WITHOUT_PIDFD
        }
    }
}
