//! Commands carried out on the storage, answers written to a buffer.

use crate::clock::Clock;
use crate::conversation::{Outlet, Status};
use crate::counters::{Count, Counters};
use crate::dump::{self, Listed};
use crate::meta;
use crate::prefixes::Use;
use crate::report::{Held, Report, Section, held};
use crate::storage::{Read, Storage};
use crate::store::{self, Change, Outcome};
use crate::watch::{Log, Stored, Watcher};
use mica::{Contents, Entry, Key, Marks};
use rustix::process::Signal;
use std::fmt::Display;
use wire::memcached::server::{Command, Direction, Request, StoreMode, Watched, reply};

/// What carrying out a command takes, beside the command.
pub struct Context<'c, S> {
    /// This worker's number.
    pub worker: usize,
    /// The items.
    pub storage: &'c mut S,
    /// This worker's counts.
    pub counters: &'c Counters,
    /// The server's clock.
    pub clock: Clock,
    /// The current second of `clock`.
    pub now: u32,
    /// What `stats` tells about the server as a whole.
    pub report: &'c Report,
    /// A command under way that every worker has its part in.
    pub tour: Option<Box<Tour>>,
    /// The descriptor of the client's connection; `None` where it has none.
    pub(crate) client: Option<i32>,
    /// What happens, for those who watch.
    pub(crate) log: &'c mut Log,
    /// Set where the client became a watcher.
    pub(crate) watcher: Option<Watcher>,
    /// Whether a client became a watcher, whom its worker has to deliver to.
    pub(crate) has_watcher: bool,
}

/// A command that goes from worker to worker.
#[derive(Default)]
pub struct Tour {
    /// Workers that did their part.
    visited: usize,
    /// What they hold.
    held: Held,
    /// What they told of a class.
    pub(crate) listed: Listed,
}

/// What becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It goes on.
    Continue,
    /// It ends once the answers are sent.
    Close,
    /// It goes on at another worker, with this command: nothing was answered.
    Elsewhere(usize),
    /// It is told what happens from now on, and no more asked.
    Watch,
}

/// Values from this length on are not copied before they are sent, where they need not be: then a system call of its own
/// costs less than the copy.
const SENT_IN_PLACE_BYTES: usize = 16 << 10;

pub(crate) const TOO_LARGE: &[u8] = b"SERVER_ERROR object too large for cache";
pub(crate) const OUT_OF_MEMORY: &[u8] = b"SERVER_ERROR out of memory storing object";
pub(crate) const NO_ROOM_FOR_NUMBER: &[u8] = b"SERVER_ERROR out of memory";
pub(crate) const NOT_A_NUMBER: &[u8] =
    b"CLIENT_ERROR cannot increment or decrement non-numeric value";

/// Carry out `request`, whose key is `key` if it has one, and append the answer to `out`.
#[inline]
pub fn execute<S: Storage>(
    request: &Request<'_>,
    key: Key<'_>,
    context: &mut Context<'_, S>,
    out: &mut Vec<u8>,
) -> After {
    if context.storage.parts() > 1
        && let Some(worker) = context.elsewhere(&request.command, key, out)
    {
        return After::Elsewhere(worker);
    }
    let start = out.len();
    let after = context.command(&request.command, key, out);
    if request.quiet {
        out.truncate(start);
    }
    after
}

