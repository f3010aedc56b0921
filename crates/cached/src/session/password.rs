use super::{Outlet, Session, Status, Tools, limits};
use crate::engine::{Count, Storage};
use wire::memcached::server::reply::line;
use wire::memcached::server::{Command, Parser, StoreMode};

impl Session {
    /// Until a `set` brings a name and a password, there is nothing else (memcached's `doc/protocol.txt`,
    /// "Authentication").
    pub(super) fn ask_for_password<S: Storage>(
        &mut self,
        bytes: &[u8],
        outlet: &mut impl Outlet,
        tools: &mut Tools<'_, S>,
    ) -> (usize, Status) {
        let mut at = 0;
        while !self.is_admitted && !self.is_over {
            let (consumed, step) = self.parser.next(&bytes[at..], &mut tools.key_buffers[0]);
            at += consumed;
            let Some(request) = step.request(&mut self.wanted) else {
                break;
            };
            let reply: &[u8] = match request.command {
                Command::Store {
                    mode: StoreMode::Set,
                    value,
                    ..
                } => {
                    tools.context.counters.add(Count::Authentications, 1);
                    if tools.accounts.is_none_or(|known| known.admit(value)) {
                        self.is_admitted = true;
                        self.parser = Parser::new(limits(tools.context.state));
                        b"STORED"
                    } else {
                        tools.context.counters.add(Count::AuthenticationFailures, 1);
                        b"CLIENT_ERROR authentication failure"
                    }
                }
                Command::TooLarge { .. } => b"CLIENT_ERROR auth token too long",
                Command::Quit | Command::Disconnect(_) => {
                    self.is_over = true;
                    break;
                }
                _ => {
                    self.parser.abandon_line();
                    b"CLIENT_ERROR unauthenticated"
                }
            };
            line(tools.out, reply);
        }
        self.finish(at, outlet, tools)
    }
}
