//! `watch`: connections that are told what happens, a line each.
//!
//! A worker writes lines only while somebody wants them; else it looks at a flag. It collects them without a lock, and
//! hands them over at the end of its turn, to a mailbox of each watcher. What has no room there, because the watcher does
//! not read, is counted and left out: nobody waits for a watcher. The worker that it is connected to sends them as it
//! sends answers.

use crate::clock::Clock;
use crate::dump::percent_encode;
use crate::roster::Client;
use crate::storage::Storage;
use crate::worker::{Inbox, Message};
use mica::{Evicted, Marks};
use net::Endpoint;
use rustix::time::{ClockId, clock_gettime};
use std::io::Write;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use wire::memcached::server::Watched;

/// At a time, as in memcached.
const WATCHERS_MAX: usize = 20;

/// What a watcher that does not read is kept, in bytes, as in memcached.
const MAILBOX_BYTES_MAX: usize = 256 << 10;

/// A worker hands its lines over before it has many more than so many bytes of them.
const LOG_BYTES_MAX: usize = 64 << 10;

/// Before a line: what it is about, and its length.
const MARK_BYTES: usize = 3;

/// All that is watched.
#[derive(Default)]
pub(crate) struct Watch {
    /// What anybody wants to be told, as bits of [`Watched`].
    wanted: AtomicU8,
    /// Lines so far, which gives each its number.
    lines: AtomicU64,
    sent: AtomicU64,
    skipped: AtomicU64,
    mailboxes: Mutex<Vec<Arc<Mailbox>>>,
    /// Everybody's, by number.
    inboxes: OnceLock<Arc<[Inbox]>>,
}

/// Lines for one watcher.
struct Mailbox {
    wanted: Watched,
    /// Who serves it.
    worker: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    lines: Vec<u8>,
    /// Lines that had no room since the last that had.
    skipped: u64,
}

/// A watcher's end of its mailbox. Dropping it ends the watch.
pub(crate) struct Watcher {
    watch: Arc<Watch>,
    mailbox: Arc<Mailbox>,
}

impl Watch {
    /// Whether anybody wants to be told any of `what`.
    #[inline]
    pub fn wants(&self, what: Watched) -> bool {
        self.wanted().has(what)
    }

    #[inline]
    fn wanted(&self) -> Watched {
        Watched::from_bits(self.wanted.load(Relaxed))
    }

    /// From now on workers are woken when there are lines to send.
    pub fn wake_by(&self, inboxes: &Arc<[Inbox]>) {
        // It is said once.
        _ = self.inboxes.set(Arc::clone(inboxes));
    }

    /// A watcher whom `worker` serves, unless there are too many.
    pub fn add(self: &Arc<Self>, wanted: Watched, worker: usize) -> Option<Watcher> {
        let mut mailboxes = lock(&self.mailboxes);
        if mailboxes.len() == WATCHERS_MAX {
            return None;
        }
        let mailbox = Arc::new(Mailbox {
            wanted,
            worker,
            held: Mutex::default(),
        });
        mailboxes.push(Arc::clone(&mailbox));
        self.want(&mailboxes);
        Some(Watcher {
            watch: Arc::clone(self),
            mailbox,
        })
    }

    fn want(&self, mailboxes: &[Arc<Mailbox>]) {
        let wanted = mailboxes
            .iter()
            .fold(Watched::default(), |all, one| all.with(one.wanted));
        self.wanted.store(wanted.bits(), Relaxed);
    }

    /// Tell `each` what memcached's `stats` tell of it.
    pub fn tell(&self, mut each: impl FnMut(&str, u64)) {
        each("log_worker_dropped", 0);
        each("log_worker_written", self.lines.load(Relaxed));
        each("log_watcher_skipped", self.skipped.load(Relaxed));
        each("log_watcher_sent", self.sent.load(Relaxed));
        each("log_watchers", lock(&self.mailboxes).len() as u64);
    }

    /// Put marked lines into the mailboxes of those who want them.
    fn post(&self, marked: &[u8]) {
        for mailbox in lock(&self.mailboxes).iter() {
            let mut held = lock(&mailbox.held);
            let was_empty = held.lines.is_empty();
            let (mut sent, mut skipped) = (0, 0);
            for (what, line) in lines(marked) {
                if !mailbox.wanted.has(what) {
                    continue;
                }
                if held.lines.len() + line.len() > MAILBOX_BYTES_MAX {
                    held.skipped += 1;
                    skipped += 1;
                    continue;
                }
                let before = std::mem::take(&mut held.skipped);
                if before > 0 {
                    // Writing to a vector cannot fail.
                    _ = writeln!(held.lines, "skipped={before}");
                }
                held.lines.extend_from_slice(line);
                sent += 1;
            }
            self.sent.fetch_add(sent, Relaxed);
            self.skipped.fetch_add(skipped, Relaxed);
            // Else it was told, and did not look yet.
            if was_empty
                && sent > 0
                && let Some(inboxes) = self.inboxes.get()
            {
                inboxes[mailbox.worker].send(Message::Deliver);
            }
        }
    }
}

