use super::{Outlet, Protocol, Session, Status, Tools, send_many};
use crate::engine::{After, Storage, binary};

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
            match binary::execute(&request, key, context, tools.out) {
                After::Continue => {}
                After::Close => {
                    self.is_over = true;
                    break;
                }
                After::OtherWorker(worker) => {
                    (at, *parser) = before;
                    return self.move_to(worker, at, outlet, (context, tools.out));
                }
            }
            if let Some(status) = send_many(outlet, tools.out, tools.context.counters) {
                return (at, status);
            }
        }
        self.finish(at, outlet, tools)
    }
}
