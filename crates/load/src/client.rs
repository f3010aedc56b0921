//! The load generator as a whole: connections and memory that last, phases that come and go.
use crate::Error;
use crate::clock::{self, Clock};
use crate::config::{ClientConfig, PhaseConfig, Target};
use crate::connection::choose_endpoint;
use crate::data_set::DataSet;
use crate::datagrams::Attached;
use crate::monitor::{self, Interval, Intervals, Totals, both, totals};
use crate::phase::{Phase, lock};
use crate::result::PhaseResult;
use crate::run::run_phase;
use crate::tls::Tls;
use crate::worker::{Route, Worker};
use net::Endpoint;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time for all workers to be up before a phase starts, in nanoseconds; and more for each.
const START_AFTER: u64 = 1_000_000;
const START_AFTER_PER_WORKER: u64 = 100_000;

/// A load generator with its connections and its memory of what it wrote. Its methods may be called from several
/// threads.
#[derive(Debug)]
pub struct LoadClient {
    config: Arc<ClientConfig>,
    route: Route,
    data: Arc<DataSet>,
    clock: Clock,
    intervals: Arc<Intervals>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    workers: Vec<Worker>,
    running: Option<Running>,
    result: Option<PhaseResult>,
    totals: Totals,
    phases: u64,
    closed: bool,
}

#[derive(Debug)]
struct Running {
    phase: Arc<Phase>,
    workers: Vec<JoinHandle<Worker>>,
    monitor: JoinHandle<()>,
}

impl LoadClient {
    /// Parse the configuration and connect.
    pub fn new(config_json: &str) -> Result<Self, Error> {
        let config = ClientConfig::from_json(config_json)?;
        let data = DataSet::new(&config)?;
        let allowed = net::affinity::allowed_cores();
        for &core in &config.cores {
            if !allowed.is_empty() && !allowed.contains(&core) {
                return Err(Error::Config(format!(
                    "core {core} is not there or not allowed; this process may use {allowed:?}"
                )));
            }
        }
        let route = match &config.target {
            Target::Tcp {
                host,
                port,
                own_ports,
                tls,
            } => {
                let common = choose_endpoint(&Endpoint::resolve(host, *port)?)?;
                let endpoints = match common {
                    Endpoint::Tcp(address) if !own_ports.is_empty() => {
                        let own = |&port| Endpoint::Tcp((address.ip(), port).into());
                        own_ports.iter().map(own).collect()
                    }
                    common => vec![common],
                };
                let tls = tls
                    .as_ref()
                    .map(|tls| {
                        Tls::new(&tls.trusted_file, tls.server_name.as_ref().unwrap_or(host))
                    })
                    .transpose()?;
                Route::Streams(endpoints, tls)
            }
            Target::Unix { path, own_paths } => {
                let paths = match own_paths.as_slice() {
                    [] => std::slice::from_ref(path),
                    own => own,
                };
                Route::Streams(paths.iter().cloned().map(Endpoint::Unix).collect(), None)
            }
            Target::Udp {
                host,
                ports,
                joined,
            } => {
                let addresses = ports.iter().map(|&port| datagram_address(host, port));
                let datagrams_max = if *joined { net::DATAGRAMS_MAX } else { 1 };
                Route::Datagrams(addresses.collect::<Result<_, Error>>()?, datagrams_max)
            }
            Target::Xdp {
                interface,
                source,
                destination,
                destination_mac,
                ports,
            } => {
                let to = (*destination, *destination_mac);
                let attached = Attached::to(interface, &config, *source, to, ports)?;
                Route::Xdp(Box::new(attached))
            }
        };
        let client = Self {
            data: Arc::new(data),
            clock: Clock::new(),
            intervals: Arc::default(),
            state: Mutex::default(),
            config: Arc::new(config),
            route,
        };
        lock(&client.state).workers = client.connect()?;
        Ok(client)
    }

    fn connect(&self) -> Result<Vec<Worker>, Error> {
        let count = self.config.cores.len().max(1);
        let worker = |index: usize| {
            let core = self.config.cores.get(index).copied();
            let (config, data, route) = (&self.config, &self.data, &self.route);
            let connections = config.connections;
            if route.uses_datagrams() {
                // Behind one another, so that each has a way to each of the server's workers.
                let numbers = index * connections / count..(index + 1) * connections / count;
                Worker::new(index, core, config, data, route, numbers)
            } else {
                let numbers = (index..connections).step_by(count);
                Worker::new(index, core, config, data, route, numbers)
            }
        };
        (0..count).map(worker).collect()
    }

    /// Begin a phase; it goes on by itself. Refused while another phase is running.
    pub fn start_phase(&self, phase_json: &str) -> Result<(), Error> {
        let config = PhaseConfig::from_json(phase_json, self.config.protocol)?;
        if self.route.uses_datagrams() {
            config.check_for_datagrams()?;
        }
        if self.config.expire_seconds > 0 {
            config.check_for_expiry()?;
        }
        let mut state = self.open_state()?;
        if let Some(running) = &state.running
            && !running.phase.wait(Duration::ZERO)
        {
            return Err(Error::State("a phase is running; wait for it or stop it"));
        }
        self.collect(&mut state);
        if state.workers.is_empty() {
            state.workers = self.connect()?;
        }
        for worker in &mut state.workers {
            worker.renew(&self.config, &self.route)?;
        }
        let workers = std::mem::take(&mut state.workers);
        let start = clock::now() + START_AFTER + START_AFTER_PER_WORKER * workers.len() as u64;
        let deadline = config
            .duration_seconds
            .map_or(u64::MAX, |seconds| start + clock::from_seconds(seconds));
        let wakers = workers
            .iter()
            .map(|worker| Arc::clone(&worker.waker))
            .collect();
        let phase = Arc::new(Phase::new(config, state.phases, (start, deadline), wakers));
        state.phases += 1;
        state.result = None;
        state.running = Some(self.spawn(phase, workers, state.totals)?);
        Ok(())
    }