impl<S: Storage> Context<'_, S> {
    /// The worker that must carry out `command`, or its part of it, if that is not this one. What this one's part of it
    /// answers is in `out` then.
    fn elsewhere(
        &mut self,
        command: &Command<'_>,
        key: Key<'_>,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        match *command {
            // Any worker may be able to.
            Command::Get { .. } => None,
            Command::Flush { delay } => self.flush_tour(delay),
            Command::Stats {
                section: b"cachedump",
                arguments,
            } => dump::tour_of_class(self, arguments, out),
            Command::Stats { section, .. } => self.stats_tour(section),
            Command::Dump { share, .. } => dump::elsewhere(self, share),
            _ => command.key().and_then(|_| self.storage.elsewhere(key)),
        }
    }

    /// Do this worker's part of a flush, and say which worker is next; `None` for the last.
    pub(crate) fn flush_tour(&mut self, delay: i32) -> Option<usize> {
        if !self.report.options().allows_flush {
            return None;
        }
        let next = self.next_worker()?;
        self.flush_part(delay);
        Some(next)
    }

    /// Add what this worker holds to what is told, and say which worker is next; `None` for the last.
    pub(crate) fn stats_tour(&mut self, section: &[u8]) -> Option<usize> {
        // Anybody knows the rest.
        if !(matches!(section, b"" | b"items" | b"slabs") || section.starts_with(b"reset")) {
            return None;
        }
        let next = self.next_worker()?;
        let own = held(self.storage, self.now);
        if let Some(tour) = &mut self.tour {
            tour.held += own;
        }
        Some(next)
    }

    /// The next worker of a command that all have their part in, if this one is not the last.
    pub(crate) fn next_worker(&mut self) -> Option<usize> {
        let parts = self.storage.parts();
        let tour = self.tour.get_or_insert_default();
        tour.visited += 1;
        (tour.visited < parts).then_some((self.worker + 1) % parts)
    }

    /// What all workers hold.
    fn held(&mut self) -> Held {
        let others = self.tour.take().map(|tour| tour.held);
        let mut all = held(self.storage, self.now);
        all += others.unwrap_or_default();
        all
    }

    /// Tell `each` the statistics of `section`.
    pub(crate) fn tell(
        &mut self,
        section: &[u8],
        each: &mut dyn FnMut(&str, &dyn Display),
    ) -> Section {
        let held = self.held();
        self.report.tell(section, &held, self.now, each)
    }

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
            Command::GetNothing => reply::line(out, b"END"),
            Command::TooLarge { remove, .. } => self.too_large(key, remove, out),
            Command::Delete { .. } => self.delete(key, out),
            Command::Arithmetic {
                direction, delta, ..
            } => self.arithmetic(key, direction, delta, out),
            Command::Touch { exptime, .. } => self.touch(key, exptime, out),
            Command::Flush { delay } => self.flush(delay, out),
            Command::Version => {
                reply::line(out, concat!("VERSION ", protocol_version!()).as_bytes())
            }
            Command::RefreshCertificates => self.refresh_certificates(out),
            // Said for the sake of clients that ask; nothing is logged per command at any level.
            Command::Verbosity { .. } => reply::line(out, b"OK"),
            Command::Stats { section, arguments } => self.stats(section, arguments, out),
            Command::MemoryLimit { mebibytes } => self.memory_limit(mebibytes, out),
            Command::Dump { form, share } => dump::of_all(self, form, share, out),
            Command::Watch(wanted) => return self.watch(wanted, out),
            Command::Shutdown { .. } if !self.report.options().allows_shutdown => {
                reply::line(out, b"ERROR: shutdown not enabled");
            }
            Command::Shutdown { .. } => {
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
            Command::Answer(line) | Command::Reject(line) => reply::line(out, line.as_bytes()),
            Command::Hopeless("") => return After::Close,
            Command::Hopeless(error) => {
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
        let start = out.len();
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
            Read::Elsewhere(worker) => return After::Elsewhere(worker),
        };
        self.counters.add(count, 1);
        let value_bytes = || {
            let answer = &out[start..];
            let line = answer.iter().position(|&byte| byte == b'\n');
            answer.len() - line.map_or(0, |end| end + 1) - b"\r\n".len()
        };
        self.note_read(key, (read == Read::Hit).then_some(value_bytes));
        if last {
            reply::line(out, b"END");
        }
        After::Continue
    }

    /// As [`get`](Self::get) of a single key of this worker's, where nobody else writes to its partitions: a large value
    /// is sent from where it lies, and what is waited for then comes back.
    #[inline]
    pub(crate) fn get_to(
        &mut self,
        key: Key<'_>,
        out: &mut Vec<u8>,
        outlet: &mut impl Outlet,
    ) -> Option<Status> {
        let (now, counters) = (self.now, self.counters);
        let mut sent = None;
        let value_bytes = self.storage.with(key, |partition, key| {
            let item = partition.get(key, now)?;
            reply::value_line(out, key.bytes(), item.flags, item.value.len(), None);
            if item.value.len() < SENT_IN_PLACE_BYTES {
                out.extend_from_slice(item.value);
                reply::line(out, b"");
            } else {
                sent = Some(outlet.send_value(out, item.value, b"\r\nEND\r\n", counters));
            }
            Some(item.value.len())
        });
        let count = if value_bytes.is_some() {
            Count::GetHits
        } else {
            Count::GetMisses
        };
        counters.add(count, 1);
        self.note_read(key, value_bytes.map(|bytes| move || bytes));
        if sent.is_none() {
            reply::line(out, b"END");
        }
        sent
    }

    fn get_and_touch(
        &mut self,
        key: Key<'_>,
        exptime: i32,
        with_cas: bool,
        last: bool,
        out: &mut Vec<u8>,
    ) {
        let now = self.now;
        let expires_at = self.clock.deadline(exptime, now);
        let hit = self.storage.with(key, |partition, key| {
            let Entry::Occupied(mut entry) = partition.entry(key, now) else {
                return None;
            };
            entry.note_hit();
            entry.set_expires_at(expires_at);
            let item = entry.item();
            reply::value(
                out,
                key.bytes(),
                item.flags,
                item.value,
                with_cas.then_some(item.cas),
            );
            Some(item.value.len())
        });
        let count = if hit.is_some() {
            Count::TouchHits
        } else {
            Count::TouchMisses
        };
        self.counters.add(count, 1);
        self.note_read(key, hit.map(|bytes| move || bytes));
        if last {
            reply::line(out, b"END");
        }
    }

    /// Count a read by its key's prefix, if that is counted, and tell those who watch, with how long the value is that
    /// was there.
    #[inline]
    pub(crate) fn note_read(&mut self, key: Key<'_>, hit: Option<impl FnOnce() -> usize>) {
        let what = if hit.is_some() { Use::Hit } else { Use::Miss };
        self.report.prefixes().note(key.bytes(), what);
        let watch = self.report.watch();
        if watch.wants(Watched::FETCHERS) {
            let found = hit.map(|bytes| bytes());
            self.log
                .read(watch, key.bytes(), found, self.client.unwrap_or(-1));
        }
    }

    /// `watch`, as memcached answers it.
    fn watch(&mut self, wanted: Watched, out: &mut Vec<u8>) -> After {
        let answer: &[u8] = if !self.report.options().allows_watch {
            b"CLIENT_ERROR watch commands not allowed"
        } else if self.client.is_none() {
            // A datagram has one answer.
            b"ERROR"
        } else if !out.is_empty() {
            b"ERROR cannot pipeline other commands before watch"
        } else {
            self.watcher = self.report.watch().add(wanted, self.worker);
            if self.watcher.is_some() {
                reply::line(out, b"OK");
                return After::Watch;
            }
            b"WATCHER_TOO_MANY log watcher limit reached"
        };
        reply::line(out, answer);
        After::Continue
    }

    /// How long the value under `key` is, and until when.
    fn size_of(&mut self, key: Key<'_>) -> (usize, u32) {
        let now = self.now;
        self.storage
            .with(key, |partition, key| match partition.entry(key, now) {
                Entry::Occupied(entry) => (entry.item().value.len(), entry.item().expires_at),
                Entry::Vacant(_) => (0, 0),
            })
    }

    #[cold]
    fn tell_stored(
        &mut self,
        key: Key<'_>,
        mode: Option<StoreMode>,
        sent: (usize, u32),
        outcome: Outcome,
    ) {
        let is_joined = matches!(mode, Some(StoreMode::Append | StoreMode::Prepend))
            && matches!(outcome, Outcome::Stored(_));
        // As memcached does, which tells of the item that a value became a part of, and has none to tell of where it gave
        // no room.
        let (value_bytes, expires_at) = match outcome {
            Outcome::TooLarge | Outcome::OutOfMemory => (0, 0),
            _ if is_joined => self.size_of(key),
            _ => sent,
        };
        let stored = Stored {
            status: match outcome {
                Outcome::Stored(_) => "stored",
                Outcome::NotStored => "not_stored",
                Outcome::Exists => "exists",
                Outcome::NotFound => "not_found",
                Outcome::TooLarge => "too_large",
                Outcome::OutOfMemory => "no_memory",
            },
            command: match mode {
                None => "na",
                Some(StoreMode::Set) => "set",
                Some(StoreMode::Add) => "add",
                Some(StoreMode::Replace) => "replace",
                Some(StoreMode::Append) => "append",
                Some(StoreMode::Prepend) => "prepend",
                Some(StoreMode::Cas) => "cas",
            },
            time_to_live: expires_at.saturating_sub(self.now),
            value_bytes,
        };
        let client = self.client.unwrap_or(-1);
        self.log
            .stored(self.report.watch(), key.bytes(), &stored, client);
    }

    /// Store by a classic or a binary command.
    #[inline]
    pub(crate) fn store(
        &mut self,
        mode: StoreMode,
        key: Key<'_>,
        contents: Contents<'_>,
        cas: u64,
    ) -> Outcome {
        let now = self.now;
        let outcome = self.storage.with(key, |partition, key| match mode {
            // What was there does not matter.
            StoreMode::Set => store::set(partition, key, now, &contents),
            _ => store::store(partition.entry(key, now), mode, contents, cas, false),
        });
        let size = (contents.value.len(), contents.expires_at);
        self.count_store(key, mode, size, outcome);
        outcome
    }

    /// Count a value that was sent to be stored, of so many bytes until such a second.
    #[inline]
    pub(crate) fn count_store(
        &mut self,
        key: Key<'_>,
        mode: StoreMode,
        size: (usize, u32),
        outcome: Outcome,
    ) {
        self.report.prefixes().note(key.bytes(), Use::Set);
        if self.report.watch().wants(Watched::MUTATIONS) {
            self.tell_stored(key, Some(mode), size, outcome);
        }
        self.counters.add(Count::Sets, 1);
        match outcome {
            Outcome::TooLarge => self.counters.add(Count::TooLarge, 1),
            Outcome::OutOfMemory => self.counters.add(Count::OutOfMemory, 1),
            _ => {}
        }
        if mode == StoreMode::Cas {
            match outcome {
                Outcome::Stored(_) => self.counters.add(Count::CasHits, 1),
                Outcome::Exists => self.counters.add(Count::CasMismatches, 1),
                Outcome::NotFound => self.counters.add(Count::CasMisses, 1),
                Outcome::NotStored | Outcome::TooLarge | Outcome::OutOfMemory => {}
            }
        }
    }

    fn too_large(&mut self, key: Key<'_>, remove: bool, out: &mut Vec<u8>) {
        self.refuse_large(key, remove);
        reply::line(out, TOO_LARGE);
    }

    /// A value was too large to be kept.
    pub(crate) fn refuse_large(&mut self, key: Key<'_>, remove: bool) {
        let now = self.now;
        if remove {
            self.storage
                .with(key, |partition, key| store::forget(partition, key, now));
        }
        self.report.prefixes().note(key.bytes(), Use::Set);
        if self.report.watch().wants(Watched::MUTATIONS) {
            self.tell_stored(key, None, (0, 0), Outcome::TooLarge);
        }
        self.counters.add(Count::TooLarge, 1);
    }

    fn delete(&mut self, key: Key<'_>, out: &mut Vec<u8>) {
        let now = self.now;
        self.report.prefixes().note(key.bytes(), Use::Delete);
        let found = self
            .storage
            .with(key, |partition, key| match partition.entry(key, now) {
                Entry::Occupied(entry) => {
                    entry.remove();
                    true
                }
                Entry::Vacant(_) => false,
            });
        self.count_delete(found);
        reply::line(out, if found { b"DELETED" } else { b"NOT_FOUND" });
    }

    pub(crate) fn count_delete(&mut self, found: bool) {
        let count = if found {
            Count::DeleteHits
        } else {
            Count::DeleteMisses
        };
        self.counters.add(count, 1);
    }

    fn arithmetic(&mut self, key: Key<'_>, direction: Direction, delta: u64, out: &mut Vec<u8>) {
        let now = self.now;
        let change = self
            .storage
            .with(key, |partition, key| match partition.entry(key, now) {
                Entry::Occupied(entry) => store::count(entry, direction, delta, 0),
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
            Change::OutOfMemory => reply::line(out, NO_ROOM_FOR_NUMBER),
        }
    }

    pub(crate) fn count_arithmetic(&mut self, direction: Direction, change: Change) {
        let (hits, misses) = match direction {
            Direction::Up => (Count::IncrementHits, Count::IncrementMisses),
            Direction::Down => (Count::DecrementHits, Count::DecrementMisses),
        };
        match change {
            Change::Done { .. } => self.counters.add(hits, 1),
            Change::NotFound => self.counters.add(misses, 1),
            Change::NotANumber | Change::Exists | Change::OutOfMemory => {}
        }
    }

    fn touch(&mut self, key: Key<'_>, exptime: i32, out: &mut Vec<u8>) {
        let now = self.now;
        let expires_at = self.clock.deadline(exptime, now);
        let found = self
            .storage
            .with(key, |partition, key| match partition.entry(key, now) {
                Entry::Occupied(mut entry) => {
                    entry.note_hit();
                    entry.set_expires_at(expires_at);
                    true
                }
                Entry::Vacant(_) => false,
            });
        let count = if found {
            Count::TouchHits
        } else {
            Count::TouchMisses
        };
        self.counters.add(count, 1);
        reply::line(out, if found { b"TOUCHED" } else { b"NOT_FOUND" });
    }

    fn refresh_certificates(&mut self, out: &mut Vec<u8>) {
        match self.report.tls().map(|tls| tls.refresh()) {
            None => reply::line(out, b"ERROR"),
            Some(Ok(())) => reply::line(out, b"OK"),
            Some(Err(error)) => reply::line(out, format!("SERVER_ERROR {error}").as_bytes()),
        }
    }

    fn flush(&mut self, delay: i32, out: &mut Vec<u8>) {
        if !self.report.options().allows_flush {
            return reply::line(out, b"CLIENT_ERROR flush_all not allowed");
        }
        self.flush_items(delay);
        reply::line(out, b"OK");
    }

    pub(crate) fn flush_items(&mut self, delay: i32) {
        self.tour = None;
        self.counters.add(Count::Flushes, 1);
        self.flush_part(delay);
    }

    fn flush_part(&mut self, delay: i32) {
        let now = self.now;
        // memcached flushes a second before the time given, so that what is stored at that time stays.
        let due = match delay {
            ..=0 => now,
            _ => self.clock.deadline(delay, now) - 1,
        };
        self.storage.each(|partition| {
            if due <= now {
                partition.flush();
            } else {
                partition.flush_at(due, now);
            }
        });
    }
}