/// What lines are about, and what they say.
fn lines(mut marked: &[u8]) -> impl Iterator<Item = (Watched, &[u8])> {
    std::iter::from_fn(move || {
        let (&[what, low, high], rest) = marked.split_first_chunk::<MARK_BYTES>()?;
        let (line, behind) = rest.split_at_checked(usize::from(u16::from_le_bytes([low, high])))?;
        marked = behind;
        Some((Watched::from_bits(what), line))
    })
}

impl Watcher {
    /// Move what there is to `out`.
    pub fn take(&self, out: &mut Vec<u8>) {
        out.append(&mut lock(&self.mailbox.held).lines);
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut mailboxes = lock(&self.watch.mailboxes);
        mailboxes.retain(|one| !Arc::ptr_eq(one, &self.mailbox));
        self.watch.want(&mailboxes);
    }
}

/// What became of a value, in memcached's words.
pub(crate) struct Stored<'s> {
    pub status: &'s str,
    pub command: &'s str,
    /// Seconds; 0 for no end.
    pub time_to_live: u32,
    pub value_bytes: usize,
}

/// A worker's lines of its current turn.
#[derive(Default)]
pub(crate) struct Log {
    /// Each behind a mark.
    marked: Vec<u8>,
    /// Whether partitions keep note of items that make room.
    has_record: bool,
}

impl Log {
    /// A turn begins.
    #[inline]
    pub fn begin(&mut self, watch: &Watch, storage: &mut impl Storage) {
        let wanted = watch.wanted();
        if self.marked.capacity() > 0 && wanted == Watched::default() {
            self.marked = Vec::new();
        }
        let wants = wanted.has(Watched::EVICTIONS);
        if wants != self.has_record {
            self.has_record = wants;
            storage.each(|partition| partition.record_evictions(wants));
        }
    }

    /// A turn ends.
    #[inline]
    pub fn finish(&mut self, watch: &Watch, storage: &mut impl Storage, clock: Clock) {
        if self.has_record {
            let now = clock.now();
            storage.each(|partition| {
                // The partition keeps thousands: what it missed is not worth a word.
                partition.take_evicted(|evicted| self.evicted(watch, &evicted, (clock, now)));
            });
        }
        if !self.marked.is_empty() {
            self.hand_over(watch);
        }
    }

    #[cold]
    fn hand_over(&mut self, watch: &Watch) {
        watch.post(&self.marked);
        self.marked.clear();
    }

    fn line(&mut self, watch: &Watch, what: Watched, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.marked.len();
        self.marked.extend_from_slice(&[what.bits(), 0, 0]);
        let time = clock_gettime(ClockId::Realtime);
        let number = watch.lines.fetch_add(1, Relaxed) + 1;
        let (seconds, microseconds) = (time.tv_sec, time.tv_nsec / 1000);
        _ = write!(
            self.marked,
            "ts={seconds}.{microseconds} gid={number} type="
        );
        write(&mut self.marked);
        self.marked.push(b'\n');
        let length = (self.marked.len() - start - MARK_BYTES) as u16;
        self.marked[start + 1..start + MARK_BYTES].copy_from_slice(&length.to_le_bytes());
        if self.marked.len() > LOG_BYTES_MAX {
            self.hand_over(watch);
        }
    }

    /// `client` asked for `key`; the value that was there is so long.
    #[cold]
    pub fn read(&mut self, watch: &Watch, key: &[u8], found: Option<usize>, client: i32) {
        let (status, class) = found.map_or(("not_found", 0), |_| ("found", 1));
        let size = found.unwrap_or_default();
        self.line(watch, Watched::FETCHERS, |out| {
            out.extend_from_slice(b"item_get key=");
            percent_encode(key, out);
            _ = write!(
                out,
                " status={status} clsid={class} cfd={client} size={size}"
            );
        });
    }

    /// `client` sent a value for `key`.
    #[cold]
    pub fn stored(&mut self, watch: &Watch, key: &[u8], stored: &Stored<'_>, client: i32) {
        let Stored {
            status,
            command,
            time_to_live,
            value_bytes,
        } = stored;
        self.line(watch, Watched::MUTATIONS, |out| {
            out.extend_from_slice(b"item_store key=");
            percent_encode(key, out);
            _ = write!(
                out,
                " status={status} cmd={command} ttl={time_to_live} clsid=1 cfd={client} size={value_bytes}"
            );
        });
    }

