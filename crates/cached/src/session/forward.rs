//! Commands that other workers carry out, while their connection stays.

use super::awaited::Awaited;
use super::batch::{Batch, Returned};
use super::lanes::Lanes;
use super::{Outlet, Protocol, Session, Status, Tools, limits};
use crate::engine::client_memory::Spent;
use crate::engine::{After, Context, Count, Counters, Storage};
use mica::Key;
use std::io::Write;
use wire::memcached::{binary, server};

/// Longer commands do not go alone: their connection moves with them.
const COMMAND_BYTES_MAX: usize = 16 << 10;

/// How a command is told to another worker.
pub(super) enum Forwarded<'c> {
    /// As it came.
    Whole(&'c [u8]),
    /// One key of a line of keys, as a line of its own.
    Key {
        key: &'c [u8],
        with_cas: bool,
        exptime: Option<i32>,
        last: bool,
    },
    /// Not at all: its connection has to move.
    Unfit,
}

impl<'c> Forwarded<'c> {
    /// `command`, which came as `bytes`; these are all of it if it `is_whole`.
    pub fn text(command: &server::Command<'c>, bytes: &'c [u8], is_whole: bool) -> Self {
        use server::Command;
        match command {
            &Command::Get {
                key,
                with_cas,
                last,
            } => Self::key(key, with_cas, None, last),
            &Command::GetAndTouch {
                key,
                exptime,
                with_cas,
                last,
            } => Self::key(key, with_cas, Some(exptime), last),
            // What is too large is skipped by this connection's parser.
            Command::TooLarge { .. } => Self::Unfit,
            command if command.key().is_none() => Self::Unfit,
            _ => Self::whole(bytes, is_whole),
        }
    }

    pub fn binary(command: &binary::Command<'_>, bytes: &'c [u8], is_whole: bool) -> Self {
        match command {
            binary::Command::TooLarge { .. } => Self::Unfit,
            command if command.key().is_none() => Self::Unfit,
            _ => Self::whole(bytes, is_whole),
        }
    }

    /// A read of one key.
    pub fn key(key: &'c [u8], with_cas: bool, exptime: Option<i32>, last: bool) -> Self {
        match key {
            [] => Self::Unfit,
            _ => Self::Key {
                key,
                with_cas,
                exptime,
                last,
            },
        }
    }

    fn whole(bytes: &'c [u8], is_whole: bool) -> Self {
        match is_whole && bytes.len() <= COMMAND_BYTES_MAX {
            true => Self::Whole(bytes),
            false => Self::Unfit,
        }
    }

    /// Append the bytes that say it.
    fn write(&self, to: &mut Vec<u8>) {
        match *self {
            Self::Whole(bytes) => to.extend_from_slice(bytes),
            Self::Key {
                key,
                with_cas,
                exptime,
                ..
            } => {
                let verb: &[u8] = match (exptime, with_cas) {
                    (None, false) => b"get ",
                    (None, true) => b"gets ",
                    (Some(_), false) => b"gat ",
                    (Some(_), true) => b"gats ",
                };
                to.extend_from_slice(verb);
                if let Some(exptime) = exptime {
                    // Writing to a vector cannot fail.
                    _ = write!(to, "{exptime} ");
                }
                to.extend_from_slice(key);
                to.extend_from_slice(b"\r\n");
            }
            Self::Unfit => {}
        }
    }
}

impl Batch {
    /// Carry out the commands, at the worker that owns their keys.
    pub fn carry_out<S: Storage>(&mut self, tools: &mut Tools<'_, S>) {
        let mut session = Session::new(tools.context.state, true);
        session.protocol = match self.is_binary {
            true => Protocol::Binary(binary::Parser::new(limits(tools.context.state))),
            false => Protocol::Text,
        };
        std::mem::swap(tools.out, &mut self.replies);
        let mut outlet = Collecting {
            reply_ends: &mut self.reply_ends,
            reply_bytes_max: tools.lanes.limits.reply_bytes,
        };
        (self.done_bytes, _) = session.run(&self.requests, &mut outlet, tools);
        std::mem::swap(tools.out, &mut self.replies);
    }
}

/// Keeps replies where they are, and notes where each ends.
struct Collecting<'b> {
    reply_ends: &'b mut Vec<usize>,
    reply_bytes_max: usize,
}

impl Outlet for Collecting<'_> {
    const IS_FORWARDED: bool = true;

    /// They stay.
    fn send(&mut self, _: &mut Vec<u8>, _: &Counters) -> Status {
        Status::Writing
    }

    fn replied(&mut self, replies: &[u8]) -> bool {
        self.reply_ends.push(replies.len());
        replies.len() >= self.reply_bytes_max
    }
}

impl Awaited {
    /// Where a read must be carried out that any worker may be able to: behind what its connection sent to the owner of
    /// its key before.
    pub(super) fn owner_of<S: Storage>(&self, key: Option<Key<'_>>, storage: &S) -> Option<After> {
        let owner = storage.other_worker(key?)?;
        self.is_at(owner).then_some(After::OtherWorker(owner))
    }
}

