//! Load by datagrams without a server, a clock or a thread: tests that make answers up drive it, step by step.

use super::run::Run;
use crate::Error;
use crate::config::{ClientConfig, PhaseConfig};
use crate::data_set::DataSet;
use crate::phase::Phase;
use crate::worker::{Route, Worker};
use crate::worker_phase::WorkerPhase;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// A client whose datagrams go nowhere.
pub struct Silent<'a> {
    run: Run<'a>,
    phase: &'a Phase,
    worker: Worker,
    now: u64,
}

/// What a client counted so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Requests that wait for an answer.
    pub outstanding: u64,
    /// Answered.
    pub completed: u64,
    /// Refused or lost.
    pub errors: u64,
    /// Completed, with a value that no server should have.
    pub wrong_values: u64,
}

impl Silent<'_> {
    /// Let `work` have a client of these configurations, whose target must be UDP.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn try_with(
        client_json: &str,
        phase_json: &str,
        work: impl FnOnce(Silent<'_>),
    ) -> Result<(), Error> {
        let config = ClientConfig::from_json(client_json)?;
        let data = DataSet::new(&config)?;
        let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        let route = Route::Datagrams(vec![nobody], 1);
        let numbers = 0..config.connections;
        let worker = Worker::new(0, None, &config, &data, &route, numbers)?;
        let phase = PhaseConfig::from_json(phase_json, config.protocol)?;
        phase.check_for_datagrams()?;
        let phase = Phase::new(phase, 0, (0, u64::MAX), vec![Arc::clone(&worker.waker)]);
        work(Silent {
            run: Run::new(
                &worker,
                WorkerPhase::new(&phase, &config, &data, 0),
                &config,
            ),
            phase: &phase,
            worker,
            now: 1,
        });
        Ok(())
    }

    /// Make as many datagrams as may be on their way; each with the number of the flow that it goes by.
    pub fn ask(&mut self) -> Vec<(usize, Vec<u8>)> {
        self.now += 1;
        self.run.fill(&mut self.worker.flows, self.now);
        let mut asked = Vec::new();
        for (number, flow) in self.worker.flows.iter_mut().enumerate() {
            let datagrams = flow.outgoing.runs(1, usize::MAX);
            asked.extend(datagrams.map(|(bytes, ..)| (number, bytes.to_vec())));
            flow.outgoing.clear();
        }
        asked
    }

    /// A datagram came by flow number `flow`.
    pub fn take(&mut self, flow: usize, datagram: &[u8]) {
        self.now += 1;
        let window = &mut self.worker.flows[flow].window;
        self.run.take(window, datagram, self.now);
    }

    /// All that was not answered is lost.
    pub fn give_up(&mut self) {
        self.now += 1;
        self.run.give_up_lost(&mut self.worker.flows, self.now);
    }

    /// What was counted.
    pub fn tally(&self) -> Tally {
        let statistics = &self.phase.statistics[0];
        let operations = &statistics.operations;
        Tally {
            outstanding: self.run.part.outstanding as u64,
            completed: operations.iter().map(|one| one.completed.get()).sum(),
            errors: operations.iter().map(|one| one.errors.get()).sum(),
            wrong_values: statistics.wrong_values.get(),
        }
    }

    /// Why the client would have ended, in words, and what was wrong with the first wrong value.
    pub fn sentences(&self) -> (Option<String>, Option<String>) {
        (self.phase.failure.get(), self.phase.first_wrong.get())
    }
}
