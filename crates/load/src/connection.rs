//! One connection: bytes on their way out and in, and the requests that await their replies.
use crate::operation::Operation;
use crate::protocol::{Command, Elements};
use crate::tls::{Session, Tls};
use net::{Endpoint, Error, Interest, Poller, Stream};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// No request is added while so many bytes wait to be sent.
const MOST_UNSENT_BYTES: usize = 1 << 20;
/// The least room for a read into a connection's own buffer.
const LEAST_READ_BYTES: usize = 64 << 10;

const INTEREST: Interest = Interest::READ.or(Interest::WRITE).or(Interest::EDGE);

/// A request that awaits its reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    /// When its operation was meant to start, in monotonic nanoseconds.
    pub(crate) intended: u64,
    /// When its operation was first sent.
    pub(crate) sent: u64,
    pub(crate) operation: Operation,
    pub(crate) command: Command,
    pub(crate) keys: u16,
}

/// A key of a request that awaits its reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyUse {
    pub(crate) id: u64,
    /// For a read that was sent, the least version it may see.
    pub(crate) floor: u64,
}

/// What a read came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received {
    pub(crate) bytes: usize,
    /// Whether there was no more.
    pub(crate) all: bool,
}

#[derive(Debug)]
pub(crate) struct Connection {
    /// Its number among all of the client's, for messages.
    pub(crate) number: usize,
    stream: Stream,
    /// Where the server is reached by TLS.
    session: Option<Box<Session>>,
    /// In the order in which replies will come.
    pub(crate) requests: VecDeque<Request>,
    /// The keys of `requests`, one after the other.
    pub(crate) keys: VecDeque<KeyUse>,
    /// How many of the last keys belong to requests that [`Connection::take_unsent_keys`] has not seen.
    unsent_keys: usize,
    /// Of the first request: keys that the reply has dealt with.
    pub(crate) answered: usize,
    /// Of the first request: whether the server refused a part of it.
    pub(crate) refused: bool,
    /// Of the first request: elements of its reply still to come.
    pub(crate) elements: Elements,
    /// Bytes to send; those before `sent` have been.
    pub(crate) out: Vec<u8>,
    sent: usize,
    /// The beginning of a reply that was cut off, in the first `carried` bytes.
    carry: Vec<u8>,
    carried: usize,
    /// How long that reply is known to be at least.
    needed: usize,
    given_up: bool,
    /// Whether it stands in the worker's queue of connections with room.
    pub(crate) queued: bool,
    /// Whether it stands among the worker's connections with requests that have not been sent.
    pub(crate) is_dirty: bool,
    /// When bytes last came or went, or a request was added to none, in monotonic nanoseconds.
    pub(crate) last_progress: u64,
}

impl Connection {
    pub(crate) fn open(
        number: usize,
        endpoint: &Endpoint,
        tls: Option<&Tls>,
        (pipeline, multiget): (usize, usize),
        poller: &Poller,
        token: u64,
    ) -> Result<Self, crate::Error> {
        let stream = Stream::connect(endpoint, CONNECT_TIMEOUT)?;
        let session = tls
            .map(|tls| tls.open(&stream, endpoint, CONNECT_TIMEOUT).map(Box::new))
            .transpose()?;
        // Edges cost the kernel less, and are told once: reads and writes go on until there is no more to be had.
        poller
            .add(&stream, token, INTEREST)
            .map_err(crate::Error::system("watch a connection"))?;
        Ok(Self {
            number,
            stream,
            session,
            requests: VecDeque::with_capacity(pipeline),
            keys: VecDeque::with_capacity(pipeline * multiget),
            unsent_keys: 0,
            answered: 0,
            refused: false,
            elements: None,
            out: Vec::with_capacity(4096),
            sent: 0,
            carry: Vec::new(),
            carried: 0,
            needed: 0,
            given_up: false,
            queued: false,
            is_dirty: false,
            last_progress: 0,
        })
    }

    /// Whether it can go on in another phase: it works, and nothing is under way.
    pub(crate) fn is_clean(&self) -> bool {
        !self.given_up && self.requests.is_empty() && self.carried == 0 && self.is_sent()
    }

    /// Whether all that was to be sent has been.
    #[inline]
    pub(crate) fn is_sent(&self) -> bool {
        self.sent == self.out.len()
            && self
                .session
                .as_ref()
                .is_none_or(|session| session.is_sent())
    }

    /// Have nothing more to do with it.
    pub(crate) fn give_up(&mut self, poller: &Poller) {
        if !self.given_up {
            self.given_up = true;
            // It is watched; and it will be closed before the poller is used again.
            _ = poller.remove(&self.stream);
        }
    }

    /// Whether another request may be added.
    #[inline]
    pub(crate) fn has_room(&self, pipeline: usize) -> bool {
        self.requests.len() < pipeline && self.out.len() - self.sent < MOST_UNSENT_BYTES
    }

