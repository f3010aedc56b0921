use super::parse;
use crate::Error;
use crate::datagrams::SLOTS_MAX;
use serde::Deserialize;
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use wire::memcached::client::Attributes;

/// Where the server is, how to talk to it, and the data set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientConfig {
    /// Where the server listens.
    pub target: Target,
    /// What it speaks.
    pub protocol: Protocol,
    /// How many connections to hold.
    pub connections: usize,
    /// One worker thread for each, pinned to it; one worker that is not pinned when empty.
    #[serde(default)]
    pub cores: Vec<usize>,
    /// Have workers go before everything else of ordinary policy on their cores, where that is allowed. For cores that
    /// the server does not use: whatever else runs there would make requests late that the server answers in time.
    #[serde(default)]
    pub goes_first: bool,
    /// Requests outstanding on a connection: exactly so many in a closed loop, at most so many in an open one.
    #[serde(default = "one")]
    pub pipeline: usize,
    /// Keys of a read request.
    #[serde(default = "one")]
    pub multiget: usize,
    /// Requests of a datagram, where there are datagrams.
    #[serde(default = "one")]
    pub batch: usize,
    /// Fixes every random choice.
    pub seed: u64,
    /// Check what is read against what was written.
    #[serde(default = "yes")]
    pub verify: bool,
    /// The keys.
    pub keys: KeysConfig,
    /// The sizes of values.
    pub values: SizeConfig,
    /// The client's flags of every item that is set; 0 over Redis, which has none.
    #[serde(default)]
    pub flags: u32,
    /// After how many seconds every item that is set expires; 0 is never.
    #[serde(default)]
    pub expire_seconds: u32,
    /// How long a connection with requests outstanding may be silent before the phase is given up, in seconds.
    #[serde(default = "ten")]
    pub stall_timeout_seconds: f64,
}

/// Where a server listens.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Target {
    /// A host name or address, and a port.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
        /// The port of each of the server's workers in order, where each has keys of its own: every connection is then
        /// one to each of them, and a request goes to the one that its key belongs to.
        #[serde(default)]
        own_ports: Vec<u16>,
        /// Speak TLS, to a server whose certificate is trusted.
        #[serde(default)]
        tls: Option<TlsConfig>,
    },
    /// A unix stream socket.
    Unix {
        /// Its file.
        path: PathBuf,
        /// The file of each of the server's workers in order, likewise.
        #[serde(default)]
        own_paths: Vec<PathBuf>,
    },
    /// UDP.
    Udp {
        /// Name or address.
        host: String,
        /// The server's port, or the port of each of its workers in order, where each has keys of its own.
        ports: Vec<u16>,
        /// Hand the kernel many datagrams at once (`UDP_SEGMENT`), where they are equally long.
        #[serde(default = "yes")]
        joined: bool,
    },
    /// UDP by AF_XDP: each of the connections has a queue of the interface, in order, and so
    /// the worker that serves the queue at the other end of a veth, where that is in native mode.
    Xdp {
        /// The network interface.
        interface: String,
        /// Where datagrams come from: an address of the interface, and the first connection's port; the others' follow.
        source: SocketAddr,
        /// The server's address.
        destination: IpAddr,
        /// The MAC address of the server, or of the router in between.
        destination_mac: MacAddress,
        /// As over UDP.
        ports: Vec<u16>,
    },
}

/// Which servers to trust.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// Certificates in PEM form: of the server itself (one that it signed for itself will do), or of authorities. Only
    /// these are trusted.
    pub trusted_file: PathBuf,
    /// The name that an authority must have certified; `host` where it is left out. It does not matter for a
    /// certificate that is in the file itself.
    #[serde(default)]
    pub server_name: Option<String>,
}

/// A MAC address, such as `02:00:00:00:00:01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct MacAddress(pub [u8; 6]);

impl TryFrom<String> for MacAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let byte = |digits: &str| match digits.len() {
            // A sign would be taken for a digit.
            2 if !digits.starts_with('+') => u8::from_str_radix(digits, 16).ok(),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
        let bytes = bytes.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
        bytes
            .map(Self)
            .ok_or_else(|| format!("a MAC address is like 02:00:00:00:00:01, not {text}"))
    }
}

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// memcached's `get` and `set`.
    MemcachedText,
    /// memcached's `mg` and `ms`.
    MemcachedMeta,
    /// Redis.
    Resp,
    /// Many requests in a datagram, as `wire::batch` has them.
    Batch,
}

/// The keys of the data set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeysConfig {
    /// How many there are before inserts add to them.
    pub count: u64,
    /// How long they are.
    pub size: SizeConfig,
}

/// How long keys or values are.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SizeConfig {
    /// All the same.
    Fixed {
        /// Size in bytes.
        bytes: usize,
    },
    /// Facebook's ETC pool (Atikoglu et al., "Workload Analysis of a Large-Scale Key-Value Store", SIGMETRICS 2012).
    Etc {},
    /// Its USR pool.
    Usr {},
    /// Its APP pool.
    App {},
    /// Its VAR pool.
    Var {},
    /// Its SYS pool.
    Sys {},
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

fn ten() -> f64 {
    10.0
}

