//! A worker's part of one phase: when to start operations, when to wait, when to stop.
use crate::arrivals::{Arrivals, SPIN_BEFORE_ARRIVAL};
use crate::clock;
use crate::config::{self, ClientConfig};
use crate::data_set::DataSet;
use crate::datagrams;
use crate::exchange::{Exchange, Failure};
use crate::phase::Phase;
use crate::protocol::{MemcachedMeta, MemcachedText, Protocol, Redis};
use crate::worker::{WAKER_TOKEN, Worker};
use crate::worker_phase::WorkerPhase;
use net::{Event, affinity};
use std::io;
use std::time::Duration;

/// A pinned worker keeps looking for replies so long before it sleeps, so that its own waking up is not measured.
const SPIN_BEFORE_SLEEP: u64 = 50_000;
/// How often to look for connections that have fallen silent.
const STALL_CHECK: u64 = 100_000_000;
/// How long a stopped phase waits for the replies that are under way.
const STOP_GRACE: u64 = 200_000_000;
/// Reads from one connection before the others have their turn.
const MOST_READS: usize = 16;
/// Arrivals that are taken before their requests are sent.
const ARRIVAL_BATCH: usize = 32;

/// Do `worker`'s part of `phase`.
pub(crate) fn run_phase(worker: &mut Worker, phase: &Phase, config: &ClientConfig, data: &DataSet) {
    if let Some(core) = worker.core
        && let Err(error) = affinity::pin_current_thread(core)
    {
        return phase.fail(error.to_string());
    }
    if config.goes_first {
        _ = affinity::put_current_thread_first();
    }
    // Without it, timeouts are late by up to 50 us; where it is refused, spinning hides half of that.
    _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let part = WorkerPhase::new(phase, config, data, worker.index);
    if !worker.flows.is_empty() {
        return datagrams::Run::new(worker, part, config).drive(worker);
    }
    match config.protocol {
        // The configuration has datagrams with it.
        config::Protocol::Batch => {}
        config::Protocol::MemcachedText => {
            Run::<MemcachedText>::new(worker, part, config).drive(worker)
        }
        config::Protocol::MemcachedMeta => {
            Run::<MemcachedMeta>::new(worker, part, config).drive(worker)
        }
        config::Protocol::Resp => Run::<Redis>::new(worker, part, config).drive(worker),
    }
}

/// One phase of one worker.
struct Run<'a, P> {
    exchange: Exchange<'a, P>,
    pipeline: usize,
    /// Connections that make one, each to another of the server's workers.
    members: usize,
    /// How long a connection may be silent, in nanoseconds.
    stall: u64,
    arrivals: Option<Arrivals>,
    issuing: bool,
    spins: bool,
    stopped_at: Option<u64>,
    next_stall_check: u64,
}

impl<'a, P: Protocol> Run<'a, P> {
    fn new(worker: &Worker, part: WorkerPhase<'a>, config: &ClientConfig) -> Self {
        let phase = part.phase;
        Self {
            exchange: Exchange::new(part, config.multiget),
            pipeline: config.pipeline,
            members: config.target.members(),
            stall: clock::from_seconds(config.stall_timeout_seconds),
            arrivals: Arrivals::of(phase, worker.index, config.seed),
            issuing: true,
            spins: worker.core.is_some(),
            stopped_at: None,
            next_stall_check: phase.start + STALL_CHECK,
        }
    }

