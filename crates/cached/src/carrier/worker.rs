//! A worker's thread: one loop, whichever carrier it waits by.

use super::connection::{Connection, SCRATCH_BYTES};
use super::connections::{Arrival, ClientState, Connected, Connections};
use super::datagrams::ForwardedDatagram;
use super::inbox::{Inbox, Message, Messages};
use crate::engine::statistics::totals;
use crate::engine::{Context, Count, Partitions, ServerState, Storage};
use crate::session::accounts::Accounts;
#[cfg(feature = "harness")]
use crate::session::batch::ForwardLimits;
use crate::session::batch::Returned;
use crate::session::lanes::Lanes;
use crate::session::{BURST, Session, Tools};
use net::Waker;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;
use wire::memcached::server::KeyBuffer;

/// How often connections are closed whose time is over.
const IDLE_CHECK: Duration = Duration::from_secs(1);

/// Commands for other workers wait for more of them during so many turns, as long as there are clients to serve.
const TURNS_HELD_MAX: u32 = 4;

/// The buffer for replies is cut back to what a burst of small ones takes when it has grown beyond this.
const REPLIES_KEPT_BYTES_MAX: usize = 4 << 20;

/// How bytes get from and to the clients of a worker: by epoll or by io_uring.
pub(crate) trait Carrier {
    type Connection: Connected;

    /// The worker's thread begins.
    fn start(&mut self) -> io::Result<()>;

    /// Wait until there is something to do, at most `timeout` (for ever when `None`); false where it is known that there
    /// is nothing.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool>;

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

    /// Another worker carried out commands of a connection, which may be gone.
    fn take_back<S: Storage>(&mut self, returned: &Returned<'_>, tools: &mut Tools<'_, S>);

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
    /// Of all workers, by number.
    pub inboxes: Arc<[Inbox]>,
    pub shared: Arc<Shared>,
}

/// A thread's share of the clients.
pub(crate) struct Worker<S, C> {
    post: Post,
    storage: S,
    carrier: C,
    buffers: Buffers,
    /// Whether others have to wake it.
    is_asleep: bool,
    /// Turns since a command was put into a batch that did not leave yet.
    turns_held: u32,
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
            is_asleep: false,
            turns_held: 0,
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

    /// Have this much under way at other workers.
    #[cfg(feature = "harness")]
    fn limit_forwarding(&mut self, limits: ForwardLimits);

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

    #[cfg(feature = "harness")]
    fn limit_forwarding(&mut self, limits: ForwardLimits) {
        self.buffers.lanes.limits = limits;
    }

    fn turn(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let Self {
            post,
            storage,
            carrier,
            buffers,
            is_asleep,
            turns_held,
            checked_at,
        } = self;
        buffers.shrink();
        // What is for others leaves once there is nothing else to do: more goes together, and fewer are woken.
        let holds = buffers.lanes.is_filled();
        let mut has_mail = false;
        if !*is_asleep && !holds {
            *is_asleep = true;
            has_mail = post.inbox.fall_asleep();
        }
        let at_most = if has_mail || holds {
            Some(Duration::ZERO)
        } else {
            timeout
        };
        let has_events = carrier.wait(at_most)?;
        if *is_asleep && (has_events || has_mail) {
            *is_asleep = false;
            post.inbox.wake_up();
        }
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
        if is_woken {
            post.waker.reset();
        }
        // Only now, so that no event of this batch meets a new connection under the token of one that ended.
        let goes_on = *is_asleep || !post.inbox.has_mail() || read_inbox(post, carrier, &mut tools);
        *turns_held += 1;
        if !holds {
            *turns_held = 0;
        } else if !has_events || *turns_held >= TURNS_HELD_MAX {
            *turns_held = 0;
            tools.lanes.leave(|owner, batch| {
                post.inboxes[owner].send(Message::Batch(batch));
            });
        }
        Ok(goes_on)
    }

    fn into_storage(self: Box<Self>) -> Box<dyn Partitions> {
        Box::new(self.storage)
    }
}

/// Do what the inbox says; false at the end.
fn read_inbox<S: Storage>(
    post: &Post,
    carrier: &mut impl Carrier,
    tools: &mut Tools<'_, S>,
) -> bool {
    loop {
        match post.inbox.next() {
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
            Ok(Message::Batch(batch)) if batch.home() == post.index => {
                for returned in batch.returned() {
                    carrier.take_back(&returned, tools);
                }
                tools.lanes.take_back(batch);
            }
            Ok(Message::Batch(mut batch)) => {
                batch.carry_out(tools);
                post.inboxes[batch.home()].send(Message::Batch(batch));
            }
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
    lanes: Lanes,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            scratch: vec![0; SCRATCH_BYTES],
            out: Vec::with_capacity(SCRATCH_BYTES * 2),
            key_buffers: std::array::from_fn(|_| KeyBuffer::default()),
            lanes: Lanes::default(),
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
            lanes: &mut self.lanes,
        }
    }

    /// Give back what a burst of large replies took.
    fn shrink(&mut self) {
        if self.out.capacity() > REPLIES_KEPT_BYTES_MAX {
            self.out.shrink_to(SCRATCH_BYTES * 2);
        }
    }
}
