//! How to serve: what the command line asks for, which every floor may read.

mod tls;

pub use tls::{ClientCertificates, Oldest, TlsOptions};

use net::Congestion;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What clients' buffers may take together at least, where no limit is given.
const CLIENT_MEMORY_BYTES_MIN: usize = 64 << 20;

/// How to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// TCP port; 0 for a free one.
    pub port: u16,
    /// UDP port, where datagrams are served; 0 for a free one.
    pub udp_port: Option<u16>,
    /// A network interface on which datagrams are served over AF_XDP.
    pub interface: Option<String>,
    /// Addresses or names to listen on: `[notls:]HOST[:PORT]`.
    pub listen: Vec<String>,
    /// A unix socket to listen on instead.
    pub unix_socket: Option<PathBuf>,
    /// Who may open it, as the mode of a file.
    pub unix_socket_mode: u32,
    /// Connections that may wait to be accepted.
    pub backlog: u16,
    /// The congestion control of TCP connections.
    pub congestion: Congestion,
    /// Memory for items, in MiB.
    pub memory_mebibytes: usize,
    /// Whether the oldest items are evicted when memory is full.
    pub evicts: bool,
    /// The largest item in bytes, where it was given.
    pub item_bytes_max: Option<usize>,
    /// What the buffers of all clients may take together, in MiB, where it was given; 0 for no limit.
    pub client_memory_mebibytes: Option<usize>,
    /// Worker threads.
    pub threads: usize,
    /// Who may touch a partition.
    pub access: Access,
    /// Cores for them; empty for no pinning.
    pub cores: Vec<usize>,
    /// Connections at a time.
    pub connections: usize,
    /// Seconds after which a connection that asks for nothing is closed; 0 for never.
    pub idle_seconds_max: u32,
    /// What clients may speak.
    pub protocols: Protocols,
    /// How bytes get from and to clients.
    pub transport: Transport,
    /// Whether `flush_all` does anything.
    pub allows_flush: bool,
    /// Whether `shutdown` does anything.
    pub allows_shutdown: bool,
    /// A file of lines `user:password`, one of which a client must give before anything else.
    pub accounts: Option<PathBuf>,
    /// How to speak TLS, where it is spoken.
    pub tls: Option<TlsOptions>,
    /// Where metrics are served to Prometheus.
    pub metrics: Option<SocketAddr>,
    /// Where items are kept between one server and the next.
    pub memory_file: Option<PathBuf>,
    /// How much to say on standard error.
    pub verbosity: u8,
    /// The process that serves.
    pub process: ProcessOptions,
}

impl Options {
    /// What the buffers of all clients may take together, in bytes: a quarter of the memory for items where it was not
    /// given, but enough for some clients, and for three of the largest items.
    #[must_use]
    pub fn client_memory_bytes(&self, item_bytes_max: usize) -> usize {
        match self.client_memory_mebibytes {
            Some(0) => usize::MAX,
            Some(mebibytes) => mebibytes << 20,
            None => (self.memory_mebibytes << 18)
                .max(CLIENT_MEMORY_BYTES_MIN)
                .max(item_bytes_max.saturating_mul(3)),
        }
    }

    /// Of how many workers each has partitions of its own; 1 where all have the same.
    pub fn parts(&self) -> usize {
        match self.access {
            Access::Erew | Access::Crew => self.threads,
            Access::Crcw => 1,
        }
    }
}

/// What is asked of the process, apart from serving.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessOptions {
    /// Go to the background once everything is listened on.
    pub is_daemon: bool,
    /// A file for its number, while it runs.
    pub pid_file: Option<PathBuf>,
    /// Who to be, where it is root.
    pub user: Option<String>,
    /// Keep all of its memory from being swapped.
    pub locks_memory: bool,
    /// Leave as large a core file as the host allows.
    pub dumps_core: bool,
}

/// Who may touch a partition: MICA's modes of parallel data access (NSDI'14, section 3.1.1). With one worker they are
/// the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Exclusive read, exclusive write: the worker that owns it.
    Erew,
    /// Concurrent read, exclusive write: all read, its owner writes.
    Crew,
    /// Concurrent read, concurrent write: all read, and write one after the other.
    #[default]
    Crcw,
}

impl Access {
    /// As `stats settings` names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Erew => "erew",
            Self::Crew => "crew",
            Self::Crcw => "crcw",
        }
    }
}

/// What clients may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocols {
    /// Whichever their first byte shows.
    Any,
    /// Text, classic and meta.
    Text,
    /// Binary.
    Binary,
}

impl Protocols {
    /// As `stats settings` names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "auto-negotiate",
            Self::Text => "ascii",
            Self::Binary => "binary",
        }
    }
}

/// How bytes get from and to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// io_uring where it can be had, epoll elsewhere.
    Auto,
    /// epoll reports what is ready, a system call to receive and one to send.
    Epoll,
    /// All of it by io_uring, many at a time.
    IoUring,
}

impl Transport {
    /// As the command line and `stats settings` name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Epoll => "epoll",
            Self::IoUring => "io_uring",
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 11211,
            udp_port: None,
            interface: None,
            listen: vec!["127.0.0.1".to_owned()],
            unix_socket: None,
            unix_socket_mode: 0o700,
            backlog: 1024,
            congestion: Congestion::default(),
            memory_mebibytes: 64,
            evicts: true,
            item_bytes_max: None,
            client_memory_mebibytes: None,
            threads: 1,
            access: Access::default(),
            cores: Vec::new(),
            connections: 1024,
            idle_seconds_max: 0,
            protocols: Protocols::Any,
            transport: Transport::Epoll,
            allows_flush: true,
            allows_shutdown: false,
            accounts: None,
            tls: None,
            metrics: None,
            memory_file: None,
            verbosity: 0,
            process: ProcessOptions::default(),
        }
    }
}
