use crate::engine::{Client, Context, Count, Seat, Storage};
use crate::session::{Session, Tools};
use net::{Endpoint, Stream};
use rustls::ServerConfig;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// A client that a worker is to take on.
pub(crate) struct Arrival {
    pub stream: Stream,
    /// Its address, unless it came over a unix socket.
    pub peer: Option<SocketAddr>,
    /// The endpoint that it connected to.
    pub local: Arc<Endpoint>,
    /// What to encrypt with, where that is done at this endpoint.
    pub tls: Option<Arc<ServerConfig>>,
}

impl Arrival {
    /// As `stats conns` and `watch` describe it.
    pub fn client(&self) -> Client {
        Client {
            descriptor: self.stream.as_fd().as_raw_fd(),
            peer: self.peer,
            local: Arc::clone(&self.local),
        }
    }
}

/// What a worker has of a client, whatever carries its bytes.
pub(crate) struct ClientState {
    /// Where `stats conns` finds it, with the second in which it was active last. Dropped first, while the descriptor is
    /// still its own.
    pub seat: Seat,
    pub session: Session,
}

impl ClientState {
    /// Count and log that it is gone.
    pub fn record_closed<S: Storage>(&self, reason: &str, tools: &mut Tools<'_, S>) {
        let Context {
            counters,
            log,
            state,
            ..
        } = &mut tools.context;
        counters.add(Count::Closed, 1);
        log.closed(&state.events, reason, || self.seat.client());
    }
}

/// A connection of either carrier.
pub(crate) trait Connected {
    fn client(&self) -> &ClientState;

    /// Whether its handshake took too long by second `now`.
    fn is_handshake_overdue(&self, _now: u32) -> bool {
        false
    }
}

/// The connections of a worker by token.
pub(crate) struct Connections<C> {
    slots: Vec<Option<Box<C>>>,
    /// Those that watch, and some that did.
    watching: Vec<u64>,
}

impl<C> Default for Connections<C> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            watching: Vec::new(),
        }
    }
}

impl<C: Connected> Connections<C> {
    /// A token that none of them ever had.
    pub fn next_token(&self) -> u64 {
        self.slots.len() as u64
    }

    #[inline]
    pub fn get(&mut self, token: u64) -> Option<&mut C> {
        self.slots.get_mut(token as usize)?.as_deref_mut()
    }

    pub fn insert(&mut self, token: u64, connection: Box<C>) -> &mut C {
        let index = token as usize;
        if index >= self.slots.len() {
            self.slots.resize_with(index + 1, || None);
        }
        self.slots[index].insert(connection)
    }

    pub fn take(&mut self, token: u64) -> Option<Box<C>> {
        self.slots.get_mut(token as usize)?.take()
    }

    /// Have it among those that lines are delivered to.
    pub fn watch(&mut self, token: u64) {
        if let Some(connection) = self.get(token) {
            connection.client().seat.set_watching(true);
            if !self.watching.contains(&token) {
                self.watching.push(token);
            }
        }
    }

    /// Those that lines are delivered to.
    pub fn watching(&mut self) -> Vec<u64> {
        let slots = &self.slots;
        self.watching.retain(|&token| {
            let connection = slots.get(token as usize).and_then(Option::as_ref);
            connection.is_some_and(|one| one.client().session.is_watching())
        });
        self.watching.clone()
    }

    /// Those whose time is over at second `now`, and what each counts as. A client that watches may be idle for ever, as
    /// any may where `idle_seconds_max` is 0.
    pub fn overdue(&self, idle_seconds_max: u32, now: u32) -> Vec<(u64, Count)> {
        let is_idle = |client: &ClientState| {
            let idle_seconds = now.saturating_sub(client.seat.active_at());
            idle_seconds_max > 0
                && idle_seconds >= idle_seconds_max
                && !client.session.is_watching()
        };
        let count = |connection: &C| match connection {
            one if one.is_handshake_overdue(now) => Some(Count::TlsHandshakeErrors),
            one => is_idle(one.client()).then_some(Count::IdleKicks),
        };
        let slots = (0..).zip(&self.slots);
        slots
            .filter_map(|(token, one)| Some((token, count(one.as_ref()?)?)))
            .collect()
    }
}
