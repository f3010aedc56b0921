//! Who is connected, for `stats conns`. A worker keeps the seats of clients that came to it; any thread reads them
//! without asking it. A client that moves to another worker keeps its seat.

use net::Endpoint;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Seats of a table: as many as share a cache line.
const SEATS: usize = 16;

/// The clients that came to one worker.
#[derive(Default)]
pub(crate) struct Roster(Mutex<Seats>);

#[derive(Default)]
struct Seats {
    tables: Vec<Arc<Table>>,
    /// By number: [`SEATS`] for each table.
    clients: Vec<Option<Client>>,
    free: Vec<u32>,
}

/// What changes as clients are served, apart from who they are: written by the worker that serves them, without a lock.
#[derive(Default)]
#[repr(align(64))]
struct Table {
    active_at: [AtomicU32; SEATS],
    /// A bit for each that does not take its replies.
    writing: AtomicU16,
    /// A bit for each that watches.
    watching: AtomicU16,
}

/// Who sits where.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// The descriptor's number, by which memcached names them.
    pub descriptor: i32,
    /// Its address; a client of a unix socket has none.
    pub peer: Option<SocketAddr>,
    /// The endpoint that it connected to.
    pub local: Arc<Endpoint>,
}

/// A client's place, for as long as it is connected.
pub(crate) struct Seat {
    roster: Arc<Roster>,
    table: Arc<Table>,
    number: u32,
}

impl Roster {
    /// Let a client in, at second `now`.
    pub fn seat(self: &Arc<Self>, client: Client, now: u32) -> Seat {
        let mut seats = self.lock();
        if seats.free.is_empty() {
            let first = seats.clients.len();
            seats.tables.push(Arc::default());
            seats.clients.resize(first + SEATS, None);
            seats
                .free
                .extend((first..first + SEATS).rev().map(|number| number as u32));
        }
        let number = seats.free.pop().unwrap_or_default();
        seats.clients[number as usize] = Some(client);
        let seat = Seat {
            roster: Arc::clone(self),
            table: Arc::clone(&seats.tables[number as usize / SEATS]),
            number,
        };
        seat.set_active(now);
        seat.set_writing(false);
        seat.set_watching(false);
        seat
    }

    /// Hand all clients at second `now` to `each`.
    pub fn statistics(&self, now: u32, each: &mut dyn FnMut(&str, &dyn Display)) {
        // No client comes or goes while they are counted, so that does not take longer than it must.
        let found: Vec<_> = {
            let seats = self.lock();
            let state = |number: usize| {
                let table = &seats.tables[number / SEATS];
                let active_at = table.active_at[number % SEATS].load(Relaxed);
                let has = |bits: &AtomicU16| bits.load(Relaxed) & 1 << (number % SEATS) != 0;
                let state = match (has(&table.watching), has(&table.writing)) {
                    (true, _) => "conn_watch",
                    (_, true) => "conn_mwrite",
                    _ => "conn_read",
                };
                (active_at, state)
            };
            let clients = seats.clients.iter().enumerate();
            clients
                .filter_map(|(number, client)| Some((client.clone()?, state(number))))
                .collect()
        };
        for (client, (active_at, state)) in found {
            let descriptor = client.descriptor;
            let mut write = |name: &str, value: &dyn Display| {
                each(&format!("{descriptor}:{name}"), value);
            };
            match client.peer {
                Some(peer) => write("addr", &address(peer)),
                None => write("addr", &client.local),
            }
            match &*client.local {
                Endpoint::Tcp(local) => write("listen_addr", &address(*local)),
                unix @ Endpoint::Unix(_) => write("listen_addr", unix),
            }
            write("state", &state);
            write("secs_since_last_cmd", &now.saturating_sub(active_at));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As memcached writes them.
fn address(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(_) => format!("tcp:{address}"),
        SocketAddr::V6(_) => format!("tcp6:{address}"),
    }
}

impl Seat {
    /// The client was active at second `now`.
    #[inline]
    pub fn set_active(&self, now: u32) {
        let active_at = &self.table.active_at[self.number as usize % SEATS];
        // Most often it was in the same second. A client that moved has its seat among those of another worker's, whose
        // cache line is left alone then.
        if active_at.load(Relaxed) != now {
            active_at.store(now, Relaxed);
        }
    }

    /// The second in which it was active last.
    pub fn active_at(&self) -> u32 {
        self.table.active_at[self.number as usize % SEATS].load(Relaxed)
    }

    /// Whether it has replies to take.
    pub fn set_writing(&self, is_writing: bool) {
        self.set(&self.table.writing, is_writing);
    }

    /// Whether it watches.
    pub fn set_watching(&self, is_watching: bool) {
        self.set(&self.table.watching, is_watching);
    }

    fn set(&self, bits: &AtomicU16, is: bool) {
        let bit = 1 << (self.number as usize % SEATS);
        if is {
            bits.fetch_or(bit, Relaxed);
        } else {
            bits.fetch_and(!bit, Relaxed);
        }
    }

    /// Who sits there.
    pub fn client(&self) -> Option<Client> {
        self.roster.lock().clients[self.number as usize].clone()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.roster.lock();
        seats.clients[self.number as usize] = None;
        seats.free.push(self.number);
    }
}

#[cfg(test)]
mod tests;
