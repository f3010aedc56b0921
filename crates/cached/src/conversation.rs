use crate::counters::{Count, Counters};
use crate::execute::{After, Context, Tour, execute};
use crate::options::Protocols;
use crate::report::Report;
use crate::storage::Storage;
use crate::watch::Watcher;
use arrayvec::ArrayVec;
use mica::Key;
use net::Interest;
use wire::memcached::binary;
use wire::memcached::server::{
    Checkpoint, Command, DUMP_SHARES, KeyRoom, Limits, Parser, Request, Step, StoreMode, reply,
};

/// Answers are sent once there are this many bytes of them, and no more are made while the client does not read.
/// So a connection holds at most this and one value of unsent answers.
const SEND_BYTES: usize = 64 << 10;

/// Commands that are looked at together, so that memory fetches what they need at the same time.
pub(crate) const BURST: usize = 32;

/// What one client says and is answered, whatever carries it.
pub(crate) struct Conversation {
    protocol: Protocol,
    parser: Parser,
    /// There is no command before this many bytes are there.
    wanted: usize,
    /// Nothing more is carried out for this client.
    is_over: bool,
    /// Whether it gave a password, where one must be given.
    is_admitted: bool,
    /// Its command that goes from worker to worker.
    tour: Option<Box<Tour>>,
}

/// What a client speaks, which its first byte tells, until it asks to watch.
enum Protocol {
    Unknown,
    Text,
    Binary(binary::Parser),
    /// Nothing more: it is told what happens, and where its lines come from.
    Watch(Watcher),
}

/// Where answers go.
pub(crate) trait Outlet {
    /// Take `answers`, all of them, and leave none. Unless it is [`Status::Reading`], no more are to be made for now.
    fn send(&mut self, answers: &mut Vec<u8>, counters: &Counters) -> Status;

    /// The descriptor of the connection that they go to, if that is one.
    fn descriptor(&self) -> Option<i32> {
        None
    }

    /// Whether it takes values from where they lie.
    fn takes_values(&self) -> bool {
        false
    }

    /// As [`send`](Self::send), with `value` and `end` behind the answers.
    fn send_value(
        &mut self,
        answers: &mut Vec<u8>,
        value: &[u8],
        end: &[u8],
        counters: &Counters,
    ) -> Status {
        answers.extend_from_slice(value);
        answers.extend_from_slice(end);
        self.send(answers, counters)
    }

    /// Whether a conversation that waits for it to take more, although it took all, is gone on with once others had
    /// their turn.
    fn takes_turns(&self) -> bool {
        false
    }
}

/// What a conversation waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// The client's next bytes.
    Reading,
    /// The client to take answers.
    Writing,
    /// Nothing: it has ended.
    Ended,
    /// This worker, which the next command is for.
    Elsewhere(usize),
}

impl Status {
    /// What the poller must watch for from now on, if that is not `interest`, which becomes it.
    #[inline]
    pub fn changed_interest(self, interest: &mut Interest) -> Option<Interest> {
        let wanted = match self {
            Self::Reading => Interest::READ,
            Self::Writing => Interest::WRITE,
            Self::Ended | Self::Elsewhere(_) => return None,
        };
        (wanted != *interest).then(|| {
            *interest = wanted;
            wanted
        })
    }
}

/// What a worker lends to the conversation at work.
pub(crate) struct Tools<'w, S> {
    pub context: Context<'w, S>,
    /// For what is received, [`SCRATCH_BYTES`](crate::connection::SCRATCH_BYTES).
    pub scratch: &'w mut [u8],
    /// For answers; empty between conversations.
    pub out: &'w mut Vec<u8>,
    /// For binary keys.
    pub rooms: &'w mut [KeyRoom; BURST],
}

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

impl Conversation {
    /// With a client that said nothing yet.
    pub fn new(report: &Report) -> Self {
        let is_admitted = report.accounts().is_none();
        Self {
            protocol: match report.options().protocols {
                Protocols::Any => Protocol::Unknown,
                Protocols::Text => Protocol::Text,
                Protocols::Binary => Protocol::Binary(binary::Parser::new(limits(report))),
            },
            parser: Parser::new(if is_admitted {
                limits(report)
            } else {
                STRANGER_LIMITS
            }),
            wanted: 0,
            is_over: false,
            is_admitted,
            tour: None,
        }
    }

