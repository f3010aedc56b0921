use super::{BURST, Outlet, Protocol, SEND_BYTES, Session, Status, Tools, send_many};
use crate::engine::execute::execute;
use crate::engine::{After, Counters, Storage};
use arrayvec::ArrayVec;
use mica::Key;
use wire::memcached::server::{Checkpoint, Command, DUMP_SHARES, Request, Step};

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
    /// Whether it is a part of all items.
    fn is_dump(&self, others: &[Other<'_>]) -> bool {
        self.other.is_some_and(|other| {
            let command = &others[usize::from(other)].request.command;
            matches!(command, Command::Dump { share, .. } if share + 1 < DUMP_SHARES)
        })
    }

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
                match step {
                    Step::Incomplete(wanted) => {
                        self.wanted = wanted;
                        is_all = true;
                        break;
                    }
                    Step::Request(request) => {
                        let key = storage.key(request.command.key().unwrap_or_default());
                        storage.prefetch_bucket(key);
                        self.wanted = 0;
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
                }
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
                    sample_keys(&burst[..number], tools.context.counters);
                    return self.move_to(worker, at, outlet, (&mut tools.context, tools.out));
                }
                at = one.end;
                if after == After::Watch {
                    if let Some(subscription) = tools.context.subscription.take() {
                        self.protocol = Protocol::Watch(subscription);
                    }
                    tools.began_watching = true;
                    // What was sent behind it is not looked at.
                    at = bytes.len();
                    self.wanted = 0;
                    break;
                }
                if after == After::Close {
                    self.is_over = true;
                    break;
                }
                let was_long = tools.out.len() >= SEND_BYTES;
                let status = match sent {
                    Some(Status::Reading) => None,
                    Some(_) => sent,
                    None => send_many(outlet, tools.out, tools.context.counters),
                };
                // Clients that ask for little need not wait for one that asks for all.
                let is_turn_over = was_long && outlet.takes_turns() && one.is_dump(&others);
                if let Some(status) = status.or(is_turn_over.then_some(Status::Writing)) {
                    sample_keys(&burst[..=number], tools.context.counters);
                    // What was read ahead is read again.
                    self.parser.restore(one.after(&others));
                    self.wanted = 0;
                    return (at, status);
                }
            }
            sample_keys(&burst, tools.context.counters);
            if self.is_over || self.is_watching() {
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

/// Count the keys of commands as used, where it is counted which are used most.
#[inline]
fn sample_keys(burst: &[Pending<'_>], counters: &Counters) {
    counters.sample_keys(burst.len(), |number| burst[number].key);
}
