//! A worker's part of one phase.
use super::flow::{Flow, Link};
use super::window::{Sent, Window};
use crate::arrivals::{Arrivals, SPIN_BEFORE_ARRIVAL};
use crate::clock;
use crate::config::{ClientConfig, Protocol};
use crate::keys::KeyKind;
use crate::operation::Operation;
use crate::protocol::{self, Command, MemcachedText, Protocol as _};
use crate::worker::{WAKER_TOKEN, Worker};
use crate::worker_phase::WorkerPhase;
use net::Received;
use std::io;
use std::time::Duration;
use wire::batch::{self, parse_answer, push_request};
use wire::memcached::datagram::{FRAME_BYTES, Format, Frame};

/// What is not answered for so long is lost.
const LOST_AFTER: u64 = 1_000_000_000;
/// How often it is looked for what was lost.
const LOSS_CHECK: u64 = 20_000_000;
/// How long it is looked for answers before sleeping.
const SPIN_BEFORE_SLEEP: u64 = 50_000;
/// The longest sleep.
const SLEEP_MAX: Duration = Duration::from_millis(10);

/// Requests for a datagram.
struct Gathered {
    requests: Vec<Sent>,
    /// How long they are at most.
    bytes: usize,
}

/// A request that was drawn.
struct Next {
    operation: Operation,
    id: u64,
    /// When it is to be sent.
    intended: u64,
    /// The server's worker that it is for.
    owner: usize,
    /// How long it is at most.
    bytes: usize,
}

