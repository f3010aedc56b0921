use crate::connection::Connection;
use crate::conversation::{Status, Tools};
use crate::counters::Count;
use crate::report::Report;
use crate::roster::{Client, Roster, Seat};
use crate::storage::Storage;
use crate::tls::TlsConnection;
use net::{Endpoint, Interest, Stream};
use rustls::ServerConfig;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// A client that a worker is to take on.
pub(crate) struct Arrival {
    pub stream: Stream,
    /// Where it is, unless it came over a unix socket.
    pub peer: Option<SocketAddr>,
    /// Where it came to.
    pub door: Arc<Endpoint>,
    /// What to encrypt with, where it came to a place where that is done.
    pub tls: Option<Arc<ServerConfig>>,
}

impl Arrival {
    /// As it is told of.
    pub fn client(&self) -> Client {
        Client {
            descriptor: self.stream.as_fd().as_raw_fd(),
            peer: self.peer,
            door: Arc::clone(&self.door),
        }
    }
}

/// A client's stream of either kind. Which one is decided once an event, not once a command.
pub(crate) enum AnyConnection {
    Plain(Box<Connection>),
    Tls(Box<TlsConnection>),
}

impl AnyConnection {
    /// `None` where the host gives no random numbers to encrypt with.
    pub fn new(arrival: Arrival, roster: &Arc<Roster>, report: &Report, now: u32) -> Option<Self> {
        let seat = roster.seat(arrival.client(), now);
        let Arrival { stream, tls, .. } = arrival;
        Some(match tls {
            None => Self::Plain(Box::new(Connection::new(stream, seat, report))),
            Some(config) => {
                let connection = TlsConnection::new(stream, seat, config, report).ok()?;
                Self::Tls(Box::new(connection))
            }
        })
    }

    pub fn stream(&self) -> &Stream {
        match self {
            Self::Plain(connection) => connection.stream(),
            Self::Tls(connection) => connection.stream(),
        }
    }

    /// What the poller must watch for from now on, if that changed.
    #[inline]
    pub fn changed_interest(&mut self, status: Status) -> Option<Interest> {
        match self {
            Self::Plain(connection) => connection.changed_interest(status),
            Self::Tls(connection) => connection.changed_interest(status),
        }
    }

    /// The socket is ready for what was waited for: do a bounded piece of work.
    #[inline]
    pub fn advance<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        match self {
            Self::Plain(connection) => connection.advance(tools),
            Self::Tls(connection) => connection.advance(tools),
        }
    }

    /// It comes from another worker: go on with what it brings.
    #[inline]
    pub fn arrive<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        match self {
            Self::Plain(connection) => connection.arrive(tools),
            Self::Tls(connection) => connection.arrive(tools),
        }
    }

    /// There are lines for it, which watches.
    pub fn deliver<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> Status {
        match self {
            Self::Plain(connection) => connection.deliver(tools),
            Self::Tls(connection) => connection.deliver(tools),
        }
    }

    /// Whether it is told what happens.
    pub fn is_watching(&self) -> bool {
        match self {
            Self::Plain(connection) => connection.is_watching(),
            Self::Tls(connection) => connection.is_watching(),
        }
    }

    /// Where it is seen.
    pub fn seat(&self) -> &Seat {
        match self {
            Self::Plain(connection) => connection.seat(),
            Self::Tls(connection) => connection.seat(),
        }
    }

    /// Whether its time is over at second `now`, and as what that counts; with 0 for `idle_seconds_max`, one that
    /// asks for nothing has all the time there is.
    pub fn is_over_time(&self, idle_seconds_max: u32, now: u32) -> Option<Count> {
        let is_idle = match self {
            Self::Plain(connection) => connection.is_idle(idle_seconds_max, now),
            Self::Tls(connection) if connection.is_overdue(now) => {
                return Some(Count::TlsHandshakeErrors);
            }
            Self::Tls(connection) => connection.is_idle(idle_seconds_max, now),
        };
        (idle_seconds_max > 0 && is_idle).then_some(Count::IdleKicks)
    }
}
