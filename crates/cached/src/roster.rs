//! Who is connected, for `stats conns`. A worker keeps the seats of clients that came to it; whoever asks looks without
//! asking it. A client that moves to another worker keeps its seat.

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

/// What changes as clients are served, apart from who they are: written by whoever serves them, without a lock.
#[derive(Default)]
#[repr(align(64))]
struct Table {
    active_at: [AtomicU32; SEATS],
    /// A bit for each that does not take its answers.
    writing: AtomicU16,
    /// A bit for each that watches.
    watching: AtomicU16,
}

/// Who sits where.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// The descriptor's number, by which memcached tells them apart.
    pub descriptor: i32,
    /// Where it is, which a client of a unix socket does not say.
    pub peer: Option<SocketAddr>,
    /// Where it came to.
    pub door: Arc<Endpoint>,
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
        seat.note(now);
        seat.set_writing(false);
        seat.set_watching(false);
        seat
    }

    /// Tell `each` of all clients at second `now`.
    pub fn tell(&self, now: u32, each: &mut dyn FnMut(&str, &dyn Display)) {
        // Nobody comes or goes while they are counted, so that does not take longer than it must.
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
            let mut tell = |name: &str, value: &dyn Display| {
                each(&format!("{descriptor}:{name}"), value);
            };
            match client.peer {
                Some(peer) => tell("addr", &address(peer)),
                None => tell("addr", &client.door),
            }
            match &*client.door {
                Endpoint::Tcp(door) => tell("listen_addr", &address(*door)),
                unix @ Endpoint::Unix(_) => tell("listen_addr", unix),
            }
            tell("state", &state);
            tell("secs_since_last_cmd", &now.saturating_sub(active_at));
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
    /// The client gave a sign of life at second `now`.
    #[inline]
    pub fn note(&self, now: u32) {
        let active_at = &self.table.active_at[self.number as usize % SEATS];
        // Most often it did in the same second. A client that moved has its seat among those of another worker's, whose
        // cache line is left alone then.
        if active_at.load(Relaxed) != now {
            active_at.store(now, Relaxed);
        }
    }

    /// The second of its last sign of life.
    pub fn active_at(&self) -> u32 {
        self.table.active_at[self.number as usize % SEATS].load(Relaxed)
    }

    /// Whether it is waited for to take its answers.
    pub fn set_writing(&self, is_writing: bool) {
        self.set(&self.table.writing, is_writing);
    }

    /// Whether it is told what happens.
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn told(roster: &Roster, now: u32) -> BTreeMap<String, String> {
        let mut told = BTreeMap::new();
        roster.tell(now, &mut |name, value| {
            let before = told.insert(name.to_owned(), value.to_string());
            assert_eq!(before, None, "{name} was told twice");
        });
        told
    }

    proptest! {
        /// Those who are there are told, as they are.
        #[test]
        fn a_roster_against_a_list(steps in prop::collection::vec((0..4_u8, any::<prop::sample::Index>()), 1..200)) {
            let roster = Arc::new(Roster::default());
            let door = Arc::new(Endpoint::Tcp(([127, 0, 0, 1], 11211).into()));
            let mut seated: Vec<(Seat, i32, u32, bool)> = Vec::new();
            for (now, (step, which)) in (10..).zip(steps) {
                let which = if seated.is_empty() { 0 } else { which.index(seated.len()) };
                match step {
                    0 if !seated.is_empty() => drop(seated.swap_remove(which)),
                    1 if !seated.is_empty() => {
                        seated[which].0.note(now);
                        seated[which].2 = now;
                    }
                    2 if !seated.is_empty() => {
                        seated[which].3 ^= true;
                        seated[which].0.set_writing(seated[which].3);
                    }
                    _ => {
                        let descriptor = now as i32;
                        let peer = Some(([10, 0, 0, 1], now as u16).into());
                        let client = Client { descriptor, peer, door: Arc::clone(&door) };
                        seated.push((roster.seat(client, now), descriptor, now, false));
                    }
                }
            }
            let now = 1000;
            let mut expected = BTreeMap::new();
            for (seat, descriptor, active_at, is_writing) in &seated {
                prop_assert_eq!(seat.active_at(), *active_at);
                for (name, value) in [
                    ("addr", format!("tcp:10.0.0.1:{descriptor}")),
                    ("listen_addr", "tcp:127.0.0.1:11211".to_owned()),
                    ("state", if *is_writing { "conn_mwrite" } else { "conn_read" }.to_owned()),
                    ("secs_since_last_cmd", (now - active_at).to_string()),
                ] {
                    expected.insert(format!("{descriptor}:{name}"), value);
                }
            }
            prop_assert_eq!(told(&roster, now), expected);
        }
    }

    #[test]
    fn other_families_are_told_as_memcached_tells_them() {
        let roster = Arc::new(Roster::default());
        let seat = |descriptor, peer: Option<&str>, door| {
            let peer = peer.map(|peer| peer.parse().expect("an address"));
            let door = Arc::new(door);
            roster.seat(
                Client {
                    descriptor,
                    peer,
                    door,
                },
                5,
            )
        };
        let _unix = seat(7, None, Endpoint::Unix("/run/cache".into()));
        let door = Endpoint::Tcp("[::]:11211".parse().expect("an address"));
        let _six = seat(8, Some("[::1]:99"), door);
        let told = told(&roster, 5);
        assert_eq!(told["7:addr"], "unix:/run/cache");
        assert_eq!(told["7:listen_addr"], "unix:/run/cache");
        assert_eq!(told["8:addr"], "tcp6:[::1]:99");
        assert_eq!(told["8:listen_addr"], "tcp6:[::]:11211");
    }
}
