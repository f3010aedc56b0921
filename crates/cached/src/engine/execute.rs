//! The text commands: carried out on the storage, replies written to a buffer.

use super::conditions::{self, Change, NO_MEMORY, NOT_A_NUMBER, OUT_OF_MEMORY, Outcome, TOO_LARGE};
use super::context::{After, Context};
use super::counters::Count;
use super::meta;
use super::statistics::Section;
use super::storage::{Read, Storage};
use mica::{Contents, Entry, Key, Marks};
use rustix::process::Signal;
use std::fmt::Display;
use wire::memcached::server::{Command, Direction, Request, reply};

/// Values from this length on are not copied before they are sent, where they need not be: then a system call of its own
/// costs less than the copy.
const SENT_IN_PLACE_BYTES: usize = 16 << 10;

/// Carry out `request`, whose key is `key` if it has one, and append the reply to `out`. The key is this worker's, or the
/// command a read that any worker may be able to carry out.
#[inline]
pub(crate) fn execute<S: Storage>(
    request: &Request<'_>,
    key: Key<'_>,
    context: &mut Context<'_, S>,
    out: &mut Vec<u8>,
) -> After {
    if context.storage.parts() > 1
        && let Some(worker) = next_worker(context, &request.command)
    {
        return After::OtherWorker(worker);
    }
    let start = out.len();
    let after = context.command(&request.command, key, out);
    if request.quiet {
        out.truncate(start);
    }
    after
}

/// The worker that is next to do its part of `command`, if all have theirs and this one is not the last.
fn next_worker<S: Storage>(context: &mut Context<'_, S>, command: &Command<'_>) -> Option<usize> {
    match *command {
        Command::Flush { delay } => context.flush_here(delay),
        Command::Stats { section } => context.gather_statistics(section),
        _ => None,
    }
}

