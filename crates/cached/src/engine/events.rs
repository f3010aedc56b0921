//! What happens, a line each, for connections that `watch`.
//!
//! A worker writes lines only while there is a subscription for them; else it looks at a flag. It collects them without a
//! lock and, at the end of its turn, copies them to the mailbox of each subscription. What does not fit there, because
//! the client does not read, is counted and left out: no worker waits for a watching client.

use super::clients::Client;
use super::clock::Clock;
use super::storage::Storage;
use mica::{Evicted, Marks};
use net::Endpoint;
use rustix::time::{ClockId, clock_gettime};
use std::io::Write;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use wire::memcached::server::Watched;
use wire::memcached::server::reply::percent_encoded;

/// At a time, as in memcached.
const WATCHERS_MAX: usize = 20;

/// What a watcher that does not read is kept, in bytes, as in memcached.
const MAILBOX_BYTES_MAX: usize = 256 << 10;

/// A worker hands its lines over before it has many more than so many bytes of them.
const LOG_BYTES_MAX: usize = 64 << 10;

/// Before a line: what it is about, and its length.
const MARK_BYTES: usize = 3;

/// What is subscribed to, and how much was delivered.
#[derive(Default)]
pub(crate) struct Events {
    /// What any subscription is for, as bits of [`Watched`].
    wanted: AtomicU8,
    /// Lines so far, which gives each its number.
    lines: AtomicU64,
    sent: AtomicU64,
    skipped: AtomicU64,
    mailboxes: Mutex<Vec<Arc<Mailbox>>>,
    /// Wakes a worker, by number, because there are lines for its clients.
    wake: OnceLock<Box<dyn Fn(usize) + Send + Sync>>,
}

/// Lines for one client.
struct Mailbox {
    wanted: Watched,
    /// Who serves it.
    worker: usize,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    /// Lines that did not fit since the last that did.
    skipped: u64,
}

/// A client's end of its mailbox. Dropping it ends the subscription.
pub(crate) struct Subscription {
    events: Arc<Events>,
    mailbox: Arc<Mailbox>,
}

impl Events {
    /// Whether there is a subscription for any of `what`.
    #[inline]
    pub fn wants(&self, what: Watched) -> bool {
        self.wanted().has(what)
    }

    #[inline]
    fn wanted(&self) -> Watched {
        Watched::from_bits(self.wanted.load(Relaxed))
    }

    /// From now on `wake` is called with the number of a worker for whose clients there are lines.
    pub fn wake_by(&self, wake: impl Fn(usize) + Send + Sync + 'static) {
        // It is set once.
        _ = self.wake.set(Box::new(wake));
    }

    /// A subscription of a client of `worker`, unless there are too many.
    pub fn subscribe(self: &Arc<Self>, wanted: Watched, worker: usize) -> Option<Subscription> {
        let mut mailboxes = lock(&self.mailboxes);
        if mailboxes.len() == WATCHERS_MAX {
            return None;
        }
        let mailbox = Arc::new(Mailbox {
            wanted,
            worker,
            lines: Mutex::default(),
        });
        mailboxes.push(Arc::clone(&mailbox));
        self.want(&mailboxes);
        Some(Subscription {
            events: Arc::clone(self),
            mailbox,
        })
    }

    fn want(&self, mailboxes: &[Arc<Mailbox>]) {
        let wanted = mailboxes
            .iter()
            .fold(Watched::default(), |all, one| all.with(one.wanted));
        self.wanted.store(wanted.bits(), Relaxed);
    }

    /// Hand what `stats` writes of it to `each`.
    pub fn statistics(&self, mut each: impl FnMut(&str, u64)) {
        each("log_worker_dropped", 0);
        each("log_worker_written", self.lines.load(Relaxed));
        each("log_watcher_skipped", self.skipped.load(Relaxed));
        each("log_watcher_sent", self.sent.load(Relaxed));
        each("log_watchers", lock(&self.mailboxes).len() as u64);
    }