impl ClientConfig {
    /// The most connections.
    pub const MAX_CONNECTIONS: usize = 100_000;
    /// The most requests outstanding on all connections together.
    pub const MAX_OUTSTANDING: usize = 1_000_000;
    /// The most keys.
    pub const MAX_KEYS: u64 = 1 << 40;
    /// The latest expiry: 30 days, as memcached takes more for a date.
    pub const MAX_EXPIRE_SECONDS: usize = 30 * 24 * 3600;
    /// The longest value, in bytes.
    pub const MAX_VALUE_BYTES: usize = 32 << 20;

    /// Parse and check. An error names the field and its bounds.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        let config: Self = parse("load configuration", json)?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), Error> {
        let Self {
            connections,
            pipeline,
            multiget,
            ..
        } = *self;
        within("connections", connections, 1, Self::MAX_CONNECTIONS)?;
        within("pipeline", pipeline, 1, 65_536)?;
        within("multiget", multiget, 1, 1024)?;
        require!(
            connections * pipeline <= Self::MAX_OUTSTANDING,
            "{connections} connections with {pipeline} requests outstanding on each are more than {} requests; \
             lower connections or pipeline",
            Self::MAX_OUTSTANDING
        );
        require!(
            connections * pipeline * multiget <= 8 * Self::MAX_OUTSTANDING,
            "{connections} connections with {pipeline} requests of {multiget} keys outstanding on each are more \
             than {} keys; lower connections, pipeline or multiget",
            8 * Self::MAX_OUTSTANDING
        );
        self.check_datagrams()?;
        require!(
            self.flags == 0 || self.protocol != Protocol::Resp,
            "flags must be 0, not {}: Redis has none",
            self.flags
        );
        within(
            "expire_seconds",
            self.expire_seconds as usize,
            0,
            Self::MAX_EXPIRE_SECONDS,
        )?;
        let members = self.target.members();
        require!(
            connections * members <= Self::MAX_CONNECTIONS,
            "{connections} connections to each of {members} workers are more than {}; lower connections",
            Self::MAX_CONNECTIONS
        );
        let different: HashSet<_> = self.cores.iter().collect();
        require!(
            different.len() == self.cores.len(),
            "cores {:?} names a core twice",
            self.cores
        );
        require!(
            self.cores.len() <= connections,
            "{} cores need at least as many connections, not {connections}",
            self.cores.len()
        );
        require!(
            (1..=Self::MAX_KEYS).contains(&self.keys.count),
            "keys.count must be between 1 and {}, not {}",
            Self::MAX_KEYS,
            self.keys.count
        );
        if let SizeConfig::Fixed { bytes } = self.values {
            within("values.bytes", bytes, 0, Self::MAX_VALUE_BYTES)?;
        }
        require!(
            self.stall_timeout_seconds > 0.0 && self.stall_timeout_seconds <= 86_400.0,
            "stall_timeout_seconds must be positive and at most a day, not {}",
            self.stall_timeout_seconds
        );
        Ok(())
    }

    /// What every item is given beside its value.
    pub(crate) fn attributes(&self) -> Attributes {
        Attributes {
            flags: self.flags,
            expire_seconds: self.expire_seconds,
        }
    }

    /// What only datagrams have, and what they have not.
    fn check_datagrams(&self) -> Result<(), Error> {
        let is_batch = self.protocol == Protocol::Batch;
        let (Target::Udp { ports, .. } | Target::Xdp { ports, .. }) = &self.target else {
            require!(
                self.batch == 1,
                "batch is for datagrams; over connections, choose pipeline"
            );
            require!(
                !is_batch,
                "protocol batch needs a target of kind udp or xdp"
            );
            return Ok(());
        };
        require!(
            is_batch || self.protocol == Protocol::MemcachedText,
            "over udp and xdp, protocol must be memcached_text or batch"
        );
        // Each thread needs a way to each of them.
        let threads = self.cores.len().max(1);
        within("ports", ports.len(), 1, self.connections / threads)?;
        within("pipeline", self.pipeline, 1, SLOTS_MAX)?;
        within("batch", self.batch, 1, if is_batch { 1024 } else { 1 })?;
        require!(
            self.multiget == 1,
            "over udp and xdp, multiget must be 1; choose batch"
        );
        if let SizeConfig::Fixed { bytes } = self.values {
            within("values.bytes", bytes, 0, DATAGRAM_VALUE_BYTES_MAX)?;
        }
        let Target::Xdp {
            source,
            destination,
            ..
        } = &self.target
        else {
            return Ok(());
        };
        require!(
            source.is_ipv4() == destination.is_ipv4(),
            "source {source} and destination {destination} must be of one version of IP"
        );
        let behind = usize::from(u16::MAX - source.port());
        require!(
            source.port() > 0 && self.connections <= behind + 1,
            "source {source} needs a port with {} ports behind it, one for each connection",
            self.connections - 1
        );
        Ok(())
    }
}

impl Target {
    /// Streams of a connection: one to each of the server's workers that has keys of its own.
    pub(crate) fn members(&self) -> usize {
        match self {
            Self::Tcp { own_ports, .. } => own_ports.len().max(1),
            Self::Unix { own_paths, .. } => own_paths.len().max(1),
            Self::Udp { .. } | Self::Xdp { .. } => 1,
        }
    }
}

/// Values that are sure to fit in a datagram with all that goes with them.
const DATAGRAM_VALUE_BYTES_MAX: usize = 1024;

fn within(what: &str, value: usize, least: usize, most: usize) -> Result<(), Error> {
    require!(
        (least..=most).contains(&value),
        "{what} must be between {least} and {most}, not {value}"
    );
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