    /// Whether it is told what happens, and may be silent for ever.
    pub fn is_watching(&self) -> bool {
        matches!(self.protocol, Protocol::Watch(_))
    }

    /// There is no command before this many bytes are there.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Whether it goes on without another byte, once there is room for answers.
    pub fn has_more(&self) -> bool {
        self.parser.has_more()
    }

    /// Whether it ends once the answers are sent.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Carry out the commands in `bytes` and send the answers. Returns how many bytes are done with.
    pub fn work<S: Storage>(
        &mut self,
        bytes: &[u8],
        outlet: &mut impl Outlet,
        tools: &mut Tools<'_, S>,
    ) -> (usize, Status) {
        if matches!(self.protocol, Protocol::Unknown) && !bytes.is_empty() {
            self.protocol = if bytes[0] == binary::MAGIC {
                Protocol::Binary(binary::Parser::new(self.parser.limits()))
            } else {
                Protocol::Text
            };
        }
        tools.context.tour = self.tour.take();
        tools.context.client = outlet.descriptor();
        if !self.is_admitted {
            let (consumed, status) = self.ask_for_password(bytes, outlet, tools);
            if !self.is_admitted || status != Status::Reading {
                return (consumed, status);
            }
            let (more, status) = self.work_on_text(&bytes[consumed..], outlet, tools);
            return (consumed + more, status);
        }
        match &self.protocol {
            Protocol::Watch(watcher) => {
                watcher.take(tools.out);
                self.finish(bytes.len(), outlet, tools)
            }
            Protocol::Binary(_) => self.work_on_binary(bytes, outlet, tools),
            Protocol::Text | Protocol::Unknown => self.work_on_text(bytes, outlet, tools),
        }
    }

    /// Until a `set` brings a name and a password, there is nothing else (memcached's `doc/protocol.txt`,
    /// "Authentication").
    fn ask_for_password<S: Storage>(
        &mut self,
        bytes: &[u8],
        outlet: &mut impl Outlet,
        tools: &mut Tools<'_, S>,
    ) -> (usize, Status) {
        let report = tools.context.report;
        let mut at = 0;
        while !self.is_admitted && !self.is_over {
            let (consumed, step) = self.parser.next(&bytes[at..], &mut tools.rooms[0]);
            at += consumed;
            let request = match step {
                Step::Incomplete(wanted) => {
                    self.wanted = wanted;
                    break;
                }
                Step::Request(request) => request,
            };
            self.wanted = 0;
            let answer: &[u8] = match request.command {
                Command::Store {
                    mode: StoreMode::Set,
                    value,
                    ..
                } => {
                    tools.context.counters.add(Count::Authentications, 1);
                    if report.accounts().is_none_or(|known| known.admit(value)) {
                        self.is_admitted = true;
                        self.parser = Parser::new(limits(report));
                        b"STORED"
                    } else {
                        tools.context.counters.add(Count::AuthenticationFailures, 1);
                        b"CLIENT_ERROR authentication failure"
                    }
                }
                Command::TooLarge { .. } => b"CLIENT_ERROR auth token too long",
                Command::Quit | Command::Hopeless(_) => {
                    self.is_over = true;
                    break;
                }
                _ => {
                    self.parser.abandon_line();
                    b"CLIENT_ERROR unauthenticated"
                }
            };
            reply::line(tools.out, answer);
        }
        self.finish(at, outlet, tools)
    }

