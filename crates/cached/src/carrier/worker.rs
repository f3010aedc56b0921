//! A worker's thread: one loop, whichever carrier it waits by.

use super::connection::{Connection, SCRATCH_BYTES};
use super::connections::{Arrival, ClientState, Connected, Connections};
use super::datagrams::ForwardedDatagram;
use super::inbox::{Message, Messages};
use crate::engine::statistics::totals;
use crate::engine::{Context, Count, Partitions, ServerState, Storage};
use crate::session::accounts::Accounts;
use crate::session::{BURST, Session, Tools};
use net::Waker;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;
use wire::memcached::server::KeyBuffer;

/// How often connections are closed whose time is over.
const IDLE_CHECK: Duration = Duration::from_secs(1);

/// The buffer for replies is cut back to what a burst of small ones takes when it has grown beyond this.
const REPLIES_KEPT_BYTES_MAX: usize = 4 << 20;

/// How bytes get from and to the clients of a worker: by epoll or by io_uring.
pub(crate) trait Carrier {
    type Connection: Connected;

    /// The worker's thread begins.
    fn start(&mut self) -> io::Result<()>;

    /// Wait until there is something to do, at most `timeout` (for ever when `None`).
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    /// Serve all that is ready; whether the worker was woken to read its inbox.
    fn serve<S: Storage>(&mut self, tools: &mut Tools<'_, S>) -> io::Result<bool>;

    fn connections(&mut self) -> &mut Connections<Self::Connection>;

    /// Serve a client from now on; false where that cannot be.
    fn open<S: Storage>(
        &mut self,
        arrival: Arrival,
        client: ClientState,
        tools: &mut Tools<'_, S>,
    ) -> bool;

    /// Close a connection, if it is still there.
    fn close<S: Storage>(&mut self, token: u64, tools: &mut Tools<'_, S>);

    /// Go on with a connection that comes from another worker.
    fn resume<S: Storage>(&mut self, connection: Box<Connection>, tools: &mut Tools<'_, S>);

    /// Go on with a datagram that comes from another worker.
    fn resume_datagram<S: Storage>(
        &mut self,
        datagram: ForwardedDatagram,
        tools: &mut Tools<'_, S>,
    );

    /// The worker's thread ends.
    fn end(&mut self) {}
}

/// What workers share.
pub(crate) struct Shared {
    pub state: ServerState,
    /// Those who may use the server; `None` where any client may.
    pub accounts: Option<Accounts>,
}

/// A worker's place among all.
pub(crate) struct Post {
    pub index: usize,
    pub waker: Arc<Waker>,
    pub inbox: Messages,
    pub shared: Arc<Shared>,
}

/// A thread's share of the clients.
pub(crate) struct Worker<S, C> {
    post: Post,
    storage: S,
    carrier: C,
    buffers: Buffers,
    /// The second in which it last looked for connections whose time is over.
    checked_at: u32,
}

impl<S, C> Worker<S, C> {
    pub fn new(post: Post, storage: S, carrier: C) -> Self {
        Self {
            checked_at: post.shared.state.clock.now(),
            post,
            storage,
            carrier,
            buffers: Buffers::default(),
        }
    }
}

/// A worker, whichever way it gets at items and clients.
pub(crate) trait Serve: Send {
    /// Serve until a message ends it.
    fn run(&mut self) -> io::Result<()>;

    /// Wait at most `timeout` for something to do, and do it; false once a message ends it.
    fn turn(&mut self, timeout: Option<Duration>) -> io::Result<bool>;

    /// Begin, where [`turn`](Self::turn) is called from outside.
    #[cfg(feature = "harness")]
    fn start(&mut self) -> io::Result<()>;

    /// Bytes that its buffers hold for clients.
    #[cfg(feature = "harness")]
    fn held(&mut self) -> usize;

    /// What it had, once it has ended.
    fn into_storage(self: Box<Self>) -> Box<dyn Partitions>;
}

impl<S: Storage + Send + 'static, C: Carrier + Send> Serve for Worker<S, C> {
    fn run(&mut self) -> io::Result<()> {
        let options = &self.post.shared.state.options;
        // Handshakes have a time of their own.
        let is_timed = options.idle_seconds_max > 0 || options.tls.is_some();
        let timeout = is_timed.then_some(IDLE_CHECK);
        self.carrier.start()?;
        while self.turn(timeout)? {}
        self.carrier.end();
        Ok(())
    }

    #[cfg(feature = "harness")]
    fn start(&mut self) -> io::Result<()> {
        self.carrier.start()
    }

    #[cfg(feature = "harness")]
    fn held(&mut self) -> usize {
        let all = self.carrier.connections().all();
        all.map(|connection| connection.client_bytes()).sum()
    }

    fn turn(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let Self {
            post,
            storage,
            carrier,
            buffers,
            checked_at,
        } = self;
        buffers.shrink();
        carrier.wait(timeout)?;
        let now = post.shared.state.clock.now();
        let mut tools = buffers.tools(post.index, storage, &post.shared, now);
        let is_woken = carrier.serve(&mut tools)?;
        if timeout.is_some() && now != *checked_at {
            *checked_at = now;
            let idle_seconds_max = post.shared.state.options.idle_seconds_max;
            for (token, count) in carrier.connections().overdue(idle_seconds_max, now) {
                tools.context.counters.add(count, 1);
                carrier.close(token, &mut tools);
            }
        }
        // Only now, so that no event of this batch meets a new connection under the token of one that ended.
        if is_woken {
            post.waker.reset();
            return Ok(read_inbox(&post.inbox, carrier, &mut tools));
        }
        Ok(true)
    }

    fn into_storage(self: Box<Self>) -> Box<dyn Partitions> {
        Box::new(self.storage)
    }
}

/// Do what the inbox says; false at the end.
fn read_inbox<S: Storage>(
    inbox: &Messages,
    carrier: &mut impl Carrier,
    tools: &mut Tools<'_, S>,
) -> bool {
    loop {
        match inbox.next() {
            Ok(Message::Serve(arrival)) => {
                tools.context.counters.add(Count::Opened, 1);
                let client = ClientState {
                    active_at: tools.context.now,
                    session: Session::new(tools.context.state, tools.accounts.is_none()),
                };
                if !carrier.open(arrival, client, tools) {
                    tools.context.counters.add(Count::Closed, 1);
                }
            }
            Ok(Message::Connection(connection)) => carrier.resume(connection, tools),
            Ok(Message::Datagram(datagram)) => carrier.resume_datagram(*datagram, tools),
            Ok(Message::Total(reply_to)) => {
                // The asking thread may have stopped waiting.
                _ = reply_to.send(totals(tools.context.storage));
            }
            Ok(Message::End) | Err(TryRecvError::Disconnected) => return false,
            Err(TryRecvError::Empty) => return true,
        }
    }
}

/// What all sessions of a worker share.
pub(crate) struct Buffers {
    scratch: Vec<u8>,
    out: Vec<u8>,
    key_buffers: [KeyBuffer; BURST],
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            scratch: vec![0; SCRATCH_BYTES],
            out: Vec::with_capacity(SCRATCH_BYTES * 2),
            key_buffers: std::array::from_fn(|_| KeyBuffer::default()),
        }
    }
}

impl Buffers {
    /// What is lent to sessions.
    pub fn tools<'w, S>(
        &'w mut self,
        worker: usize,
        storage: &'w mut S,
        shared: &'w Shared,
        now: u32,
    ) -> Tools<'w, S> {
        let state = &shared.state;
        Tools {
            context: Context {
                worker,
                storage,
                counters: &state.counters[worker],
                clock: state.clock,
                now,
                state,
                gathered: None,
            },
            accounts: shared.accounts.as_ref(),
            scratch: &mut self.scratch,
            out: &mut self.out,
            key_buffers: &mut self.key_buffers,
        }
    }

    /// Give back what a burst of large replies took.
    fn shrink(&mut self) {
        if self.out.capacity() > REPLIES_KEPT_BYTES_MAX {
            self.out.shrink_to(SCRATCH_BYTES * 2);
        }
    }
}
