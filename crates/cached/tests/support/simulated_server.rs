//! A whole server on one thread and without time of its own: workers, inboxes, connections and the file of items are
//! those of the program; who has a turn, and what time it is, is said from outside.

use crate::carrier::connections::Arrival;
use crate::carrier::datagrams::{Socket, Source};
use crate::carrier::inbox::Message;
use crate::carrier::worker::Shared;
use crate::carrier::workers::{WorkerAndInbox, workers};
use crate::control::memory_file::{restore_from, save_to};
use crate::engine::clock::SIMULATED_SECONDS;
use crate::engine::counters::Totals;
use crate::engine::state::Addresses;
use crate::engine::{Clock, Count, ServerState};
use crate::options::Options;
pub use crate::session::batch::ForwardLimits;
use mica::{Config, Hasher, Partition};
use net::{DatagramSocket, Stream};
use rustix::net::sockopt;
use rustls::ServerConfig;
use std::io::{self, Cursor};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const HASH_SEED: u64 = 1;

/// Some second of Unix time.
const START_UNIX_SECONDS: i64 = 1_800_000_000;

/// Its workers, until it is stopped.
pub struct SimulatedServer {
    workers: Vec<WorkerAndInbox>,
    shared: Arc<Shared>,
    datagram_addresses: Vec<SocketAddr>,
}

impl SimulatedServer {
    /// A server with so many partitions of this layout for each worker (EREW, CREW) or for all (CRCW), which begins with
    /// what an earlier one left. `limits` are of what is under way between workers.
    ///
    /// # Errors
    /// What is wrong with the layout or the file, or what the system says.
    pub fn start(
        options: &Options,
        layout: Config,
        partitions: usize,
        limits: ForwardLimits,
        left: Option<&[u8]>,
    ) -> Result<Self, String> {
        let hasher = Hasher::new(HASH_SEED);
        let parts = options.parts();
        let mut all: Vec<Partition> = (0..partitions * parts)
            .map(|_| Partition::new(layout, hasher.clone()))
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        if SIMULATED_SECONDS.get().is_none() {
            SIMULATED_SECONDS.set(Some(START_UNIX_SECONDS));
        }
        let clock = match left {
            None => Clock::start(),
            Some(file) => {
                let to = (&mut all[..], parts);
                let restored = restore_from(Cursor::new(file), &hasher, to, Path::new("-"));
                let (clock, counts) = restored.map_err(|damage| damage.to_string())?;
                assert_eq!(counts.unfit, 0, "what fitted once fits again");
                clock
            }
        };
        let shared = Arc::new(Shared {
            state: ServerState::new(
                options.clone(),
                layout.item_bytes_max,
                Addresses::default(),
                clock,
                None,
            ),
            accounts: None,
        });
        let mut datagram_addresses = Vec::new();
        let mut sources: Vec<Vec<Source>> = (0..options.threads).map(|_| Vec::new()).collect();
        for own in sources.iter_mut().filter(|_| options.udp_port.is_some()) {
            let socket = DatagramSocket::bind(([127, 0, 0, 1], 0).into(), false);
            let socket = socket.map_err(|error| error.to_string())?;
            datagram_addresses.push(socket.address());
            own.push(Source::Socket(Socket(Arc::new(socket))));
        }
        let workers = workers(&shared, &hasher, all, sources);
        let mut workers = workers.map_err(|error| error.to_string())?;
        for (worker, _) in &mut workers {
            worker.limit_forwarding(limits);
            worker.start().map_err(|error| error.to_string())?;
        }
        Ok(Self {
            workers,
            shared,
            datagram_addresses,
        })
    }

    /// How many workers it has.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Let a worker do what there is to do for it.
    ///
    /// # Errors
    /// What ends a worker's thread.
    pub fn turn(&mut self, worker: usize) -> io::Result<()> {
        let goes_on = self.workers[worker].0.turn(Some(Duration::ZERO))?;
        assert!(goes_on, "nobody ended it");
        Ok(())
    }

    /// A client connects to a worker, encrypted where there is what to do that with, and gets the other end. Where `send_bytes` is given, the kernel takes about as many
    /// bytes of replies that the client does not read.
    ///
    /// # Errors
    /// What the system says.
    pub fn connect(
        &self,
        worker: usize,
        send_bytes: Option<usize>,
        tls: Option<Arc<ServerConfig>>,
    ) -> io::Result<UnixStream> {
        let (stream, client) = Stream::pair()?;
        if let Some(bytes) = send_bytes {
            sockopt::set_socket_send_buffer_size(&stream, bytes)?;
        }
        self.workers[worker]
            .1
            .send(Message::Serve(Arrival { stream, tls }));
        Ok(client)
    }

    /// Where a worker gets datagrams.
    pub fn datagram_address(&self, worker: usize) -> SocketAddr {
        self.datagram_addresses[worker]
    }

    /// Bytes that its buffers hold for clients, and how many they may; what is on its way between workers is not counted.
    pub fn held(&mut self) -> (usize, usize) {
        let held = self.workers.iter_mut().map(|worker| worker.0.held()).sum();
        (held, self.shared.state.client_memory.bytes_max())
    }

    fn count(&self, counts: &[Count]) -> u64 {
        let totals = Totals::of(&self.shared.state.counters);
        counts.iter().map(|&count| totals.get(count)).sum()
    }

    /// Connections that it closed for want of memory.
    pub fn given_up(&self) -> u64 {
        self.count(&[Count::ReadsOutOfMemory, Count::RepliesOutOfMemory])
    }

    /// Times that a connection, a datagram or a command went from one worker to another.
    pub fn moves(&self) -> u64 {
        self.count(&[Count::Moves, Count::Forwards])
    }

    /// Commands that another worker carried out.
    pub fn forwards(&self) -> u64 {
        self.count(&[Count::Forwards])
    }

    /// Datagrams that it says are lost.
    pub fn lost_datagrams(&self) -> u64 {
        self.count(&[Count::DatagramsDropped, Count::DatagramsNotForwarded])
    }

    /// End it, and leave the file of its items.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn stop(self) -> io::Result<Vec<u8>> {
        let state = &self.shared.state;
        let workers = self.workers.into_iter();
        let mut all: Vec<_> = workers.map(|(worker, _)| worker.into_storage()).collect();
        all.truncate(state.parts());
        let (file, _) = save_to(
            Vec::new(),
            &mut all,
            (state.clock, HASH_SEED),
            Path::new("-"),
        )?;
        Ok(file)
    }
}

/// The second that it is now.
pub fn now() -> u32 {
    SIMULATED_SECONDS
        .get()
        .map_or(0, |at| (at - START_UNIX_SECONDS) as u32)
}

/// Let seconds go by.
pub fn wait(seconds: u32) {
    let now = SIMULATED_SECONDS.get().unwrap_or(START_UNIX_SECONDS);
    SIMULATED_SECONDS.set(Some(now + i64::from(seconds)));
}