    /// Do it.
    fn drive(&mut self, worker: &mut Worker) {
        let phase = self.exchange.part.phase;
        // The first arrival of an open loop is waited for like all others.
        let before = self.arrivals.as_ref().map_or(0, |_| SPIN_BEFORE_ARRIVAL);
        self.exchange.part.wait_for_start(before);
        let mut now = clock::now();
        worker.ready.clear();
        worker.dirty.clear();
        for first in (0..worker.connections.len()).step_by(self.members) {
            if self.arrivals.is_some() {
                worker.connections[first].queued = true;
                worker.ready.push_back(first);
            } else {
                self.fill(worker, first, now);
            }
        }
        loop {
            if phase.is_stopped() && self.stopped_at.is_none() {
                self.stopped_at = Some(now);
                self.issuing = false;
            }
            self.start_due(worker, now);
            // What was due before the deadline and found no room until now stays unsent.
            self.issuing &= now < phase.deadline;
            if !self.issuing && self.exchange.part.outstanding == 0 {
                break;
            }
            if self.stopped_at.is_some_and(|at| now >= at + STOP_GRACE) {
                break;
            }
            match self.wait(worker) {
                Ok(time) => now = time,
                Err(error) => {
                    phase.fail(format!("cannot wait for replies: {error}"));
                    break;
                }
            }
            if now >= self.next_stall_check {
                self.next_stall_check = now + STALL_CHECK;
                self.check_stalls(worker, now);
            }
            for index in 0..worker.events.len() {
                let event = worker.events[index];
                if event.token() == WAKER_TOKEN {
                    worker.waker.reset();
                    continue;
                }
                let token = event.token() as usize;
                let done = self.handle(worker, token, event);
                self.settle(worker, token, done);
            }
        }
        self.exchange.part.end();
        self.count_unsent();
    }

    /// Wait for events, which are then in `worker.events`, or until there is something else to do. Returns the time.
    fn wait(&mut self, worker: &mut Worker) -> io::Result<u64> {
        worker.poll(Duration::ZERO)?;
        let began = clock::now();
        if !worker.events.is_empty() {
            return Ok(began);
        }
        let WorkerPhase {
            phase, statistics, ..
        } = self.exchange.part;
        let wake_at = self.wake_at(worker);
        let mut now = began;
        statistics.idle_since.set(began);
        let stop_is_known = self.stopped_at.is_some();
        while worker.events.is_empty() && now < wake_at && (stop_is_known || !phase.is_stopped()) {
            let left = wake_at - now;
            let spin = self.spins && now - began < SPIN_BEFORE_SLEEP;
            let mut timeout = left.saturating_sub(SPIN_BEFORE_ARRIVAL);
            if spin && timeout > 0 {
                // Where the server has to share this core, it goes first.
                std::thread::yield_now();
                timeout = 0;
            }
            worker.poll(Duration::from_nanos(timeout))?;
            now = clock::now();
        }
        statistics.idle.add(now - began);
        statistics.idle_since.set(0);
        Ok(now)
    }

    /// When there will be something to do if no event comes first.
    fn wake_at(&self, worker: &Worker) -> u64 {
        let mut wake_at = self.next_stall_check;
        if let Some(at) = self.stopped_at {
            wake_at = wake_at.min(at + STOP_GRACE);
        }
        if self.issuing {
            wake_at = wake_at.min(self.exchange.part.phase.deadline);
            if let Some(arrivals) = &self.arrivals
                && !worker.ready.is_empty()
            {
                wake_at = wake_at.min(arrivals.next());
            }
        }
        wake_at
    }