/// One phase of one worker.
pub(crate) struct Run<'a> {
    pub(super) part: WorkerPhase<'a>,
    format: Format,
    /// Requests of a datagram.
    batch: usize,
    /// Requests for each of the server's workers, to be sent once there are enough of them.
    gathered: Vec<Gathered>,
    /// Of a datagram, its frame left out.
    entries_bytes_max: usize,
    /// Of a request without its value.
    key_and_head_bytes_max: usize,
    /// Drawn, and not yet gathered.
    next: Option<Next>,
    /// The flow to try first.
    turn: usize,
    /// In an open loop.
    arrivals: Option<Arrivals>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(worker: &Worker, part: WorkerPhase<'a>, config: &ClientConfig) -> Self {
        let owners = worker.flows.iter().map(|flow| flow.owner + 1).max();
        let gathered = || Gathered {
            requests: Vec::with_capacity(config.batch),
            bytes: 0,
        };
        let links = worker.flows.iter().map(|flow| &flow.link);
        let datagram_bytes_max = links.map(Link::datagram_bytes_max).min();
        Self {
            format: match config.protocol {
                Protocol::Batch => Format::Batch,
                _ => Format::Text,
            },
            batch: config.batch,
            gathered: std::iter::repeat_with(gathered)
                .take(owners.unwrap_or(1))
                .collect(),
            entries_bytes_max: datagram_bytes_max.unwrap_or(0).saturating_sub(FRAME_BYTES),
            key_and_head_bytes_max: batch::SET_HEAD_BYTES + part.data.keys.most(),
            arrivals: Arrivals::of(part.phase, worker.index, config.seed),
            part,
            next: None,
            turn: 0,
        }
    }

    /// Do it.
    pub(crate) fn drive(&mut self, worker: &mut Worker) {
        // The first arrival of an open loop is waited for like all others.
        let before = self.arrivals.as_ref().map_or(0, |_| SPIN_BEFORE_ARRIVAL);
        self.part.wait_for_start(before);
        if let Err(error) = self.exchange(worker) {
            self.part
                .phase
                .fail(format!("cannot send or receive datagrams: {error}"));
        }
        self.part.end();
    }

    fn exchange(&mut self, worker: &mut Worker) -> io::Result<()> {
        let mut received = Received::default();
        let mut now = clock::now();
        let (mut quiet_since, mut next_check) = (now, now + LOSS_CHECK);
        let mut over_at = None;
        loop {
            let began = now;
            let all_drawn = self.part.quota == 0 && self.next.is_none();
            let is_over =
                self.part.phase.is_stopped() || now >= self.part.phase.deadline || all_drawn;
            if is_over {
                over_at = over_at.or(Some(now));
                self.flush(&mut worker.flows, now);
            } else {
                self.fill(&mut worker.flows, now);
            }
            let mut sent = 0;
            for flow in &mut worker.flows {
                sent += flow.send()?;
            }
            self.part.statistics.bytes_sent.add(sent);
            if is_over && self.part.outstanding == 0 && self.next.is_none() {
                if let (Some(arrivals), Some(end)) = (&mut self.arrivals, over_at) {
                    self.part.count_unsent(arrivals, end);
                }
                return Ok(());
            }
            let mut is_quiet = sent == 0;
            for number in 0..worker.flows.len() {
                let (before, rest) = worker.flows.split_at_mut(number);
                let Some((Flow { link, window, .. }, behind)) = rest.split_first_mut() else {
                    break;
                };
                let mut arrived = None;
                is_quiet &= !link.receive(number, &mut received, |to, datagram| {
                    let other = match to.checked_sub(number + 1) {
                        None if to == number => Some(&mut *window),
                        None => Some(&mut before[to].window),
                        Some(to) => behind.get_mut(to).map(|flow| &mut flow.window),
                    };
                    if let Some(window) = other {
                        let now = *arrived.get_or_insert_with(clock::now);
                        self.take(window, datagram, now);
                    }
                })?;
            }
            now = clock::now();
            if now >= next_check {
                next_check = now + LOSS_CHECK;
                self.give_up_lost(&mut worker.flows, now - LOST_AFTER);
            }
            if !is_quiet {
                quiet_since = now;
                continue;
            }
            let sleep = self.sleep(now);
            if now - quiet_since <= SPIN_BEFORE_SLEEP || sleep.is_zero() {
                self.part.statistics.idle.add(now - began);
            } else {
                self.part.statistics.idle_since.set(now);
                worker.poll(sleep)?;
                if worker
                    .events
                    .iter()
                    .any(|event| event.token() == WAKER_TOKEN)
                {
                    worker.waker.reset();
                }
                let woke = clock::now();
                self.part.statistics.idle.add(woke - began);
                self.part.statistics.idle_since.set(0);
                now = woke;
            }
        }
    }

    /// How long there is nothing to do, if nothing comes: not up to the next arrival, so that it is not sent late. One that
    /// found no room waits for an answer.
    fn sleep(&self, now: u64) -> Duration {
        let Some(arrivals) = &self.arrivals else {
            return SLEEP_MAX;
        };
        match arrivals.next().checked_sub(now) {
            Some(early) => {
                let asleep = early.saturating_sub(SPIN_BEFORE_ARRIVAL);
                Duration::from_nanos(asleep).min(SLEEP_MAX)
            }
            None => SLEEP_MAX,
        }
    }

    /// Draw requests as long as there is room for the datagrams that they make.
    pub(super) fn fill(&mut self, flows: &mut [Flow], now: u64) {
        for owner in 0..self.gathered.len() {
            if self.gathered[owner].requests.len() >= self.batch && !self.place(flows, owner, now) {
                return;
            }
        }
        while let Some(next) = self.next.take().or_else(|| self.draw_next(now)) {
            if !self.gather(flows, next, now) {
                return;
            }
        }
        if self.arrivals.is_some() {
            // What is due does not wait for what is not.
            self.place_all(flows, now);
        }
    }

    /// Nothing more will be drawn: send what was gathered.
    fn flush(&mut self, flows: &mut [Flow], now: u64) {
        if let Some(next) = self.next.take() {
            self.gather(flows, next, now);
        }
        self.place_all(flows, now);
    }

    /// Make datagrams of what was gathered, as far as there is room.
    fn place_all(&mut self, flows: &mut [Flow], now: u64) {
        for owner in 0..self.gathered.len() {
            if !self.gathered[owner].requests.is_empty() {
                self.place(flows, owner, now);
            }
        }
    }

    /// The next request, unless there were enough, or it is not due yet.
    fn draw_next(&mut self, now: u64) -> Option<Next> {
        let quota = self.part.quota.checked_sub(1)?;
        let mut intended = now;
        if let Some(arrivals) = &mut self.arrivals {
            intended = arrivals.next();
            if intended > now || intended >= self.part.phase.deadline {
                return None;
            }
            arrivals.advance();
        }
        self.part.quota = quota;
        let (operation, id) = self.part.draw();
        let owner = self.part.owner(KeyKind::User, id, self.gathered.len());
        let value_bytes = match operation {
            Operation::Read => 0,
            _ => self.part.data.values.size(id),
        };
        Some(Next {
            operation,
            id,
            intended,
            owner,
            bytes: self.key_and_head_bytes_max + value_bytes,
        })
    }

    /// Put a request to others for the same datagram, as far as that has room; false where it cannot be sent for now.
    fn gather(&mut self, flows: &mut [Flow], next: Next, now: u64) -> bool {
        let owner = next.owner;
        let Gathered { requests, bytes } = &self.gathered[owner];
        let has_room = requests.is_empty() || bytes + next.bytes <= self.entries_bytes_max;
        if !has_room && !self.place(flows, owner, now) {
            self.next = Some(next);
            return false;
        }
        let gathered = &mut self.gathered[owner];
        gathered.bytes += next.bytes;
        gathered.requests.push(Sent {
            operation: next.operation,
            id: next.id,
            intended: next.intended,
            floor: 0,
        });
        gathered.requests.len() < self.batch || self.place(flows, owner, now)
    }

    /// Make a datagram of what was gathered for `owner`; false where none of its flows has room.
    fn place(&mut self, flows: &mut [Flow], owner: usize, now: u64) -> bool {
        let count = flows.len();
        let mut turns = (0..count).map(|step| (self.turn + step) % count);
        let free = turns.find(|&turn| flows[turn].owner == owner && flows[turn].window.has_room());
        let Some(flow) = free.map(|turn| {
            self.turn = turn;
            &mut flows[turn]
        }) else {
            return false;
        };
        let Flow {
            window, outgoing, ..
        } = flow;
        if let Some((request, slot)) = window.take_slot() {
            let gathered = &mut self.gathered[owner];
            gathered.bytes = 0;
            std::mem::swap(&mut slot.requests, &mut gathered.requests);
            slot.sent = now;
            self.part.outstanding += slot.requests.len();
            let out = outgoing.begin(Frame::single(request, self.format));
            for sent in &mut slot.requests {
                self.push(out, sent);
            }
            outgoing.end();
        }
        true
    }

    /// Append a request.
    #[inline]
    fn push(&mut self, out: &mut Vec<u8>, sent: &mut Sent) {
        let (data, id) = (self.part.data, sent.id);
        let values = &data.values;
        let key = self.part.key(KeyKind::User, id);
        if sent.operation == Operation::Read {
            sent.floor = data.ledger.as_ref().map_or(0, |ledger| ledger.floor(id));
            match self.format {
                Format::Batch => push_request(
                    out,
                    batch::Request {
                        operation: batch::Operation::Get,
                        key,
                    },
                ),
                Format::Text => {
                    MemcachedText::push_get(out, 1);
                    MemcachedText::push_get_key(out, key, 1);
                    MemcachedText::push_get_end(out, 1);
                }
            }
            return;
        }
        let version = data.begin_write(id);
        match self.format {
            Format::Batch => {
                batch::push_set_head(out, key, data.attributes, values.size(id));
                values.push(out, id, version);
            }
            Format::Text => {
                MemcachedText::push_set(out, key, data.attributes, values.size(id));
                values.push(out, id, version);
                MemcachedText::push_set_end(out, data.attributes);
            }
        }
    }

    /// Take the answers of a datagram.
    pub(super) fn take(&mut self, window: &mut Window, datagram: &[u8], now: u64) {
        self.part
            .statistics
            .bytes_received
            .add(datagram.len() as u64);
        let Some((frame, answers)) = Frame::parse(datagram) else {
            return self
                .part
                .phase
                .fail("the server sent a datagram without a frame".to_owned());
        };
        // Else it comes too late, or out of order: what it answers counts as lost.
        if let Some(slot) = window.slot(frame) {
            let (sent, mut answered) = (slot.sent, slot.answered);
            self.take_answers(&slot.requests, &mut answered, answers, (sent, now));
            slot.answered = answered;
            if answered == slot.requests.len() {
                window.release(frame.request);
            }
        }
    }

    /// Take the answers of one datagram to `requests`, of which so many are answered already.
    fn take_answers(
        &mut self,
        requests: &[Sent],
        answered: &mut usize,
        mut answers: &[u8],
        times: (u64, u64),
    ) {
        while let Some(sent) = requests.get(*answered) {
            let (answer, rest) = match self.format {
                Format::Batch => match parse_answer(answers) {
                    Ok(Some(found)) => found,
                    // The rest is in another datagram.
                    Ok(None) => return,
                    Err(error) => return self.part.phase.fail(format!("the server sent {error}")),
                },
                Format::Text => match text_answer(answers, sent) {
                    Ok(answer) => (answer, &[][..]),
                    Err(sentence) => return self.part.phase.fail(sentence),
                },
            };
            answers = rest;
            *answered += 1;
            self.take_answer(sent, answer, times);
        }
    }

    #[inline]
    fn take_answer(&mut self, sent: &Sent, answer: batch::Answer<'_>, times: (u64, u64)) {
        let statistics = &self.part.statistics.operations[sent.operation as usize];
        let is_read = sent.operation == Operation::Read;
        let mut is_refused = false;
        match answer {
            batch::Answer::Found { flags, value } if is_read => {
                statistics.hits.add(1);
                let key = (sent.id, sent.floor);
                let checked = self.part.data.check_value(key, Some(flags), value);
                self.part.note_check(checked);
            }
            batch::Answer::NotFound if is_read => statistics.misses.add(1),
            batch::Answer::Done if !is_read => {}
            other => {
                is_refused = true;
                let sentence = || format!("{} was answered with {other:?}", sent.operation);
                self.part.phase.first_error.offer(sentence);
            }
        }
        if !is_read {
            self.part.end_write(sent.operation, sent.id, is_refused);
        }
        let (sent_at, now) = times;
        let times = (sent.intended, sent_at, now);
        self.part.complete(sent.operation, is_refused, times);
    }

    /// What was sent before `time` and not answered is lost.
    pub(super) fn give_up_lost(&mut self, flows: &mut [Flow], time: u64) {
        for Flow { window, .. } in flows {
            while let Some(request) = window.overdue(time) {
                let slot = window.waiting(request);
                for sent in &slot.requests[slot.answered..] {
                    self.part.lose(sent.operation, sent.id, || {
                        format!(
                            "{} was not answered within {} ms: the datagram or its answer was lost",
                            sent.operation,
                            LOST_AFTER / 1_000_000
                        )
                    });
                }
                window.release(request);
            }
        }
    }
}

/// The answer in text to one request, which a datagram holds alone and whole.
fn text_answer<'a>(text: &'a [u8], sent: &Sent) -> Result<batch::Answer<'a>, String> {
    let command = match sent.operation {
        Operation::Read => Command::Get,
        _ => Command::Set,
    };
    let partial = || "the server sent a part of an answer".to_owned();
    match MemcachedText::step(text, command, 1, &mut None)? {
        protocol::Step::Answer(protocol::Answer::Hit { flags, value, .. }, length) => {
            if &text[length..] == b"END\r\n" {
                let flags = flags.unwrap_or(0);
                Ok(batch::Answer::Found { flags, value })
            } else {
                Err(partial())
            }
        }
        protocol::Step::Answer(protocol::Answer::Done, _) if command == Command::Get => {
            Ok(batch::Answer::NotFound)
        }
        protocol::Step::Answer(protocol::Answer::Done, _) => Ok(batch::Answer::Done),
        protocol::Step::Answer(protocol::Answer::Refused { message, .. }, _) => Err(format!(
            "{} was answered with \"{}\"",
            sent.operation,
            message.escape_ascii()
        )),
        _ => Err(partial()),
    }
}
