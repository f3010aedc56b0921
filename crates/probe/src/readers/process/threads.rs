//! Context switches and run delay, which the kernel counts a thread: read in turns, so that a program of hundreds of
//! threads costs no more per tick than a small one.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::files::{self, Opener};

/// Run delay in nanoseconds, voluntary and involuntary context switches.
pub(super) type Waits = [u64; 3];

/// More threads than this are not followed.
const MOST_THREADS: usize = 4096;

/// The files of so many threads stay open, which halves what reading them costs; those of others are opened each time.
const MOST_KEPT_OPEN: usize = 64;

struct Thread {
    process: u32,
    id: u32,
    waits: Waits,
    schedstat: Option<OwnedFd>,
    status: Option<OwnedFd>,
    kept_open: bool,
    /// Whether the last scan met it.
    met: bool,
}

/// The threads of a tree.
pub(super) struct Threads {
    /// Sorted by process and thread.
    threads: Vec<Thread>,
    /// What threads that ended had waited when last read.
    ended: Waits,
    kept_open: usize,
    next: usize,
    /// Whether the kernel gives each at all: run delay needs CONFIG_SCHED_INFO.
    pub has_run_delay: bool,
    pub has_switches: bool,
    /// Threads beyond the limit, at the last scan.
    pub left_out: usize,
}

impl Threads {
    pub(super) fn new() -> Self {
        Self {
            threads: Vec::new(),
            ended: [0; 3],
            kept_open: 0,
            next: 0,
            has_run_delay: true,
            has_switches: true,
            left_out: 0,
        }
    }

    pub(super) fn begin_scan(&mut self) {
        for thread in &mut self.threads {
            thread.met = false;
        }
        self.left_out = 0;
    }

    /// A scan met a thread; a new one is read at once, so that the totals are whole from the start.
    pub(super) fn meet(&mut self, opener: &mut Opener, process: u32, id: u32) {
        let place = self
            .threads
            .binary_search_by_key(&(process, id), |thread| (thread.process, thread.id));
        let place = match place {
            Ok(known) => {
                self.threads[known].met = true;
                return;
            }
            Err(place) => place,
        };
        if self.threads.len() < MOST_THREADS {
            let keep = self.kept_open < MOST_KEPT_OPEN;
            self.kept_open += usize::from(keep);
            let thread = Thread {
                process,
                id,
                waits: [0; 3],
                schedstat: keep
                    .then(|| opener.open_thread(process, id, "schedstat").ok())
                    .flatten(),
                status: keep
                    .then(|| opener.open_thread(process, id, "status").ok())
                    .flatten(),
                kept_open: keep,
                met: true,
            };
            self.threads.insert(place, thread);
            self.refresh(opener, place);
        } else {
            self.left_out += 1;
        }
    }

    /// Those that the scan did not meet have ended.
    pub(super) fn end_scan(&mut self) {
        let Self {
            threads,
            ended,
            kept_open,
            ..
        } = self;
        threads.retain(|thread| {
            if !thread.met {
                *kept_open -= usize::from(thread.kept_open);
                for (sum, value) in ended.iter_mut().zip(thread.waits) {
                    *sum = sum.saturating_add(value);
                }
            }
            thread.met
        });
    }

    /// Reads the next `count` threads and returns the sum over all, as last read.
    pub(super) fn total(&mut self, opener: &mut Opener, count: usize) -> Waits {
        for _ in 0..count.min(self.threads.len()) {
            self.next = (self.next + 1) % self.threads.len();
            self.refresh(opener, self.next);
        }
        let mut sum = self.ended;
        for thread in &self.threads {
            for (sum, value) in sum.iter_mut().zip(thread.waits) {
                *sum = sum.saturating_add(value);
            }
        }
        sum
    }

    fn refresh(&mut self, opener: &mut Opener, position: usize) {
        let Thread {
            process,
            id,
            waits,
            schedstat,
            status,
            ..
        } = &mut self.threads[position];
        let (process, id) = (*process, *id);
        if self.has_run_delay {
            let text = opener.read_kept_or_thread(schedstat.as_ref(), process, id, "schedstat");
            match text.map(files::run_delay) {
                Ok(Ok(delay)) => waits[0] = delay.max(waits[0]),
                // The thread ended, or the kernel does not count this: it is one that lives that tells.
                Ok(Err(_)) | Err(Errno::NOENT) if thread_lives(opener, process, id) => {
                    self.has_run_delay = false
                }
                _ => {}
            }
        }
        if self.has_switches {
            let text = opener.read_kept_or_thread(status.as_ref(), process, id, "status");
            match text.map(files::switches) {
                Ok(Ok([voluntary, involuntary])) => {
                    waits[1] = voluntary.max(waits[1]);
                    waits[2] = involuntary.max(waits[2]);
                }
                Ok(Err(_)) | Err(Errno::NOENT) if thread_lives(opener, process, id) => {
                    self.has_switches = false
                }
                _ => {}
            }
        }
    }
}

fn thread_lives(opener: &mut Opener, process: u32, id: u32) -> bool {
    opener
        .read_thread(process, id, "stat")
        .is_ok_and(|text| files::stat(text).is_ok())
}

#[cfg(test)]
mod tests;