    fn spawn(
        &self,
        phase: Arc<Phase>,
        workers: Vec<Worker>,
        before: Totals,
    ) -> Result<Running, Error> {
        let monitor = {
            let (phase, intervals, clock) =
                (Arc::clone(&phase), Arc::clone(&self.intervals), self.clock);
            std::thread::Builder::new()
                .name("load-monitor".to_owned())
                .spawn(move || monitor::watch(&phase, clock, before, &intervals))
                .map_err(Error::system("start a thread"))?
        };
        let mut threads = Vec::with_capacity(workers.len());
        let mut failed = None;
        for mut worker in workers {
            let ended = Ended(Arc::clone(&phase));
            let (config, data) = (Arc::clone(&self.config), Arc::clone(&self.data));
            let thread = std::thread::Builder::new()
                .name("load-worker".to_owned())
                .spawn(move || {
                    run_phase(&mut worker, &ended.0, &config, &data);
                    worker
                });
            match thread {
                Ok(thread) => threads.push(thread),
                // The closure, and with it the guard that counts the worker as ended, is gone.
                Err(error) => failed = Some(error),
            }
        }
        let running = Running {
            phase,
            workers: threads,
            monitor,
        };
        match failed {
            None => Ok(running),
            Some(error) => {
                running.phase.stop();
                running.join();
                Err(Error::system("start a thread")(error))
            }
        }
    }

    /// The intervals that ended since the last call.
    pub fn poll(&self) -> Vec<Interval> {
        self.intervals.take()
    }

    /// Wait until the phase ends, at most `timeout`: whether it has. Without a phase, it has.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let phase = lock(&self.state)
            .running
            .as_ref()
            .map(|running| Arc::clone(&running.phase));
        phase.is_none_or(|phase| phase.wait(timeout))
    }

    /// End the phase, if one is running. Replies that are under way are waited for, but not for long.
    pub fn stop_phase(&self) {
        let mut state = lock(&self.state);
        if let Some(running) = &state.running {
            running.phase.stop();
        }
        self.collect(&mut state);
    }

    /// What the last phase came to.
    pub fn phase_result(&self) -> Result<PhaseResult, Error> {
        let mut state = lock(&self.state);
        if let Some(running) = &state.running
            && !running.phase.wait(Duration::ZERO)
        {
            return Err(Error::State(
                "the phase is still running; wait for it or stop it",
            ));
        }
        self.collect(&mut state);
        state
            .result
            .clone()
            .ok_or(Error::State("there was no phase yet"))
    }

    /// Stop, and close all connections. What is left can still be fetched.
    pub fn close(&self) {
        self.stop_phase();
        let mut state = lock(&self.state);
        state.closed = true;
        state.workers.clear();
    }

    fn open_state(&self) -> Result<std::sync::MutexGuard<'_, State>, Error> {
        let state = lock(&self.state);
        if state.closed {
            return Err(Error::State("the load client is closed"));
        }
        Ok(state)
    }

    /// Take back what a phase that ends has borrowed, and make up its result.
    fn collect(&self, state: &mut State) {
        let Some(running) = state.running.take() else {
            return;
        };
        let phase = Arc::clone(&running.phase);
        state.workers = running.join();
        state.totals = both(state.totals, totals(&phase.statistics));
        state.result = Some(PhaseResult::new(&phase, self.clock));
    }
}

/// The first address that `host` stands for.
fn datagram_address(host: &str, port: u16) -> Result<SocketAddr, Error> {
    let endpoints = Endpoint::resolve(host, port)?;
    let mut addresses = endpoints.iter().filter_map(|endpoint| match endpoint {
        Endpoint::Tcp(address) => Some(*address),
        Endpoint::Unix(_) => None,
    });
    addresses
        .next()
        .ok_or_else(|| Error::Config(format!("{host} has no address")))
}

impl Drop for LoadClient {
    fn drop(&mut self) {
        self.close();
    }
}

impl Running {
    /// The workers, or none if one of them is lost: they are made anew then.
    fn join(self) -> Vec<Worker> {
        let threads = self.workers.into_iter();
        let workers: Vec<Worker> = threads.filter_map(|thread| thread.join().ok()).collect();
        // It reads counters and cannot fail; its reports are fetched elsewhere.
        _ = self.monitor.join();
        if workers.len() == self.phase.statistics.len() {
            workers
        } else {
            Vec::new()
        }
    }
}

/// Says that a worker has ended, however it ends.
struct Ended(Arc<Phase>);

impl Drop for Ended {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "a worker of the load generator panicked; this is a defect";
            self.0.fail(why.to_owned());
        }
        self.0.worker_ended();
    }
}