    /// Await the reply to `request`, whose bytes and keys were just added.
    #[inline]
    pub(crate) fn expect(&mut self, request: Request, now: u64) {
        if self.requests.is_empty() {
            self.last_progress = now;
        }
        self.requests.push_back(request);
        self.unsent_keys += usize::from(request.keys);
    }

    /// The keys of the requests that were added since the last call.
    #[inline]
    pub(crate) fn take_unsent_keys(&mut self) -> impl Iterator<Item = &mut KeyUse> {
        let sent = self.keys.len().saturating_sub(self.unsent_keys);
        self.unsent_keys = 0;
        self.keys.range_mut(sent..)
    }

    /// The reply to the first request is complete: forget it.
    #[inline]
    pub(crate) fn finish_request(&mut self) {
        if let Some(request) = self.requests.pop_front() {
            for _ in 0..request.keys {
                self.keys.pop_front();
            }
        }
        self.answered = 0;
        self.refused = false;
        self.elements = None;
    }

    /// Send what the socket has room for; an event tells when there is room for the rest. Returns how many bytes went.
    #[inline]
    pub(crate) fn flush(&mut self) -> io::Result<usize> {
        let before = self.sent;
        if let Some(session) = &mut self.session {
            match session.flush(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                done => done?,
            }
        }
        while self.sent < self.out.len() {
            let unsent = &self.out[self.sent..];
            let written = match &mut self.session {
                None => self.stream.write(unsent),
                Some(session) => session.write(&self.stream, unsent),
            };
            match written {
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let written = self.sent - before;
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        } else if self.sent >= MOST_UNSENT_BYTES {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        Ok(written)
    }

    /// Be told again if there is still something to read.
    pub(crate) fn watch_again(&self, poller: &Poller, token: u64) -> io::Result<()> {
        poller.modify(&self.stream, token, INTEREST)
    }

    /// Read once, and hand all bytes that await parsing to `consume`, which says how many it used and how many are
    /// needed at least (from the first unused one) before it can use more. What it leaves is kept.
    ///
    /// Usually the bytes stay in `shared`, which is warm in the cache; only a reply that is cut off moves to a
    /// buffer of the connection's own, which grows to `most` bytes.
    #[inline]
    pub(crate) fn receive<E: From<io::Error>>(
        &mut self,
        shared: &mut [u8],
        most: usize,
        consume: impl FnOnce(&mut Self, &[u8]) -> Result<(usize, usize), E>,
    ) -> Result<Received, E> {
        if self.carried == 0 {
            let received = self.read(shared)?;
            let input = &shared[..received];
            let (used, needed) = consume(self, input)?;
            let rest = &input[used..];
            if !rest.is_empty() {
                self.reserve(rest.len(), most);
                self.carry[..rest.len()].copy_from_slice(rest);
            }
            self.carried = rest.len();
            self.needed = needed;
            Ok(Received {
                bytes: received,
                all: received < shared.len(),
            })
        } else {
            self.reserve(self.needed, most);
            let mut carry = std::mem::take(&mut self.carry);
            let done = self.receive_more(&mut carry, consume);
            self.carry = carry;
            done
        }
    }

    fn receive_more<E: From<io::Error>>(
        &mut self,
        carry: &mut [u8],
        consume: impl FnOnce(&mut Self, &[u8]) -> Result<(usize, usize), E>,
    ) -> Result<Received, E> {
        let carried = self.carried;
        let received = self.read(&mut carry[carried..])?;
        self.carried += received;
        let all = self.carried < carry.len();
        if self.carried >= self.needed {
            let (used, needed) = consume(self, &carry[..self.carried])?;
            carry.copy_within(used..self.carried, 0);
            self.carried -= used;
            self.needed = needed;
        }
        Ok(Received {
            bytes: received,
            all,
        })
    }

    /// Whether there may be bytes to read that no event will tell of.
    #[inline]
    pub(crate) fn holds_input(&self) -> bool {
        self.session
            .as_ref()
            .is_some_and(|session| session.is_full())
    }

    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let received = match &mut self.session {
                None => self.stream.read(buffer),
                Some(session) => session.read(&self.stream, buffer),
            };
            match received {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn reserve(&mut self, needed: usize, most: usize) {
        let room = needed.max(self.carried + 1).max(LEAST_READ_BYTES);
        if self.carry.len() < room {
            self.carry
                .resize(room.next_power_of_two().min(most.max(room)), 0);
        }
    }
}

/// The first of `candidates` that answers; the only one, untried.
pub(crate) fn choose_endpoint(candidates: &[Endpoint]) -> Result<Endpoint, Error> {
    if let [only] = candidates {
        return Ok(only.clone());
    }
    let mut failure = None;
    for endpoint in candidates {
        match Stream::connect(endpoint, CONNECT_TIMEOUT) {
            Ok(_) => return Ok(endpoint.clone()),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| Error::Resolve(String::new(), "no address".to_owned())))
}