    fn work_on_binary<S: Storage>(
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
            match step {
                binary::Step::Incomplete(wanted) => {
                    self.wanted = wanted;
                    break;
                }
                binary::Step::Request(request) => {
                    self.wanted = 0;
                    let key = tools
                        .context
                        .storage
                        .key(request.command.key().unwrap_or_default());
                    let after =
                        crate::binary::execute(&request, key, &mut tools.context, tools.out);
                    match after {
                        // There is no `watch` here.
                        After::Continue | After::Watch => tools.context.counters.note_key(key),
                        After::Close => {
                            self.is_over = true;
                            break;
                        }
                        After::Elsewhere(worker) => {
                            (at, *parser) = before;
                            return self.leave(at, worker, outlet, (&mut tools.context, tools.out));
                        }
                    }
                }
            }
            if let Some(status) = send_many(outlet, tools.out, tools.context.counters) {
                return (at, status);
            }
        }
        self.finish(at, outlet, tools)
    }

    /// Go on at another worker with what is behind the first `at` bytes.
    #[cold]
    fn leave<S>(
        &mut self,
        at: usize,
        worker: usize,
        outlet: &mut impl Outlet,
        (context, answers): (&mut Context<'_, S>, &mut Vec<u8>),
    ) -> (usize, Status) {
        self.wanted = 0;
        self.tour = context.tour.take();
        match outlet.send(answers, context.counters) {
            Status::Ended => (at, Status::Ended),
            // Answers that the client does not take yet go along.
            _ => (at, Status::Elsewhere(worker)),
        }
    }

    /// Send what was answered to the first `at` bytes.
    fn finish<S>(
        &mut self,
        at: usize,
        outlet: &mut impl Outlet,
        tools: &mut Tools<'_, S>,
    ) -> (usize, Status) {
        match outlet.send(tools.out, tools.context.counters) {
            Status::Reading if self.is_over => (at, Status::Ended),
            status => (at, status),
        }
    }

    fn work_on_text<S: Storage>(
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
            for room in tools.rooms.iter_mut() {
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
                let (consumed, step) = self.parser.next(&bytes[parsed..], room);
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
                        && tools.context.storage.elsewhere(one.key).is_none() =>
                    {
                        sent = tools.context.get_to(one.key, tools.out, outlet);
                        After::Continue
                    }
                    None => tools.context.get(one.key, false, true, tools.out),
                    Some(other) => execute(&other.request, one.key, &mut tools.context, tools.out),
                };
                if let After::Elsewhere(worker) = after {
                    let before = number.checked_sub(1);
                    let before = before.map_or(start, |before| burst[before].after(&others));
                    self.parser.restore(before);
                    note_keys(&burst[..number], tools.context.counters);
                    return self.leave(at, worker, outlet, (&mut tools.context, tools.out));
                }
                at = one.end;
                if after == After::Watch {
                    if let Some(watcher) = tools.context.watcher.take() {
                        self.protocol = Protocol::Watch(watcher);
                    }
                    tools.context.has_watcher = true;
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
                // Those who ask for little need not wait for those who ask for all.
                let is_turn_over = was_long && outlet.takes_turns() && one.is_dump(&others);
                if let Some(status) = status.or(is_turn_over.then_some(Status::Writing)) {
                    note_keys(&burst[..=number], tools.context.counters);
                    // What was read ahead is read again.
                    self.parser.restore(one.after(&others));
                    self.wanted = 0;
                    return (at, status);
                }
            }
            note_keys(&burst, tools.context.counters);
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

/// Let keys count as used, where it is counted which are used most.
#[inline]
fn note_keys(burst: &[Pending<'_>], counters: &Counters) {
    if let Some(hot) = counters.hot_keys() {
        hot.note(burst.len(), |number| burst[number].key);
    }
}

/// Send the answers if there are many. Says what is waited for if that keeps more from being made.
fn send_many(
    outlet: &mut impl Outlet,
    answers: &mut Vec<u8>,
    counters: &Counters,
) -> Option<Status> {
    if answers.len() < SEND_BYTES {
        return None;
    }
    let status = outlet.send(answers, counters);
    (status != Status::Reading).then_some(status)
}

/// What a client may send at once before it gave a password.
const STRANGER_LIMITS: Limits = Limits {
    item_bytes_max: 2 << 10,
};

/// What is kept.
pub(crate) fn limits(report: &Report) -> Limits {
    Limits {
        item_bytes_max: report.item_bytes_max() - mica::HEADER_BYTES,
    }
}
