use super::forward::Forwarded;
use super::{BURST, Outlet, Session, Status, Tools};
use crate::engine::execute::execute;
use crate::engine::{After, Storage};
use arrayvec::ArrayVec;
use mica::Key;
use wire::memcached::server::{Checkpoint, Command, Request};

/// A command that was read and not yet carried out. Most are reads of one key, which are kept short: moving what
/// holds any command takes longer than such a read.
struct Pending<'a> {
    key: Key<'a>,
    /// Where it ends.
    end: usize,
    /// Where it is among the [`Other`]s of its burst.
    other: Option<u8>,
    /// The worker that must carry it out, if that is known to be another one.
    worker: u16,
    /// Bytes of keys behind it in the line of a read.
    left: usize,
}

/// This worker, or whichever finds that it may.
const HERE: u16 = u16::MAX;

/// A command that is not a read of one key.
struct Other<'a> {
    request: Request<'a>,
    /// Where the parser was when it ended.
    after: Checkpoint,
}

impl Pending<'_> {
    /// Where the parser was when it ended.
    fn after(&self, others: &[Other<'_>]) -> Checkpoint {
        match self.other {
            Some(other) => others[usize::from(other)].after,
            None => Checkpoint::plain(self.left),
        }
    }
}

/// For [`Pending::worker`].
#[inline]
fn elsewhere<S: Storage>(storage: &S, key: Key<'_>) -> u16 {
    storage
        .other_worker(key)
        .map_or(HERE, |worker| worker as u16)
}

impl Session {
    pub(super) fn run_text<S: Storage, O: Outlet>(
        &mut self,
        bytes: &[u8],
        outlet: &mut O,
        tools: &mut Tools<'_, S>,
    ) -> (usize, Status) {
        // Where all keys are this worker's, nothing is asked of any of them.
        match !O::IS_FORWARDED && tools.context.storage.parts() > 1 {
            true => self.run_bursts::<S, O, true>(bytes, outlet, tools),
            false => self.run_bursts::<S, O, false>(bytes, outlet, tools),
        }
    }

    #[inline]
    fn run_bursts<S: Storage, O: Outlet, const IS_DIVIDED: bool>(
        &mut self,
        bytes: &[u8],
        outlet: &mut O,
        tools: &mut Tools<'_, S>,
    ) -> (usize, Status) {
        let mut at = 0;
        loop {
            let mut is_all = false;
            let mut parsed = at;
            let start = self.parser.checkpoint();
            let mut burst = ArrayVec::<Pending<'_>, BURST>::new();
            let mut others = ArrayVec::<Other<'_>, BURST>::new();
            for buffer in tools.key_buffers.iter_mut() {
                let storage = &*tools.context.storage;
                if let Some(get) = self.parser.plain_get(&bytes[parsed..]) {
                    parsed += get.consumed;
                    self.wanted = 0;
                    let key = storage.key(get.key);
                    // Where other workers write to what they own, they alone read it.
                    let worker = match IS_DIVIDED && S::IS_ALONE {
                        true => elsewhere(storage, key),
                        false => HERE,
                    };
                    if !IS_DIVIDED || worker == HERE {
                        storage.prefetch_bucket(key);
                    }
                    burst.push(Pending {
                        key,
                        end: parsed,
                        other: None,
                        worker,
                        left: get.left,
                    });
                    continue;
                }
                let (consumed, step) = self.parser.next(&bytes[parsed..], buffer);
                parsed += consumed;
                let Some(request) = step.request(&mut self.wanted) else {
                    is_all = true;
                    break;
                };
                let key = request.command.key();
                let is_owners = match request.command {
                    Command::Get { .. } => S::IS_ALONE,
                    _ => key.is_some(),
                };
                let key = storage.key(key.unwrap_or_default());
                let worker = match IS_DIVIDED && is_owners {
                    true => elsewhere(storage, key),
                    false => HERE,
                };
                if !IS_DIVIDED || worker == HERE {
                    storage.prefetch_bucket(key);
                }
                burst.push(Pending {
                    key,
                    end: parsed,
                    other: Some(others.len() as u8),
                    worker,
                    left: 0,
                });
                others.push(Other {
                    request,
                    after: self.parser.checkpoint(),
                });
            }
            if burst.len() > 1 {
                let own = burst.iter().filter(|one| !IS_DIVIDED || one.worker == HERE);
                tools.context.storage.prefetch_items(own.map(|one| one.key));
            }
            for (number, one) in burst.iter().enumerate() {
                let mut sent = None;
                let other = one.other.map(|other| &others[usize::from(other)]);
                let after = match other {
                    _ if IS_DIVIDED && one.worker != HERE => After::OtherWorker(one.worker.into()),
                    _ if IS_DIVIDED
                        && self.is_waiting()
                        && let Some(after) = self.behind_others(
                            other.map(|other| &other.request.command),
                            one.key,
                            &tools.context,
                        ) =>
                    {
                        after
                    }
                    None if S::IS_ALONE && one.left == 0 => {
                        let counters = tools.context.counters;
                        let is_direct = outlet.takes_values() && !(IS_DIVIDED && self.is_waiting());
                        let send = |front: &mut Vec<u8>, value: &[u8], end: &[u8]| {
                            if is_direct {
                                sent = Some(outlet.send_value(front, value, end, counters));
                            } else {
                                front.extend_from_slice(value);
                                front.extend_from_slice(end);
                            }
                        };
                        tools.context.get_in_place(one.key, tools.out, send);
                        After::Continue
                    }
                    None => tools.context.get(one.key, false, one.left == 0, tools.out),
                    Some(other) => execute(&other.request, one.key, &mut tools.context, tools.out),
                };
                if let After::OtherWorker(worker) = after {
                    let before = number.checked_sub(1);
                    let before = before.map_or(start, |before| burst[before].after(&others));
                    let command = match other {
                        None => Forwarded::key(one.key.bytes(), false, None, one.left == 0),
                        Some(other) => {
                            let (bytes, is_whole) = (&bytes[at..one.end], before.is_line_start());
                            Forwarded::text(&other.request.command, bytes, is_whole)
                        }
                    };
                    let (lanes, replies) = (&mut *tools.lanes, &mut *tools.out);
                    if !self.forward(worker, command, outlet, (&tools.context, lanes, replies)) {
                        self.parser.restore(before);
                        return self.stop_before(worker, at, outlet, (&mut tools.context, replies));
                    }
                    at = one.end;
                    continue;
                }
                at = one.end;
                if after == After::Close {
                    self.is_over = true;
                    break;
                }
                let status = match sent {
                    Some(Status::Reading) => None,
                    Some(_) => sent,
                    None if outlet.replied(tools.out) => {
                        self.send_many(outlet, tools.out, tools.context.counters)
                    }
                    None => None,
                };
                if let Some(status) = status {
                    // What was read ahead is read again.
                    self.parser.restore(one.after(&others));
                    self.wanted = 0;
                    return (at, status);
                }
            }
            if self.is_over {
                break;
            }
            if is_all {
                at = parsed;
                break;
            }
        }
        self.finish(at, outlet, tools)
    }
}
