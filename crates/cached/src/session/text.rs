use super::{BURST, Outlet, Session, Status, Tools, send_many};
use crate::engine::execute::execute;
use crate::engine::{After, Storage};
use arrayvec::ArrayVec;
use mica::Key;
use wire::memcached::server::{Checkpoint, Request};

/// A command that was read and not yet carried out. Most are reads of one key, which are kept short: moving what
/// holds any command takes longer than such a read.
struct Pending<'a> {
    key: Key<'a>,
    /// Where it ends.
    end: usize,
    /// Where it is among the [`Other`]s of its burst.
    other: Option<u8>,
}

/// A command that is not a read of one key.
struct Other<'a> {
    request: Request<'a>,
    /// Where the parser was when it ended.
    after: Checkpoint,
}

impl Pending<'_> {
    /// Where the parser was when it ended.
    fn after(&self, others: &[Other<'_>]) -> Checkpoint {
        self.other.map_or_else(Checkpoint::default, |other| {
            others[usize::from(other)].after
        })
    }
}

impl Session {
    pub(super) fn run_text<S: Storage>(
        &mut self,
        bytes: &[u8],
        outlet: &mut impl Outlet,
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
                let storage = &tools.context.storage;
                if let Some((consumed, bytes)) = self.parser.plain_get(&bytes[parsed..]) {
                    parsed += consumed;
                    self.wanted = 0;
                    let key = storage.key(bytes);
                    storage.prefetch_bucket(key);
                    burst.push(Pending {
                        key,
                        end: parsed,
                        other: None,
                    });
                    continue;
                }
                let (consumed, step) = self.parser.next(&bytes[parsed..], buffer);
                parsed += consumed;
                let Some(request) = step.request(&mut self.wanted) else {
                    is_all = true;
                    break;
                };
                let key = storage.key(request.command.key().unwrap_or_default());
                storage.prefetch_bucket(key);
                burst.push(Pending {
                    key,
                    end: parsed,
                    other: Some(others.len() as u8),
                });
                others.push(Other {
                    request,
                    after: self.parser.checkpoint(),
                });
            }
            if burst.len() > 1 {
                for one in &burst {
                    tools.context.storage.prefetch_item(one.key);
                }
            }
            for (number, one) in burst.iter().enumerate() {
                let mut sent = None;
                let after = match one.other.map(|other| &others[usize::from(other)]) {
                    None if S::IS_ALONE
                        && outlet.takes_values()
                        && tools.context.storage.other_worker(one.key).is_none() =>
                    {
                        let counters = tools.context.counters;
                        let send = |front: &mut Vec<u8>, value: &[u8], end: &[u8]| {
                            sent = Some(outlet.send_value(front, value, end, counters));
                        };
                        tools.context.get_in_place(one.key, tools.out, send);
                        After::Continue
                    }
                    None => tools.context.get(one.key, false, true, tools.out),
                    Some(other) => execute(&other.request, one.key, &mut tools.context, tools.out),
                };
                if let After::OtherWorker(worker) = after {
                    let before = number.checked_sub(1);
                    let before = before.map_or(start, |before| burst[before].after(&others));
                    self.parser.restore(before);
                    return self.move_to(worker, at, outlet, (&mut tools.context, tools.out));
                }
                at = one.end;
                if after == After::Close {
                    self.is_over = true;
                    break;
                }
                let status = match sent {
                    Some(Status::Reading) => None,
                    Some(_) => sent,
                    None => send_many(outlet, tools.out, tools.context.counters),
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
