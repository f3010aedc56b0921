//! What a worker draws and counts in one phase, whatever carries its requests.
use crate::arrivals::Arrivals;
use crate::clock;
use crate::config::ClientConfig;
use crate::data_set::DataSet;
use crate::distribution::Chooser;
use crate::keys::KeyKind;
use crate::operation::{Mix, Operation};
use crate::phase::Phase;
use crate::random::Random;
use crate::sizes::MAX_KEY_BYTES;
use crate::statistics::WorkerStatistics;
use std::time::Duration;
use wire::memcached::partition_map;

pub(crate) struct WorkerPhase<'a> {
    pub(crate) phase: &'a Phase,
    pub(crate) data: &'a DataSet,
    pub(crate) statistics: &'a WorkerStatistics,
    mix: Mix,
    chooser: Chooser,
    pub(crate) random: Random,
    /// Operations that may still be started.
    pub(crate) quota: u64,
    /// Operations that were started and have not ended.
    pub(crate) outstanding: usize,
    /// Where keys are written.
    key: [u8; MAX_KEY_BYTES],
}

impl<'a> WorkerPhase<'a> {
    /// For worker number `index`.
    pub(crate) fn new(
        phase: &'a Phase,
        config: &ClientConfig,
        data: &'a DataSet,
        index: usize,
    ) -> Self {
        let (distribution, workers) = (&phase.config.distribution, phase.statistics.len());
        // The first workers take one more each where it does not divide.
        let part = |count: u64| (count + (workers - 1 - index) as u64) / workers as u64;
        Self {
            phase,
            data,
            statistics: &phase.statistics[index],
            mix: Mix::new(&phase.config.operations),
            chooser: Chooser::new(distribution, config.seed, index, workers),
            random: Random::new(config.seed, [phase.number, (index as u64) << 1]),
            quota: phase.config.operation_count.map_or(u64::MAX, part),
            outstanding: 0,
            key: [0; MAX_KEY_BYTES],
        }
    }

    /// Sleep until `before` nanoseconds before the start.
    pub(crate) fn wait_for_start(&self, before: u64) {
        let early = self.phase.start.saturating_sub(clock::now() + before);
        std::thread::sleep(Duration::from_nanos(early));
    }

    /// The worker is done.
    pub(crate) fn end(&self) {
        self.statistics.cpu.set(clock::thread_cpu());
        self.statistics.ended.set(clock::now());
    }

    /// What was due before `end`, and not sent.
    pub(crate) fn count_unsent(&self, arrivals: &mut Arrivals, end: u64) {
        let unsent = arrivals.count_until(self.phase.deadline.min(end));
        self.statistics.unsent.set(unsent.min(self.quota));
    }

    /// An operation and the number of its key.
    #[inline]
    pub(crate) fn draw(&mut self) -> (Operation, u64) {
        let operation = self.mix.draw(&mut self.random);
        let id = match (operation, &self.chooser) {
            (Operation::Insert, Chooser::Sequential { .. }) => self.draw_id(),
            (Operation::Insert, _) => self.claim(),
            _ => self.draw_id(),
        };
        (operation, id)
    }

    #[inline]
    pub(crate) fn draw_id(&mut self) -> u64 {
        self.chooser
            .draw(&mut self.random, self.data.space.readable())
    }

    fn claim(&self) -> u64 {
        let (space, capacity) = (&self.data.space, self.data.keys.capacity());
        let id = space.claim();
        if id < capacity {
            return id;
        }
        self.phase.fail(format!(
            "there are only {capacity} different keys of this size, and all are inserted; raise keys.size"
        ));
        space.readable() - 1
    }

    #[inline]
    pub(crate) fn key(&mut self, kind: KeyKind, id: u64) -> &[u8] {
        self.data.keys.write(&mut self.key, kind, id)
    }

    /// The server's worker, of `owners`, that a key belongs to.
    #[inline]
    pub(crate) fn owner(&mut self, kind: KeyKind, id: u64, owners: usize) -> usize {
        match owners {
            1 => 0,
            _ => partition_map::owner(self.key(kind, id), owners),
        }
    }

    /// The outcome of a check of what was read.
    #[inline]
    pub(crate) fn note_check(&self, checked: Result<(), String>) {
        if let Err(wrong) = checked {
            self.note_wrong(wrong);
        }
    }

    #[cold]
    pub(crate) fn note_wrong(&self, sentence: String) {
        self.statistics.wrong_values.add(1);
        self.phase.first_wrong.offer(|| sentence);
    }

    /// The write of `id` was answered.
    #[inline]
    pub(crate) fn end_write(&self, operation: Operation, id: u64, refused: bool) {
        self.data.end_write(id, refused);
        if operation == Operation::Insert {
            self.data.space.acknowledge(id);
        }
    }

    /// An operation has ended at `now`, which was sent and meant to be sent at these times.
    #[inline]
    pub(crate) fn complete(
        &mut self,
        operation: Operation,
        refused: bool,
        (intended, sent, now): (u64, u64, u64),
    ) {
        self.outstanding -= 1;
        let statistics = &self.statistics.operations[operation as usize];
        self.statistics.last_completion.set(now);
        if refused {
            statistics.errors.add(1);
            return;
        }
        statistics.completed.add(1);
        if let Some(latencies) = &statistics.latencies {
            latencies.service.record(now.saturating_sub(sent));
            if let Some(open) = &latencies.open {
                open.response.record(now.saturating_sub(intended));
                open.lag.record(sent.saturating_sub(intended));
            }
        }
    }

    /// An operation is given up: its request or its reply was lost.
    pub(crate) fn lose(
        &mut self,
        operation: Operation,
        id: u64,
        sentence: impl FnOnce() -> String,
    ) {
        self.outstanding -= 1;
        self.statistics.operations[operation as usize].errors.add(1);
        self.phase.first_error.offer(sentence);
        if operation != Operation::Read {
            self.data.lose_write(id);
            if operation == Operation::Insert {
                self.data.space.acknowledge(id);
            }
        }
    }
}
