//! A worker's thread: one loop, whichever carrier it waits by.

use super::connection::{Connection, SCRATCH_BYTES};
use super::connections::{Arrival, ClientState, Connected, Connections};
use super::datagrams::ForwardedDatagram;
use super::inbox::Message;
use crate::engine::events::EventLog;
use crate::engine::statistics::totals;
use crate::engine::{Context, Count, ServerState, Storage};
use crate::session::accounts::Accounts;
use crate::session::{BURST, Session, Tools};
use net::Waker;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
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

    /// Close a connection for `reason`, if it is still there.
    fn close<S: Storage>(&mut self, token: u64, reason: &str, tools: &mut Tools<'_, S>);

    /// Send their lines to these connections, which watch.
    fn deliver<S: Storage>(&mut self, watching: Vec<u64>, tools: &mut Tools<'_, S>);

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

/// A thread's share of the clients.
pub(crate) struct Worker<S> {
    pub index: usize,
    pub waker: Arc<Waker>,
    pub inbox: Receiver<Message>,
    pub storage: S,
    pub shared: Arc<Shared>,
}

impl<S: Storage> Worker<S> {
    /// Serve until a message ends it, and give back the storage.
    pub fn run(mut self, mut carrier: impl Carrier) -> io::Result<S> {
        let shared = Arc::clone(&self.shared);
        let (state, clock) = (&shared.state, shared.state.clock);
        let idle_seconds_max = state.options.idle_seconds_max;
        // Handshakes have a time of their own.
        let is_timed = idle_seconds_max > 0 || state.options.tls.is_some();
        let timeout = is_timed.then_some(IDLE_CHECK);
        let mut checked_at = clock.now();
        let mut buffers = Buffers::default();
        carrier.start()?;
        loop {
            buffers.log.finish(&state.events, &mut self.storage, clock);
            buffers.shrink();
            carrier.wait(timeout)?;
            let now = clock.now();
            buffers.log.begin(&state.events, &mut self.storage);
            let mut tools = buffers.tools(self.index, &mut self.storage, &shared, now);
            let is_woken = carrier.serve(&mut tools)?;
            if is_timed && now != checked_at {
                checked_at = now;
                for (token, count) in carrier.connections().overdue(idle_seconds_max, now) {
                    tools.context.counters.add(count, 1);
                    let reason = match count {
                        Count::IdleKicks => "idle_timeout",
                        _ => "error",
                    };
                    carrier.close(token, reason, &mut tools);
                }
            }
            // Only now, so that no event of this batch meets a new connection under the token of one that ended.
            if is_woken {
                self.waker.reset();
                if !read_inbox(&self.inbox, &mut carrier, &mut tools) {
                    carrier.end();
                    return Ok(self.storage);
                }
            }
        }
    }
}

/// Do what the inbox says; false at the end.
fn read_inbox<S: Storage>(
    inbox: &Receiver<Message>,
    carrier: &mut impl Carrier,
    tools: &mut Tools<'_, S>,
) -> bool {
    loop {
        match inbox.try_recv() {
            Ok(Message::Serve(arrival)) => {
                let Context {
                    counters,
                    state,
                    log,
                    now,
                    ..
                } = &mut tools.context;
                counters.add(Count::Opened, 1);
                log.opened(&state.events, || arrival.client());
                let client = ClientState {
                    seat: counters.roster().seat(arrival.client(), *now),
                    session: Session::new(state, tools.accounts.is_none()),
                };
                if !carrier.open(arrival, client, tools) {
                    tools.context.counters.add(Count::Closed, 1);
                }
            }
            Ok(Message::Connection(connection)) => carrier.resume(connection, tools),
            Ok(Message::Datagram(datagram)) => carrier.resume_datagram(*datagram, tools),
            Ok(Message::Deliver) => {
                let watching = carrier.connections().watching();
                carrier.deliver(watching, tools);
            }
            Ok(Message::Total(reply_to)) => {
                // The asking thread may have stopped waiting.
                _ = reply_to.send(totals(tools.context.storage, tools.context.now));
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
    log: EventLog,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            scratch: vec![0; SCRATCH_BYTES],
            out: Vec::with_capacity(SCRATCH_BYTES * 2),
            key_buffers: std::array::from_fn(|_| KeyBuffer::default()),
            log: EventLog::default(),
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
                client: None,
                log: &mut self.log,
                subscription: None,
            },
            accounts: shared.accounts.as_ref(),
            scratch: &mut self.scratch,
            out: &mut self.out,
            key_buffers: &mut self.key_buffers,
            began_watching: false,
        }
    }

    /// Give back what a burst of large replies took.
    fn shrink(&mut self) {
        if self.out.capacity() > REPLIES_KEPT_BYTES_MAX {
            self.out.shrink_to(SCRATCH_BYTES * 2);
        }
    }
}
