//! Requests out, replies in: what a worker does with one connection.
use crate::connection::{Connection, KeyUse, Request};
use crate::keys::{KeyKind, KeyTemplate};
use crate::operation::Operation;
use crate::protocol::{Answer, Command, Protocol, Step};
use crate::worker_phase::WorkerPhase;
use std::marker::PhantomData;

/// Different elements that a list is given, for each key.
const LIST_ELEMENTS: u64 = 1 << 32;
/// Different members of a sorted set, for each key: few, so that it stays small (Awasthi 2015, section 4.3.5).
const SORTED_SET_MEMBERS: u64 = 128;
/// Different members of a set, for each key: more, so that sets grow.
const SET_MEMBERS: u64 = 1 << 16;

/// Room for the words around a value in a reply.
const REPLY_SLACK_BYTES: usize = 128 << 10;

/// A connection failed, or its server misbehaved: what to tell the user.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Reading or writing failed.
    Io(std::io::Error),
    /// The server sent what no server should.
    Malformed(String),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// The part of a worker that lasts one phase.
pub(crate) struct Exchange<'a, P> {
    pub(crate) part: WorkerPhase<'a>,
    multiget: usize,
    /// The longest reply that is taken, in bytes.
    pub(crate) most_reply_bytes: usize,
    /// A get of one key, where keys are such that there can be a template.
    get_template: Option<KeyTemplate>,
    protocol: PhantomData<P>,
}

impl<'a, P: Protocol> Exchange<'a, P> {
    pub(crate) fn new(part: WorkerPhase<'a>, multiget: usize) -> Self {
        Self {
            multiget,
            most_reply_bytes: part.data.values.most() + REPLY_SLACK_BYTES,
            get_template: part.data.keys.template(|out, key| {
                P::push_get(out, 1);
                P::push_get_key(out, key, 1);
                P::push_get_end(out, 1);
            }),
            part,
            protocol: PhantomData,
        }
    }

    /// Draw an operation and add its (first) request to the one of `connections` that leads to the worker that the key
    /// belongs to: says which.
    #[inline]
    pub(crate) fn issue(
        &mut self,
        connections: &mut [Connection],
        intended: u64,
        now: u64,
    ) -> usize {
        let (operation, id) = self.part.draw();
        let (command, keys) = match operation {
            Operation::Read => (Command::Get, self.multiget),
            Operation::ReadModifyWrite => (Command::Get, 1),
            Operation::Update | Operation::Insert => (Command::Set, 1),
            Operation::Lpush => (Command::ListPush, 1),
            Operation::Lpop => (Command::ListPop, 1),
            Operation::Zadd => (Command::SortedSetAdd, 1),
            Operation::Zrange => (Command::SortedSetFirst, 1),
            Operation::Sadd => (Command::SetAdd, 1),
        };
        let members = connections.len();
        let member = self.part.owner(element(command).0, id, members);
        let connection = &mut connections[member];
        match command {
            Command::Get => self.push_get(connection, id, keys, (member, members)),
            Command::Set => self.push_set(connection, id),
            command => self.push_other(connection, command, id),
        }
        let request = Request {
            intended,
            sent: now,
            operation,
            command,
            // At most 1,024.
            keys: keys as u16,
        };
        connection.expect(request, now);
        self.part.outstanding += 1;
        member
    }

    /// Add a get of `first` and of more keys, all of which belong to the same of the server's workers.
    #[inline]
    fn push_get(
        &mut self,
        connection: &mut Connection,
        first: u64,
        keys: usize,
        (member, members): (usize, usize),
    ) {
        if keys == 1
            && let Some(request) = self.get_template.as_mut().and_then(|get| get.with(first))
        {
            connection.out.extend_from_slice(request);
            connection.keys.push_back(KeyUse {
                id: first,
                floor: 0,
            });
            return;
        }
        P::push_get(&mut connection.out, keys);
        for number in 0..keys {
            let mut id = if number == 0 {
                first
            } else {
                self.part.draw_id()
            };
            while number > 0 && self.part.owner(KeyKind::User, id, members) != member {
                id = self.part.draw_id();
            }
            let key = self.part.key(KeyKind::User, id);
            P::push_get_key(&mut connection.out, key, keys);
            connection.keys.push_back(KeyUse { id, floor: 0 });
        }
        P::push_get_end(&mut connection.out, keys);
    }

    #[inline]
    fn push_set(&mut self, connection: &mut Connection, id: u64) {
        let data = self.part.data;
        let version = data.begin_write(id);
        let key = self.part.key(KeyKind::User, id);
        let values = &data.values;
        let attributes = data.attributes;
        P::push_set(&mut connection.out, key, attributes, values.size(id));
        values.push(&mut connection.out, id, version);
        P::push_set_end(&mut connection.out, attributes);
        connection.keys.push_back(KeyUse { id, floor: 0 });
    }

    fn push_other(&mut self, connection: &mut Connection, command: Command, id: u64) {
        let (kind, variants) = element(command);
        let values = &self.part.data.values;
        let number = self.part.random.next();
        let key = self.part.key(kind, id);
        // The upper half makes a score, the lower half a version.
        P::push_command(
            &mut connection.out,
            command,
            key,
            (number >> 32) as u32,
            values.size(id),
        );
        if matches!(
            command,
            Command::ListPush | Command::SortedSetAdd | Command::SetAdd
        ) {
            values.push(&mut connection.out, id, number & (variants - 1));
            connection.out.extend_from_slice(b"\r\n");
        }
        connection.keys.push_back(KeyUse { id, floor: 0 });
    }

