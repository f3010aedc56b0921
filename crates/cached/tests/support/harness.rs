//! A worker without a thread, a poller or a clock: fuzz targets drive it, step by step.

use crate::carrier::connection::Connection;
use crate::carrier::connections::{Arrival, ClientState};
use crate::carrier::datagrams::{Limits, UnfinishedDatagram, carry_out};
use crate::carrier::worker::{Buffers, Shared};
use crate::control::memory_file::{Counts, restore_from, save_to};
use crate::engine::state::Addresses;
use crate::engine::storage::{Owned, SharedPartitions};
use crate::engine::{Clock, ServerState, Storage};
use crate::options::Options;
use crate::session::accounts::Accounts;
use crate::session::{Session, Status, Tools};
use mica::{Config, Hasher, Partition};
use net::Stream;
use rustix::net::sockopt;
use std::io::{self, Cursor};
use std::os::unix::net::UnixStream;
use std::path::Path;
use wire::memcached::Datagrams;

/// When it starts, in Unix time.
pub const START_UNIX_SECONDS: i64 = 1_800_000_000;

/// A worker of a server that listens nowhere.
pub struct Harness {
    storage: Either,
    worker: Rest,
}

/// All but the items.
struct Rest {
    shared: Shared,
    now: u32,
    buffers: Buffers,
}

/// What the worker has its items in.
enum Either {
    Owned(Owned),
    Shared(SharedPartitions),
}

/// A connection to it.
pub struct Line(Connection);

impl Line {
    /// What the client sent and the worker did not read yet, in bytes.
    ///
    /// # Errors
    /// What `ioctl(2)` says.
    pub fn unread_bytes(&self) -> io::Result<u64> {
        Ok(rustix::io::ioctl_fionread(self.0.stream())?)
    }
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// The client's next bytes.
    ToRead,
    /// The client to take replies.
    ToWrite,
    /// Nothing: it has ended.
    Over,
}

impl Harness {
    /// A worker with partitions of this layout; with readers they are used as those of several workers are. `accounts`
    /// is what a file of accounts would hold.
    ///
    /// # Errors
    /// What is wrong with the layout or the accounts.
    pub fn new(
        options: Options,
        accounts: Option<&[u8]>,
        layout: Config,
        partitions: usize,
    ) -> Result<Self, String> {
        let hasher = hasher();
        let made: Result<Vec<_>, _> = (0..partitions)
            .map(|_| Partition::new(layout, hasher.clone()))
            .collect();
        let made = made.map_err(|error| error.to_string())?;
        let (clock, now) = Clock::started_at(START_UNIX_SECONDS);
        Ok(Self {
            storage: if layout.has_readers {
                Either::Shared(SharedPartitions::new(hasher, made))
            } else {
                Either::Owned(Owned::new(hasher, made, 0, 1))
            },
            worker: Rest {
                shared: Shared {
                    state: ServerState::new(
                        options,
                        layout.item_bytes_max,
                        Addresses::default(),
                        clock,
                        None,
                    ),
                    accounts: accounts.map(Accounts::parse).transpose()?,
                },
                now,
                buffers: Buffers::default(),
            },
        })
    }

    /// Let seconds go by.
    pub fn wait(&mut self, seconds: u32) {
        self.worker.now += seconds;
    }

    /// Connect; the other end is the client's. Where `send_bytes` is given, the kernel takes about as many bytes of
    /// answers that the client does not read.
    ///
    /// # Errors
    /// What the system says.
    pub fn connect(&self, send_bytes: Option<usize>) -> io::Result<(Line, UnixStream)> {
        let (stream, client) = Stream::pair()?;
        if let Some(bytes) = send_bytes {
            sockopt::set_socket_send_buffer_size(&stream, bytes)?;
        }
        let arrival = Arrival { stream, tls: None };
        let Shared { state, accounts } = &self.worker.shared;
        let known = ClientState {
            active_at: self.worker.now,
            session: Session::new(state, accounts.is_none()),
        };
        let connection = Connection::new(arrival, known, &state.options);
        let connection = connection.ok_or(io::ErrorKind::Unsupported)?;
        Ok((Line(connection), client))
    }

