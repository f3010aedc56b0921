use super::awaited::Awaited;
use super::forward::Forwarded;
use super::{Outlet, Protocol, Session, Status, Tools};
use crate::engine::{After, Context, Storage, binary};
use mica::Key;
use wire::memcached::binary::Command;

impl Session {
    pub(super) fn run_binary<S: Storage>(
        &mut self,
        bytes: &[u8],
        outlet: &mut impl Outlet,
        tools: &mut Tools<'_, S>,
    ) -> (usize, Status) {
        let mut at = 0;
        while let Protocol::Binary(parser) = &mut self.protocol {
            let before = (at, parser.clone());
            let (consumed, step) = parser.next(&bytes[at..]);
            at += consumed;
            let Some(request) = step.request(&mut self.wanted) else {
                break;
            };
            let context = &mut tools.context;
            let key = context
                .storage
                .key(request.command.key().unwrap_or_default());
            let behind = match &self.awaited {
                Some(awaited) => behind_others(awaited, &request.command, key, context),
                None => None,
            };
            let after =
                behind.unwrap_or_else(|| binary::execute(&request, key, context, tools.out));
            match after {
                After::Continue => {}
                After::Close => {
                    self.is_over = true;
                    break;
                }
                After::OtherWorker(worker) => {
                    let (start, parser) = before;
                    let is_whole = parser.is_at_start();
                    let command = Forwarded::binary(&request.command, &bytes[start..at], is_whole);
                    let (lanes, replies) = (&mut *tools.lanes, &mut *tools.out);
                    if !self.forward(worker, command, outlet, (context, lanes, replies)) {
                        self.protocol = Protocol::Binary(parser);
                        return self.stop_before(worker, start, outlet, (context, replies));
                    }
                    continue;
                }
            }
            if outlet.replied(tools.out)
                && let Some(status) = self.send_many(outlet, tools.out, tools.context.counters)
            {
                return (at, status);
            }
        }
        self.finish(at, outlet, tools)
    }
}

/// As [`Session::behind_others`].
fn behind_others<S: Storage>(
    awaited: &Awaited,
    command: &Command<'_>,
    key: Key<'_>,
    context: &Context<'_, S>,
) -> Option<After> {
    match command {
        Command::Flush { .. } | Command::Stats { .. } => Some(After::OtherWorker(context.worker)),
        command => awaited.owner_of(command.key().map(|_| key), context.storage),
    }
}