    /// Send what was added to `connection`.
    #[inline]
    pub(crate) fn send(&mut self, connection: &mut Connection) -> std::io::Result<()> {
        if let Some(ledger) = &self.part.data.ledger {
            // All at once, so that the cache misses of many keys overlap.
            for key in connection.take_unsent_keys() {
                key.floor = ledger.floor(key.id);
            }
        }
        let written = connection.flush()?;
        self.part.statistics.bytes_sent.add(written as u64);
        Ok(())
    }

    /// Take all replies in `input`, received at `now`: how many bytes they took, and how many the next one needs.
    #[inline]
    pub(crate) fn take_replies(
        &mut self,
        connection: &mut Connection,
        input: &[u8],
        now: u64,
    ) -> Result<(usize, usize), Failure> {
        let mut used = 0;
        while used < input.len() {
            let Some(&request) = connection.requests.front() else {
                let excess = &input[used..input.len().min(used + 60)];
                return Err(Failure::Malformed(format!(
                    "bytes that belong to no request: \"{}\"",
                    excess.escape_ascii()
                )));
            };
            let keys = usize::from(request.keys);
            let step = P::step(
                &input[used..],
                request.command,
                keys,
                &mut connection.elements,
            );
            match step.map_err(Failure::Malformed)? {
                Step::Answer(answer, length) => {
                    used += length;
                    self.take_answer(connection, &request, &answer, now);
                }
                Step::Partial(needed) if needed > self.most_reply_bytes => {
                    return Err(Failure::Malformed(format!(
                        "a reply of {needed} bytes, where the longest value has {}",
                        self.part.data.values.most()
                    )));
                }
                Step::Partial(needed) => return Ok((used, needed)),
            }
        }
        Ok((used, 0))
    }

    #[inline]
    fn take_answer(
        &mut self,
        connection: &mut Connection,
        request: &Request,
        answer: &Answer<'_>,
        now: u64,
    ) {
        let statistics = &self.part.statistics.operations[request.operation as usize];
        let last = match *answer {
            Answer::Continues => false,
            Answer::Done => {
                let rest = usize::from(request.keys).saturating_sub(connection.answered);
                if request.command == Command::Get && !connection.refused {
                    statistics.misses.add(rest as u64);
                }
                true
            }
            Answer::Miss { last } => {
                statistics.misses.add(1);
                connection.answered += 1;
                last
            }
            Answer::Hit {
                key,
                flags,
                value,
                last,
            } => {
                self.take_hit(connection, request, key, (flags, value));
                last
            }
            Answer::Refused { message, last } => {
                connection.refused = true;
                self.part.phase.first_error.offer(|| {
                    let message = String::from_utf8_lossy(message);
                    format!("{} was answered with \"{message}\"", request.operation)
                });
                last
            }
        };
        if last {
            self.complete(connection, request, now);
        }
    }

    #[inline]
    fn take_hit(
        &mut self,
        connection: &mut Connection,
        request: &Request,
        key: Option<&[u8]>,
        (flags, value): (Option<u32>, &[u8]),
    ) {
        let statistics = &self.part.statistics.operations[request.operation as usize];
        statistics.hits.add(1);
        let Some(skipped) = self.find_key(connection, request, key) else {
            let text = String::from_utf8_lossy(key.unwrap_or_default()).into_owned();
            self.part.note_wrong(format!(
                "{} was answered with key {text:?}, which was not asked for",
                request.operation
            ));
            return;
        };
        statistics.misses.add(skipped as u64);
        let KeyUse { id, floor } = connection.keys[connection.answered + skipped];
        connection.answered += skipped + 1;
        let checked = if request.command == Command::Get {
            self.part.data.check_value((id, floor), flags, value)
        } else {
            let (kind, variants) = element(request.command);
            self.part.data.check_element(kind, id, variants, value)
        };
        self.part.note_check(checked);
    }

    /// How many keys of the request were left out before the one that is answered now; `None` when the answer is to
    /// none of them.
    #[inline]
    fn find_key(
        &mut self,
        connection: &Connection,
        request: &Request,
        key: Option<&[u8]>,
    ) -> Option<usize> {
        let left = usize::from(request.keys).checked_sub(connection.answered)?;
        match key {
            Some(found) if self.part.data.ledger.is_some() => (0..left).find(|skipped| {
                let id = connection.keys[connection.answered + skipped].id;
                self.part.key(KeyKind::User, id) == found
            }),
            _ => (left > 0).then_some(0),
        }
    }

    /// The reply to the first request of `connection` has ended.
    #[inline]
    fn complete(&mut self, connection: &mut Connection, request: &Request, now: u64) {
        let refused = connection.refused;
        let first = connection.keys.front().map_or(0, |key| key.id);
        connection.finish_request();
        if request.command == Command::Set {
            self.part.end_write(request.operation, first, refused);
        }
        if request.operation == Operation::ReadModifyWrite
            && request.command == Command::Get
            && !refused
        {
            self.push_set(connection, first);
            let write = Request {
                command: Command::Set,
                ..*request
            };
            connection.expect(write, now);
            return;
        }
        self.part.complete(
            request.operation,
            refused,
            (request.intended, request.sent, now),
        );
    }
}

/// The kind of key that a command on a data structure takes, and how many different elements it may give it.
fn element(command: Command) -> (KeyKind, u64) {
    match command {
        Command::ListPush | Command::ListPop => (KeyKind::List, LIST_ELEMENTS),
        Command::SortedSetAdd | Command::SortedSetFirst => (KeyKind::SortedSet, SORTED_SET_MEMBERS),
        Command::SetAdd => (KeyKind::Set, SET_MEMBERS),
        Command::Get | Command::Set => (KeyKind::User, u64::MAX),
    }
}