    /// The connection's socket is ready for what it waited for: do what a worker does then.
    pub fn advance(&mut self, line: &mut Line) -> Waiting {
        match &mut self.storage {
            Either::Owned(storage) => step(storage, &mut self.worker, line),
            Either::Shared(storage) => step(storage, &mut self.worker, line),
        }
    }
}

impl Harness {
    /// Carry out what datagrams say that arrived together, and append the answers: over a network whose packets carry
    /// `packet_bytes` of them over AF_XDP, or by the kernel's sockets.
    pub fn answer_datagrams(
        &mut self,
        datagrams: &[&[u8]],
        packet_bytes: Option<usize>,
        answers: &mut Datagrams,
    ) {
        let limits = packet_bytes.map_or(Limits::SOCKETS, Limits::of_packets);
        match &mut self.storage {
            Either::Owned(storage) => {
                answer_datagrams(datagrams, limits, storage, &mut self.worker, answers);
            }
            Either::Shared(storage) => {
                answer_datagrams(datagrams, limits, storage, &mut self.worker, answers);
            }
        }
    }
}

fn answer_datagrams<S: Storage>(
    datagrams: &[&[u8]],
    limits: Limits,
    storage: &mut S,
    worker: &mut Rest,
    answers: &mut Datagrams,
) {
    let Rest {
        shared,
        now,
        buffers,
    } = worker;
    let mut tools = buffers.tools(0, storage, shared, *now);
    // There is no other worker for which one could be.
    let forward = |_: UnfinishedDatagram| {};
    let datagrams = datagrams.iter().copied();
    carry_out(datagrams, limits, &mut tools, answers, forward);
}

fn step<S: Storage>(storage: &mut S, worker: &mut Rest, line: &mut Line) -> Waiting {
    let Rest {
        shared,
        now,
        buffers,
    } = worker;
    let mut tools: Tools<'_, S> = buffers.tools(0, storage, shared, *now);
    line.0.advance(false, &mut tools).into()
}

impl From<Status> for Waiting {
    fn from(status: Status) -> Self {
        match status {
            Status::Reading => Self::ToRead,
            Status::Writing => Self::ToWrite,
            // There is no other worker to go to, or to wait for.
            Status::Ended | Status::OtherWorker(_) | Status::Waiting => Self::Over,
        }
    }
}

/// Whether a file of these accounts would be taken, and then whether it admits what is given.
///
/// # Errors
/// What is wrong with the file.
pub fn admits(accounts: &[u8], given: &[u8]) -> Result<bool, String> {
    Ok(Accounts::parse(accounts)?.admit(given))
}

/// What a file of items holds that outlived a server.
pub struct Restored {
    /// Where the items are: those of one worker behind those of another.
    pub partitions: Vec<Partition>,
    /// The second at which they were all there.
    pub now: u32,
    /// What became of them.
    pub counts: Counts,
    clock: Clock,
}

/// Read `file` into partitions of this layout: as many for each worker.
///
/// # Errors
/// What is wrong with the layout or the file.
pub fn restore(
    file: &[u8],
    layout: Config,
    partitions: usize,
    workers: usize,
) -> Result<Restored, String> {
    let hasher = hasher();
    let made: Result<Vec<_>, _> = (0..partitions * workers)
        .map(|_| Partition::new(layout, hasher.clone()))
        .collect();
    let mut made = made.map_err(|error| error.to_string())?;
    let all = (&mut made[..], workers);
    let (clock, counts) = restore_from(Cursor::new(file), &hasher, all, Path::new("-"))
        .map_err(|damage| damage.to_string())?;
    Ok(Restored {
        partitions: made,
        now: clock.now(),
        counts,
        clock,
    })
}

impl Restored {
    /// The file that these items are kept in.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn save(self) -> io::Result<Vec<u8>> {
        let all = Owned::new(hasher(), self.partitions, 0, 1);
        let (file, _) = save_to(
            Vec::new(),
            &mut [Box::new(all)],
            (self.clock, HASH_SEED),
            Path::new("-"),
        )?;
        Ok(file)
    }
}

/// The same in all of them.
pub fn hasher() -> Hasher {
    Hasher::new(HASH_SEED)
}

const HASH_SEED: u64 = 1;
