use crate::Error;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// An internet address and port.
    Tcp(SocketAddr),
    /// A unix stream socket in the file system (at most 107 bytes of path, as `unix(7)` says).
    Unix(PathBuf),
}

impl Endpoint {
    /// Every TCP endpoint that `host` (a name or an address) stands for, in the resolver's order and never empty.
    ///
    /// # Errors
    /// [`Error::Resolve`] when the name does not resolve.
    pub fn resolve(host: &str, port: u16) -> Result<Vec<Self>, Error> {
        let failed = |reason: String| Error::Resolve {
            host: host.to_owned(),
            reason,
        };
        let found: Vec<Self> = (host, port)
            .to_socket_addrs()
            .map_err(|error| failed(error.to_string()))?
            .map(Self::Tcp)
            .collect();
        if found.is_empty() {
            return Err(failed("the resolver gave no address".to_owned()));
        }
        Ok(found)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(formatter, "{address}"),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}
