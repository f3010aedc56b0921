//! What the generator is told, as it crosses from Python: JSON in which every mistake is named.
//!
//! How a server is reached and what is spoken, in the JSON of a [`ClientConfig`]:
//!
//! | wanted | `target` | `protocol` |
//! |---|---|---|
//! | TCP | `{"kind": "tcp", "host": "127.0.0.1", "port": 11211}` | `memcached_text`, `memcached_meta`, `resp` |
//! | TLS | `{"kind": "tcp", "host": ..., "port": ..., "tls": {"trusted_file": "ca.pem", "server_name": "cache"}}` (`server_name`: `host` if left out) | likewise |
//! | unix socket | `{"kind": "unix", "path": "/run/cache.sock"}` | likewise |
//! | UDP | `{"kind": "udp", "host": "127.0.0.1", "ports": [11211], "joined": true}` | `memcached_text`, or `batch` with `"batch": 16` requests a datagram |
//! | AF_XDP | `{"kind": "xdp", "interface": "veth0", "source": "10.0.0.1:40000", "destination": "10.0.0.2", "destination_mac": "02:00:00:00:00:01", "ports": [11211]}` | likewise |
//!
//! **Partition map** (each of the server's workers has keys of its own, and requests go to the worker that the key
//! belongs to): over TCP `"own_ports": [port of worker 0, ...]` beside `port`, over unix sockets `"own_paths": [...]`,
//! over UDP and AF_XDP several `ports`.

/// Refuse with a sentence unless something holds.
macro_rules! require {
    ($holds:expr, $($sentence:tt)+) => {
        let holds: bool = $holds;
        if !holds {
            return Err(Error::Config(format!($($sentence)+)));
        }
    };
}

mod client;
mod phase;

pub use client::{ClientConfig, KeysConfig, MacAddress, Protocol, SizeConfig, Target, TlsConfig};
pub use phase::{ArrivalKind, DistributionConfig, LoopConfig, PhaseConfig};

use crate::Error;
use serde::de::DeserializeOwned;

/// Parse JSON; `what` names it in the error.
fn parse<T: DeserializeOwned>(what: &str, json: &str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|error| Error::Config(format!("{what}: {error}")))
}