    fn handle(&mut self, worker: &mut Worker, token: usize, event: Event) -> Result<(), Failure> {
        let connection = &mut worker.connections[token];
        let exchange = &mut self.exchange;
        let mut now = 0;
        let mut progress = event.is_writable() && !connection.is_sent();
        let mut more = event.is_readable() || connection.holds_input();
        let mut reads = 0;
        while more {
            let most = exchange.most_reply_bytes;
            let received = connection.receive(&mut worker.shared, most, |connection, input| {
                now = clock::now();
                exchange.take_replies(connection, input, now)
            });
            match received {
                Err(Failure::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(failure) => return Err(failure),
                Ok(received) => {
                    exchange
                        .part
                        .statistics
                        .bytes_received
                        .add(received.bytes as u64);
                    progress = true;
                    // The end of the stream is read, too.
                    more = !received.all || event.is_read_closed();
                }
            }
            reads += 1;
            if reads == MOST_READS && more {
                connection.watch_again(&worker.poller, token as u64)?;
                break;
            }
        }
        if now == 0 {
            now = clock::now();
        }
        if progress {
            connection.last_progress = now;
        }
        self.go_on(worker, token, now);
        Ok(())
    }

    /// After replies were taken or room was made: send what there is to send, and go on.
    fn go_on(&mut self, worker: &mut Worker, index: usize, now: u64) {
        let first = index - index % self.members;
        if self.arrivals.is_none() {
            return self.fill(worker, first, now);
        }
        self.send(worker, index);
        if !worker.connections[first].queued && self.has_room(worker, first) {
            worker.connections[first].queued = true;
            worker.ready.push_back(first);
        }
        self.start_due(worker, now);
    }

    /// Whether another request may be added to the connections from `first` on that make one.
    #[inline]
    fn has_room(&self, worker: &Worker, first: usize) -> bool {
        let members = &worker.connections[first..first + self.members];
        let outstanding: usize = members.iter().map(|member| member.requests.len()).sum();
        outstanding < self.pipeline && members.iter().all(|member| member.has_room(self.pipeline))
    }

    /// Closed loop: keep the pipeline full.
    #[inline]
    fn fill(&mut self, worker: &mut Worker, first: usize, now: u64) {
        if self.issuing && now >= self.exchange.part.phase.deadline {
            self.issuing = false;
        }
        while self.issuing && self.has_room(worker, first) {
            if self.exchange.part.quota == 0 {
                self.issuing = false;
                break;
            }
            self.exchange.part.quota -= 1;
            let members = &mut worker.connections[first..first + self.members];
            self.exchange.issue(members, now, now);
        }
        for index in first..first + self.members {
            self.send(worker, index);
        }
    }

    #[inline]
    fn send(&mut self, worker: &mut Worker, index: usize) {
        let done = self.exchange.send(&mut worker.connections[index]);
        self.settle(worker, index, done.map_err(Failure::Io));
    }

    /// Open loop: start what is due, as far as connections have room.
    #[inline]
    fn start_due(&mut self, worker: &mut Worker, mut now: u64) {
        loop {
            let mut started = 0;
            while started < ARRIVAL_BATCH
                && let Some(arrivals) = &mut self.arrivals
                && self.issuing
                && arrivals.next() <= now
            {
                if self.exchange.part.quota == 0
                    || arrivals.next() >= self.exchange.part.phase.deadline
                {
                    self.issuing = false;
                    break;
                }
                let Some(first) = worker.ready.pop_front() else {
                    break;
                };
                let members = &mut worker.connections[first..first + self.members];
                let member = self.exchange.issue(members, arrivals.next(), now);
                arrivals.advance();
                if !members[member].is_dirty {
                    members[member].is_dirty = true;
                    worker.dirty.push(first + member);
                }
                self.exchange.part.quota -= 1;
                started += 1;
                let has_room = self.has_room(worker, first);
                worker.connections[first].queued = has_room;
                if has_room {
                    worker.ready.push_back(first);
                }
            }
            if started == 0 {
                return;
            }
            while let Some(index) = worker.dirty.pop() {
                worker.connections[index].is_dirty = false;
                self.send(worker, index);
            }
            now = clock::now();
        }
    }

    /// A connection that fails ends the phase.
    fn settle(&mut self, worker: &mut Worker, index: usize, done: Result<(), Failure>) {
        let Err(failure) = done else { return };
        let connection = &mut worker.connections[index];
        let number = connection.number;
        let unanswered = connection.requests.len();
        connection.give_up(&worker.poller);
        self.exchange.part.phase.fail(match failure {
            Failure::Malformed(what) => format!("the server sent {what} on connection {number}"),
            Failure::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                format!(
                    "the server closed connection {number} with {unanswered} requests unanswered"
                )
            }
            Failure::Io(error) => {
                format!("connection {number} failed with {unanswered} requests unanswered: {error}")
            }
        });
    }

    fn check_stalls(&self, worker: &Worker, now: u64) {
        let silent = worker.connections.iter().find_map(|connection| {
            let request = connection.requests.front()?;
            let silence = now.saturating_sub(connection.last_progress);
            (silence >= self.stall).then_some((connection, request))
        });
        if let Some((connection, request)) = silent {
            self.exchange.part.phase.fail(format!(
                "the server has not answered connection {} for {} s, with {} requests outstanding, the first of them {}",
                connection.number,
                clock::to_seconds(self.stall),
                connection.requests.len(),
                request.operation,
            ));
        }
    }

    fn count_unsent(&mut self) {
        if let Some(arrivals) = &mut self.arrivals {
            let end = self.stopped_at.unwrap_or_else(clock::now);
            self.exchange.part.count_unsent(arrivals, end);
        }
    }
}