impl<S: Storage> Context<'_, S> {
    #[inline]
    fn command(&mut self, command: &Command<'_>, key: Key<'_>, out: &mut Vec<u8>) -> After {
        match *command {
            Command::Get { with_cas, last, .. } => return self.get(key, with_cas, last, out),
            Command::Store {
                mode,
                flags,
                exptime,
                cas,
                value,
                ..
            } => {
                let contents = Contents {
                    value,
                    flags,
                    expires_at: self.clock.deadline(exptime, self.now),
                    marks: Marks::default(),
                    cas: 0,
                };
                let answer: &[u8] = match self.store(mode, key, contents, cas) {
                    Outcome::Stored(_) => b"STORED",
                    Outcome::NotStored => b"NOT_STORED",
                    Outcome::Exists => b"EXISTS",
                    Outcome::NotFound => b"NOT_FOUND",
                    Outcome::TooLarge => TOO_LARGE,
                    Outcome::OutOfMemory => OUT_OF_MEMORY,
                };
                reply::line(out, answer);
            }
            Command::GetAndTouch {
                exptime,
                with_cas,
                last,
                ..
            } => self.get_and_touch(key, exptime, with_cas, last, out),
            Command::TooLarge { remove, .. } => {
                self.refuse_large(key, remove);
                reply::line(out, TOO_LARGE);
            }
            Command::Delete { .. } => {
                let is_found = self.delete(key);
                reply::line(out, if is_found { b"DELETED" } else { b"NOT_FOUND" });
            }
            Command::Arithmetic {
                direction, delta, ..
            } => self.arithmetic(key, direction, delta, out),
            Command::Touch { exptime, .. } => {
                let is_found = self.touch(key, Some(exptime), |_| ()).is_some();
                self.count_touch(is_found);
                reply::line(out, if is_found { b"TOUCHED" } else { b"NOT_FOUND" });
            }
            Command::Flush { delay } => self.flush(delay, out),
            Command::Version => {
                reply::line(out, concat!("VERSION ", protocol_version!()).as_bytes())
            }
            Command::RefreshCertificates => self.refresh_certificates(out),
            Command::Stats { section } => self.stats(section, out),
            Command::Shutdown { .. } if !self.state.options.allows_shutdown => {
                reply::line(out, b"ERROR: shutdown not enabled");
            }
            Command::Shutdown { has_mode: false } => {
                reply::line(out, b"CLIENT_ERROR invalid shutdown mode");
            }
            Command::Shutdown { has_mode: true } => {
                // As a signal from outside ends it: it is looked for in one place.
                _ = rustix::process::kill_process(rustix::process::getpid(), Signal::TERM);
                return After::Close;
            }
            Command::Quit => return After::Close,
            Command::MetaNoop => reply::line(out, b"MN"),
            Command::MetaGet(ref meta) => meta::get(self, meta, key, out),
            Command::MetaSet(ref meta, value) => meta::set(self, meta, key, value, out),
            Command::MetaDelete(ref meta) => meta::delete(self, meta, key, out),
            Command::MetaArithmetic(ref meta) => meta::arithmetic(self, meta, key, out),
            Command::MetaDebug { .. } => meta::debug(self, key, out),
            Command::Answer(line) => reply::line(out, line.as_bytes()),
            Command::Disconnect("") => return After::Close,
            Command::Disconnect(error) => {
                reply::line(out, error.as_bytes());
                return After::Close;
            }
        }
        After::Continue
    }

    #[inline]
    pub(crate) fn get(
        &mut self,
        key: Key<'_>,
        with_cas: bool,
        last: bool,
        out: &mut Vec<u8>,
    ) -> After {
        let read = self.storage.read(key, self.now, out, |out, front| {
            let cas = with_cas.then_some(front.cas);
            reply::value_line(out, key.bytes(), front.flags, front.value_bytes, cas);
        });
        let count = match read {
            Read::Hit => {
                reply::line(out, b"");
                Count::GetHits
            }
            Read::Miss => Count::GetMisses,
            Read::OtherWorker(worker) => return After::OtherWorker(worker),
        };
        self.counters.add(count, 1);
        if last {
            reply::line(out, b"END");
        }
        After::Continue
    }

    /// As [`get`](Self::get) of a single key of this worker's, where no other worker writes to its partitions: a large
    /// value is not copied but handed to `send` from where it lies, with what precedes and what follows it.
    #[inline]
    pub(crate) fn get_in_place(
        &mut self,
        key: Key<'_>,
        out: &mut Vec<u8>,
        send: impl FnOnce(&mut Vec<u8>, &[u8], &[u8]),
    ) {
        const END: &[u8] = b"\r\nEND\r\n";
        let now = self.now;
        let is_hit = self.storage.with(key, |partition, key| {
            let Some(item) = partition.get(key, now) else {
                return false;
            };
            reply::value_line(out, key.bytes(), item.flags, item.value.len(), None);
            if item.value.len() < SENT_IN_PLACE_BYTES {
                out.extend_from_slice(item.value);
                out.extend_from_slice(END);
            } else {
                send(out, item.value, END);
            }
            true
        });
        let count = if is_hit {
            Count::GetHits
        } else {
            reply::line(out, b"END");
            Count::GetMisses
        };
        self.counters.add(count, 1);
    }

    fn get_and_touch(
        &mut self,
        key: Key<'_>,
        exptime: i32,
        with_cas: bool,
        last: bool,
        out: &mut Vec<u8>,
    ) {
        let hit = self.touch(key, Some(exptime), |item| {
            let cas = with_cas.then_some(item.cas);
            reply::value(out, key.bytes(), item.flags, item.value, cas);
        });
        self.count_touch(hit.is_some());
        if last {
            reply::line(out, b"END");
        }
    }

    fn arithmetic(&mut self, key: Key<'_>, direction: Direction, delta: u64, out: &mut Vec<u8>) {
        let now = self.now;
        let change = self
            .storage
            .with(key, |partition, key| match partition.entry(key, now) {
                Entry::Occupied(entry) => conditions::count(entry, direction, delta, 0),
                Entry::Vacant(_) => Change::NotFound,
            });
        self.count_arithmetic(direction, change);
        match change {
            Change::Done { value, .. } => {
                reply::decimal(out, value);
                reply::line(out, b"");
            }
            Change::NotFound => reply::line(out, b"NOT_FOUND"),
            Change::NotANumber => reply::line(out, NOT_A_NUMBER),
            Change::Exists => reply::line(out, b"EXISTS"),
            Change::OutOfMemory => reply::line(out, NO_MEMORY),
        }
    }

    fn stats(&mut self, section: &[u8], out: &mut Vec<u8>) {
        let mut each = |name: &str, value: &dyn Display| reply::statistic(out, name, value);
        let end: &[u8] = match self.statistics(section, &mut each) {
            Section::Written => b"END",
            Section::Reset => b"RESET",
            Section::Unknown => b"ERROR",
        };
        reply::line(out, end);
    }

    fn refresh_certificates(&mut self, out: &mut Vec<u8>) {
        let Some(certificates) = &self.state.certificates else {
            return reply::line(out, b"ERROR");
        };
        certificates.refresh();
        reply::line(out, b"OK");
    }

    fn flush(&mut self, delay: i32, out: &mut Vec<u8>) {
        if !self.state.options.allows_flush {
            return reply::line(out, b"CLIENT_ERROR flush_all not allowed");
        }
        self.flush_items(delay);
        reply::line(out, b"OK");
    }
}
