//! A worker without a thread, a poller or a clock: tests that make their input up drive it, step by step.

use crate::accounts::Accounts;
use crate::clock::Clock;
use crate::connection::Connection;
use crate::conversation::{Status, Tools};
use crate::options::Options;
use crate::report::Report;
use crate::storage::{Owned, Shared, Storage};
use crate::worker::Buffers;
use mica::{Config, Hasher, Partition};
use net::Stream;
use rustix::net::sockopt;
use std::io;
use std::os::unix::net::UnixStream;

/// When it starts, in Unix time.
pub const START_UNIX_SECONDS: i64 = 1_800_000_000;

/// A worker of a server that listens nowhere.
pub struct Harness {
    storage: Either,
    worker: Rest,
}

/// All but the items.
struct Rest {
    report: Report,
    now: u32,
    buffers: Buffers,
}

/// What the worker has its items in.
enum Either {
    Owned(Owned),
    Shared(Shared),
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
    /// The client to take answers.
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
        let hasher = Hasher::new(1);
        let made: Result<Vec<_>, _> = (0..partitions)
            .map(|_| Partition::new(layout, hasher.clone()))
            .collect();
        let made = made.map_err(|error| error.to_string())?;
        let (clock, now) = Clock::started_at(START_UNIX_SECONDS);
        Ok(Self {
            storage: if layout.has_readers {
                Either::Shared(Shared::new(hasher, made))
            } else {
                Either::Owned(Owned::new(hasher, made, 0, 1))
            },
            worker: Rest {
                report: Report::new(
                    options,
                    (accounts.map(Accounts::parse).transpose()?, None),
                    layout.item_bytes_max,
                    (Vec::new(), Vec::new()),
                    clock,
                ),
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
        let connection = Connection::new(stream, &self.worker.report, self.worker.now);
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

fn step<S: Storage>(storage: &mut S, worker: &mut Rest, line: &mut Line) -> Waiting {
    let Rest {
        report,
        now,
        buffers,
    } = worker;
    let mut tools: Tools<'_, S> = buffers.tools(0, storage, report, *now);
    line.0.advance(&mut tools).into()
}

impl From<Status> for Waiting {
    fn from(status: Status) -> Self {
        match status {
            Status::Reading => Self::ToRead,
            Status::Writing => Self::ToWrite,
            // There is no other worker to go to.
            Status::Ended | Status::Elsewhere(_) => Self::Over,
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