    /// Put marked lines into the mailboxes that are for them.
    fn post(&self, marked: &[u8]) {
        for mailbox in lock(&self.mailboxes).iter() {
            let mut held = lock(&mailbox.lines);
            let was_empty = held.text.is_empty();
            let (mut sent, mut skipped) = (0, 0);
            for (what, line) in lines(marked) {
                if !mailbox.wanted.has(what) {
                    continue;
                }
                if held.text.len() + line.len() > MAILBOX_BYTES_MAX {
                    held.skipped += 1;
                    skipped += 1;
                    continue;
                }
                let before = std::mem::take(&mut held.skipped);
                if before > 0 {
                    // Writing to a vector cannot fail.
                    _ = writeln!(held.text, "skipped={before}");
                }
                held.text.extend_from_slice(line);
                sent += 1;
            }
            self.sent.fetch_add(sent, Relaxed);
            self.skipped.fetch_add(skipped, Relaxed);
            // Else the worker was woken, and did not look yet.
            if was_empty
                && sent > 0
                && let Some(wake) = self.wake.get()
            {
                wake(mailbox.worker);
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

impl Subscription {
    /// Move what there is to `out`.
    pub fn take(&self, out: &mut Vec<u8>) {
        out.append(&mut lock(&self.mailbox.lines).text);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut mailboxes = lock(&self.events.mailboxes);
        mailboxes.retain(|one| !Arc::ptr_eq(one, &self.mailbox));
        self.events.want(&mailboxes);
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
pub(crate) struct EventLog {
    /// Each behind a mark.
    marked: Vec<u8>,
    /// Whether partitions record evicted items.
    has_record: bool,
}

impl EventLog {
    /// A turn begins.
    #[inline]
    pub fn begin(&mut self, events: &Events, storage: &mut impl Storage) {
        let wanted = events.wanted();
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
    pub fn finish(&mut self, events: &Events, storage: &mut impl Storage, clock: Clock) {
        if self.has_record {
            let now = clock.now();
            storage.each(|partition| {
                // The partition keeps thousands; what it missed is left out.
                partition.take_evicted(|evicted| self.evicted(events, &evicted, (clock, now)));
            });
        }
        if !self.marked.is_empty() {
            self.hand_over(events);
        }
    }

    #[cold]
    fn hand_over(&mut self, events: &Events) {
        events.post(&self.marked);
        self.marked.clear();
    }

    fn line(&mut self, events: &Events, what: Watched, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.marked.len();
        self.marked.extend_from_slice(&[what.bits(), 0, 0]);
        let time = clock_gettime(ClockId::Realtime);
        let number = events.lines.fetch_add(1, Relaxed) + 1;
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
            self.hand_over(events);
        }
    }

    /// `client` asked for `key`; the value that was there is so long.
    #[cold]
    pub fn read(&mut self, events: &Events, key: &[u8], found: Option<usize>, client: i32) {
        let (status, class) = found.map_or(("not_found", 0), |_| ("found", 1));
        let size = found.unwrap_or_default();
        self.line(events, Watched::FETCHERS, |out| {
            out.extend_from_slice(b"item_get key=");
            percent_encoded(out, key);
            _ = write!(
                out,
                " status={status} clsid={class} cfd={client} size={size}"
            );
        });
    }

    /// `client` sent a value for `key`.
    #[cold]
    pub fn stored(&mut self, events: &Events, key: &[u8], stored: &Stored<'_>, client: i32) {
        let Stored {
            status,
            command,
            time_to_live,
            value_bytes,
        } = stored;
        self.line(events, Watched::MUTATIONS, |out| {
            out.extend_from_slice(b"item_store key=");
            percent_encoded(out, key);
            _ = write!(
                out,
                " status={status} cmd={command} ttl={time_to_live} clsid=1 cfd={client} size={value_bytes}"
            );
        });
    }

    fn evicted(&mut self, events: &Events, evicted: &Evicted, (clock, now): (Clock, u32)) {
        let fetched = evicted.marks.has(Marks::FETCHED);
        let time_to_live = match evicted.expires_at {
            0 => -1,
            at => clock.unix_seconds(at) - clock.unix_seconds(now),
        };
        let idle = now.saturating_sub(evicted.accessed_at);
        self.line(events, Watched::EVICTIONS, |out| {
            out.extend_from_slice(b"eviction key=");
            percent_encoded(out, &evicted.key);
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
    pub fn opened(&mut self, events: &Events, client: impl FnOnce() -> Client) {
        if events.wants(Watched::CONNECTIONS) {
            self.connection(events, "conn_new", &client(), "");
        }
    }

    /// A client is gone.
    #[inline]
    pub fn closed(
        &mut self,
        events: &Events,
        reason: &str,
        client: impl FnOnce() -> Option<Client>,
    ) {
        if events.wants(Watched::CONNECTIONS)
            && let Some(client) = client()
        {
            self.connection(events, "conn_close", &client, reason);
        }
    }

    #[cold]
    fn connection(&mut self, events: &Events, what: &str, client: &Client, reason: &str) {
        self.line(events, Watched::CONNECTIONS, |out| {
            _ = match (&*client.local, client.peer) {
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
mod tests;