    fn evicted(&mut self, watch: &Watch, evicted: &Evicted, (clock, now): (Clock, u32)) {
        let fetched = evicted.marks.has(Marks::FETCHED);
        let time_to_live = match evicted.expires_at {
            0 => -1,
            at => clock.unix_seconds(at) - clock.unix_seconds(now),
        };
        let idle = now.saturating_sub(evicted.accessed_at);
        self.line(watch, Watched::EVICTIONS, |out| {
            out.extend_from_slice(b"eviction key=");
            percent_encode(&evicted.key, out);
            _ = write!(
                out,
                " fetch={} ttl={time_to_live} la={idle} clsid=1 size={}",
                if fetched { "yes" } else { "no" },
                evicted.value_bytes
            );
        });
    }

    /// A client came.
    #[inline]
    pub fn opened(&mut self, watch: &Watch, client: impl FnOnce() -> Client) {
        if watch.wants(Watched::CONNECTIONS) {
            self.connection(watch, "conn_new", &client(), "");
        }
    }

    /// A client is gone.
    #[inline]
    pub fn closed(&mut self, watch: &Watch, reason: &str, client: impl FnOnce() -> Option<Client>) {
        if watch.wants(Watched::CONNECTIONS)
            && let Some(client) = client()
        {
            self.connection(watch, "conn_close", &client, reason);
        }
    }

    #[cold]
    fn connection(&mut self, watch: &Watch, what: &str, client: &Client, reason: &str) {
        self.line(watch, Watched::CONNECTIONS, |out| {
            _ = match (&*client.door, client.peer) {
                (Endpoint::Tcp(_), Some(peer)) => {
                    // As its family writes it.
                    let address: IpAddr = peer.ip();
                    write!(
                        out,
                        "{what} rip={address} rport={} transport=tcp",
                        peer.port()
                    )
                }
                _ => write!(out, "{what} rip=unix rport=0 transport=local"),
            };
            if !reason.is_empty() {
                _ = write!(out, " reason={reason}");
            }
            _ = write!(out, " cfd={}", client.descriptor);
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(watcher: &Watcher) -> String {
        let mut out = Vec::new();
        watcher.take(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn each_watcher_gets_what_it_wants_and_nobody_waits_for_it() {
        let watch = Arc::new(Watch::default());
        assert!(!watch.wants(Watched::FETCHERS));
        let reads = watch.add(Watched::FETCHERS, 0).expect("room");
        let stores = watch.add(Watched::MUTATIONS, 0).expect("room");
        assert!(watch.wants(Watched::FETCHERS) && !watch.wants(Watched::EVICTIONS));
        let mut log = Log::default();
        log.read(&watch, b"a b", Some(3), 7);
        log.read(&watch, b"c", None, 7);
        log.hand_over(&watch);
        let told = taken(&reads);
        let (first, second) = told.split_once('\n').expect("two lines");
        assert!(
            first.starts_with("ts=") && first.contains(" gid=1 "),
            "{told}"
        );
        assert!(first.ends_with("type=item_get key=a%20b status=found clsid=1 cfd=7 size=3"));
        assert!(second.ends_with("type=item_get key=c status=not_found clsid=0 cfd=7 size=0\n"));
        assert_eq!(taken(&stores), "");
        // One that does not read is kept so much, and then told how much it missed.
        for _ in 0..10_000 {
            log.read(&watch, b"c", None, 7);
        }
        log.hand_over(&watch);
        let told = taken(&reads);
        assert!((MAILBOX_BYTES_MAX - 200..=MAILBOX_BYTES_MAX).contains(&told.len()));
        let missed = 10_000 - told.lines().count();
        log.read(&watch, b"d", None, 7);
        log.hand_over(&watch);
        let told = taken(&reads);
        assert!(
            told.starts_with(&format!("skipped={missed}\nts=")),
            "{told}"
        );
        assert_eq!(told.lines().count(), 2);
        drop(reads);
        assert!(!watch.wants(Watched::FETCHERS) && watch.wants(Watched::MUTATIONS));
        drop(stores);
        assert!(!watch.wants(Watched::MUTATIONS));
    }

    #[test]
    fn there_are_so_many_watchers_and_no_more() {
        let watch = Arc::new(Watch::default());
        let all: Vec<_> = (0..WATCHERS_MAX)
            .map(|_| watch.add(Watched::FETCHERS, 0).expect("room"))
            .collect();
        assert!(watch.add(Watched::FETCHERS, 0).is_none());
        drop(all);
        assert!(watch.add(Watched::FETCHERS, 0).is_some());
    }
}
