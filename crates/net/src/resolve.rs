use crate::{Endpoint, Error};
use std::net::ToSocketAddrs;

impl Endpoint {
    /// Every TCP endpoint that `host` (a name or an address) stands for, in the resolver's order and never empty.
    pub fn resolve(host: &str, port: u16) -> Result<Vec<Self>, Error> {
        let failed = |reason| Error::Resolve(host.to_owned(), reason);
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
