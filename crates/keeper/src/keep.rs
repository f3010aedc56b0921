//! Waiting for an end, and bringing it about.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, setsid, wait,
};

use crate::error::{Error, KEEPER_FAILED};
use crate::parent::Parent;
use crate::signals::SignalQueue;
use crate::tree::{self, Asked};

/// How long after one pass of SIGTERM the next one follows, for what was forked meanwhile.
const BETWEEN_REQUESTS: Duration = Duration::from_millis(50);
/// How long after one pass of SIGKILL the next one follows, for what was forked meanwhile.
const BETWEEN_KILLS: Duration = Duration::from_millis(20);
/// How much longer than the inner keeper the outer one waits before it kills the inner one.
const OUTER_MARGIN: Duration = Duration::from_secs(2);

/// What a keeper asks to end politely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Its child, which is a keeper itself and sees to the tree; the tree only when that child is gone.
    Keeper,
    /// Every descendant.
    Tree,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Running,
    /// SIGTERM was sent; SIGKILL follows at this moment of the monotonic clock.
    Ending(Instant),
    Killing,
}

/// Takes the place of init for all descendants, in a session of its own.
pub(crate) fn settle() -> Result<(), Error> {
    // Refused when this process leads a process group already, which serves as well.
    match setsid() {
        Ok(_) | Err(Errno::PERM) => {}
        Err(source) => return Err(Error::cannot("start a session")(source)),
    }
    set_child_subreaper(Some(getpid())).map_err(Error::cannot("become a subreaper"))
}

/// Keeps one child, with all that descends from it.
pub(crate) struct Keeper {
    parent: Parent,
    signals: SignalQueue,
    child: Pid,
    child_status: Option<WaitStatus>,
    reach: Reach,
    grace: Duration,
    asked: Asked,
    asked_child: bool,
}

impl Keeper {
    /// A keeper of `child`, which it has just started.
    pub(crate) fn new(
        parent: Parent,
        signals: SignalQueue,
        child: Pid,
        reach: Reach,
        grace: Duration,
    ) -> Self {
        let grace = match reach {
            Reach::Tree => grace,
            Reach::Keeper => grace + OUTER_MARGIN,
        };
        Self {
            parent,
            signals,
            child,
            child_status: None,
            reach,
            grace,
            asked: Asked::default(),
            asked_child: false,
        }
    }

    /// Waits until the child ends, the parent ends or a signal asks for the end; ends all descendants; returns the
    /// child's exit status (128 + signal when a signal ended it) once none is left.
    pub(crate) fn keep(mut self) -> Result<u8, Error> {
        let mut stage = Stage::Running;
        loop {
            self.sleep(stage)?;
            let asked = self.signals.asked_to_end();
            if self.reap()? {
                return Ok(self.child_status.map_or(KEEPER_FAILED, exit_status));
            }
            let now = Instant::now();
            stage = match stage {
                Stage::Running if asked || self.child_status.is_some() || self.parent.is_gone() => {
                    Stage::Ending(now + self.grace)
                }
                Stage::Ending(deadline) if now >= deadline => Stage::Killing,
                stage => stage,
            };
            match stage {
                Stage::Running => {}
                Stage::Ending(_) => self.ask_to_end(),
                Stage::Killing => tree::kill_descendants(self.unreaped_child()),
            }
        }
    }

    /// Sleeps until something happens that could matter in this stage.
    fn sleep(&self, stage: Stage) -> Result<(), Error> {
        let longest = match stage {
            Stage::Running => self.parent.look_again(),
            Stage::Ending(deadline) => deadline
                .saturating_duration_since(Instant::now())
                .min(BETWEEN_REQUESTS),
            Stage::Killing => BETWEEN_KILLS,
        };
        let signals = self.signals.descriptor();
        let mut sources = vec![PollFd::new(&signals, PollFlags::IN)];
        let parent = self.parent.descriptor();
        if let (Stage::Running, Some(parent)) = (stage, &parent) {
            sources.push(PollFd::new(parent, PollFlags::IN));
        }
        let timeout = Timespec::try_from(longest).unwrap_or(Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        });
        match poll(&mut sources, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(source) => Err(Error::cannot("wait for events")(source)),
        }
    }

    fn ask_to_end(&mut self) {
        if self.reach == Reach::Tree || self.child_status.is_some() {
            self.asked.ask_descendants(self.unreaped_child());
        } else if !self.asked_child {
            self.asked_child = true;
            // Our own child, not yet reaped: the number is still its own, and signalling it cannot fail.
            let _ = kill_process(self.child, Signal::TERM);
        }
    }

    fn unreaped_child(&self) -> Option<Pid> {
        self.child_status.is_none().then_some(self.child)
    }

    /// Reaps whatever has ended; whether nothing is left. As a subreaper, no child means no descendant.
    fn reap(&mut self) -> Result<bool, Error> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.child => self.child_status = Some(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Ok(false),
                Err(Errno::CHILD) => return Ok(true),
                Err(source) => return Err(Error::cannot("wait for children")(source)),
            }
        }
    }
}

/// The status as a shell gives it.
fn exit_status(status: WaitStatus) -> u8 {
    let code = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => i32::from(KEEPER_FAILED),
    };
    // Both are at most 255 by wait(2); the mask says so to the compiler.
    (code & 0xff) as u8
}