impl Session {
    /// Whether other workers carry something out for it.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.awaited.is_some()
    }

    /// Bytes that it holds of replies that wait for others.
    #[cfg(feature = "harness")]
    pub fn awaited_bytes(&self) -> usize {
        self.awaited.as_ref().map_or(0, |awaited| awaited.bytes())
    }

    /// Where a command must not be carried out here and now that could be if nothing were under way: one that all workers
    /// have their part in, or a read behind a write.
    #[cold]
    pub(super) fn behind_others<S: Storage>(
        &self,
        command: Option<&server::Command<'_>>,
        key: Key<'_>,
        context: &Context<'_, S>,
    ) -> Option<After> {
        use server::Command;
        match command {
            Some(Command::Flush { .. } | Command::Stats { .. }) => {
                Some(After::OtherWorker(context.worker))
            }
            Some(command) if command.key().is_none() => None,
            _ => self.awaited.as_ref()?.owner_of(Some(key), context.storage),
        }
    }

    /// Have `owner` carry out a command, whose reply takes its place among the others. False where that cannot be, or
    /// not before others have come back.
    pub(super) fn forward<S>(
        &mut self,
        owner: usize,
        command: Forwarded<'_>,
        outlet: &impl Outlet,
        (context, lanes, replies): (&Context<'_, S>, &mut Lanes, &[u8]),
    ) -> bool {
        let Some(address) = outlet.address() else {
            return false;
        };
        let is_full = |one: &Awaited| one.is_full(&lanes.limits);
        if matches!(command, Forwarded::Unfit) || self.awaited.as_deref().is_some_and(is_full) {
            return false;
        }
        let way = (context.worker, owner, self.is_binary());
        let Some(bytes) = lanes.push(way, address, |requests| command.write(requests)) else {
            return false;
        };
        let awaited = self.awaited.get_or_insert_with(|| lanes.awaited());
        let is_part = matches!(command, Forwarded::Key { last: false, .. });
        awaited.push(owner, bytes, replies, is_part);
        context.counters.add(Count::Forwards, 1);
        true
    }

    /// The next command, behind the first `consumed` bytes, is for `worker`, and could not be sent there: go there with
    /// it, once nothing is under way.
    #[cold]
    pub(super) fn stop_before<S>(
        &mut self,
        worker: usize,
        consumed: usize,
        outlet: &mut impl Outlet,
        (context, replies): (&mut Context<'_, S>, &mut Vec<u8>),
    ) -> (usize, Status) {
        if !self.is_waiting() {
            return self.move_to(worker, consumed, outlet, (context, replies));
        }
        self.wanted = 0;
        (consumed, self.wait(replies, context.counters))
    }

    /// Keep this worker's replies until those before them are there.
    pub(super) fn wait(&mut self, replies: &mut Vec<u8>, counters: &Counters) -> Status {
        let Some(awaited) = &mut self.awaited else {
            return Status::Reading;
        };
        match awaited.add(replies, counters) {
            Ok(()) => Status::Waiting,
            Err(Spent) => {
                replies.clear();
                counters.add(Count::RepliesOutOfMemory, 1);
                Status::Ended
            }
        }
    }

    /// Another worker replied.
    pub fn take_back(&mut self, returned: &Returned<'_>, counters: &Counters) -> Result<(), Spent> {
        match &mut self.awaited {
            Some(awaited) => awaited.take(returned, counters),
            None => Ok(()),
        }
    }

    /// Send replies of other workers, once they are there, and what waited behind them.
    pub fn go_on<S: Storage>(
        &mut self,
        outlet: &mut impl Outlet,
        tools: &mut Tools<'_, S>,
    ) -> Status {
        let is_binary = self.is_binary();
        let Some(awaited) = &mut self.awaited else {
            return Status::Reading;
        };
        let counters = tools.context.counters;
        let (is_under_way, is_undone) = (awaited.is_under_way(), awaited.is_undone());
        if is_under_way && !is_undone {
            // One system call sends them all.
            return Status::Waiting;
        }
        awaited.send(tools.out);
        if !is_undone {
            awaited.clear(counters);
            if let Some(awaited) = self.awaited.take() {
                tools.lanes.recycle(awaited);
            }
            return self.finish(0, outlet, tools).1;
        }
        awaited.release(counters);
        let status = outlet.send(tools.out, counters);
        if status != Status::Reading {
            return status;
        }
        if let Some(address) = outlet.address() {
            let (home, lanes) = (tools.context.worker, &mut *tools.lanes);
            awaited.try_again(|owner, undone| {
                lanes.push_again((home, owner, is_binary), address, undone);
            });
        }
        Status::Waiting
    }

    fn is_binary(&self) -> bool {
        matches!(self.protocol, Protocol::Binary(_))
    }
}
