use crate::engine::Count;
use crate::session::Session;
use net::Stream;
use rustls::ServerConfig;
use std::sync::Arc;

/// A client that a worker is to take on.
pub(crate) struct Arrival {
    pub stream: Stream,
    /// What to encrypt with, where that is done at this endpoint.
    pub tls: Option<Arc<ServerConfig>>,
}

/// What a worker has of a client, whatever carries its bytes.
pub(crate) struct ClientState {
    /// The second in which it was active last.
    pub active_at: u32,
    pub session: Session,
}

/// A connection of either carrier.
pub(crate) trait Connected {
    fn client(&self) -> &ClientState;

    /// Bytes that its buffers take.
    #[cfg(feature = "harness")]
    fn client_bytes(&self) -> usize {
        0
    }

    /// Whether it waits for the server itself.
    fn is_waiting(&self) -> bool {
        self.client().session.is_waiting()
    }

    /// Whether its handshake took too long by second `now`.
    fn is_handshake_overdue(&self, _now: u32) -> bool {
        false
    }
}

/// The connections of a worker by token.
pub(crate) struct Connections<C>(Vec<Option<Box<C>>>);

impl<C> Default for Connections<C> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<C: Connected> Connections<C> {
    /// A token that none of them ever had.
    pub fn next_token(&self) -> u64 {
        self.0.len() as u64
    }

    #[inline]
    pub fn get(&mut self, token: u64) -> Option<&mut C> {
        self.0.get_mut(token as usize)?.as_deref_mut()
    }

    pub fn insert(&mut self, token: u64, connection: Box<C>) -> &mut C {
        let index = token as usize;
        if index >= self.0.len() {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index].insert(connection)
    }

    #[cfg(feature = "harness")]
    pub fn all(&self) -> impl Iterator<Item = &C> {
        self.0.iter().filter_map(Option::as_deref)
    }

    pub fn take(&mut self, token: u64) -> Option<Box<C>> {
        self.0.get_mut(token as usize)?.take()
    }

    /// Those whose time is over at second `now`, and what each counts as. A client may be idle for ever where
    /// `idle_seconds_max` is 0.
    pub fn overdue(&self, idle_seconds_max: u32, now: u32) -> Vec<(u64, Count)> {
        let is_idle = |client: &ClientState| {
            idle_seconds_max > 0 && now.saturating_sub(client.active_at) >= idle_seconds_max
        };
        let count = |connection: &C| match connection {
            one if one.is_handshake_overdue(now) => Some(Count::TlsHandshakeErrors),
            one if one.is_waiting() => None,
            one => is_idle(one.client()).then_some(Count::IdleKicks),
        };
        let slots = (0..).zip(&self.0);
        slots
            .filter_map(|(token, one)| Some((token, count(one.as_ref()?)?)))
            .collect()
    }
}
