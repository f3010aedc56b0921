use std::path::Path;
use std::time::{Duration, Instant};

/// How often it is said how far something is.
const INTERVAL: Duration = Duration::from_secs(1);

/// Says how far something is that takes long.
pub(super) struct Progress<'p> {
    what: &'static str,
    path: &'p Path,
    bytes: u64,
    done: u64,
    next: Instant,
}

impl<'p> Progress<'p> {
    /// Of `what`, which concerns the file at `path` and about `bytes` bytes of items.
    pub fn new(what: &'static str, path: &'p Path, bytes: u64) -> Self {
        Self {
            what,
            path,
            bytes,
            done: 0,
            next: Instant::now() + INTERVAL,
        }
    }

    /// So many bytes were done in all.
    pub fn set(&mut self, done: u64) {
        if done != self.done {
            self.done = done;
            self.say();
        }
    }

    /// So many more bytes are done.
    pub fn add(&mut self, more: u64) {
        self.set(self.done + more);
    }

    fn say(&mut self) {
        let now = Instant::now();
        if now >= self.next {
            self.next = now + INTERVAL;
            eprintln!(
                "rackscope-cached: {} {}: {} of {} MiB",
                self.what,
                self.path.display(),
                self.done >> 20,
                self.bytes >> 20
            );
        }
    }
}
