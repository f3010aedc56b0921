use crate::error::Error;
use crate::options::{Access, Options};
use net::{Endpoint, ListenOptions, Listener};
use std::io;

/// Everything that `options` say to listen on.
pub(crate) fn listen(options: &Options) -> Result<Vec<Listener>, Error> {
    let mut listeners = Vec::new();
    let how = how(options);
    if let Some(path) = &options.unix_socket {
        listen_on(vec![Endpoint::Unix(path.clone())], how, &mut listeners)?;
        return Ok(listeners);
    }
    let mut known = Vec::new();
    for host in &options.listen {
        let mut endpoints =
            Endpoint::resolve(host, options.port).map_err(|source| Error::Setup {
                source,
                advice: "Give -l an address of this host, such as 127.0.0.1",
            })?;
        endpoints.retain(|endpoint| !known.contains(endpoint));
        known.extend(endpoints.iter().cloned());
        listen_on(endpoints, how, &mut listeners)?;
    }
    Ok(listeners)
}

/// A door for each worker, where each has keys of its own: the ports behind the common one, or PATH.0, PATH.1 and so on.
/// A client that knows the partition map saves the server a detour.
pub(crate) fn doors(options: &Options, common: &[Listener]) -> Result<Vec<Listener>, Error> {
    let mut doors = Vec::new();
    if options.threads == 1 || options.access == Access::Crcw {
        return Ok(doors);
    }
    let Some(first) = common.first().map(Listener::endpoint) else {
        return Ok(doors);
    };
    for worker in 0..options.threads {
        let endpoint = match first.clone() {
            Endpoint::Tcp(mut address) => {
                // A free one, where the common one is too.
                let port = match options.port {
                    0 => Some(0),
                    port => u16::try_from(worker + 1)
                        .ok()
                        .and_then(|offset| port.checked_add(offset)),
                };
                address.set_port(port.ok_or(Error::TooFewPorts {
                    port: options.port,
                    workers: options.threads,
                })?);
                Endpoint::Tcp(address)
            }
            Endpoint::Unix(mut path) => {
                path.as_mut_os_string().push(format!(".{worker}"));
                Endpoint::Unix(path)
            }
        };
        // Not as `listen_on` does: each has a port of its own.
        let door = Listener::bind(&endpoint, how(options));
        doors.push(door.map_err(|source| Error::Listen { source })?);
    }
    Ok(doors)
}

fn how(options: &Options) -> ListenOptions {
    ListenOptions {
        backlog: options.backlog,
        unix_mode: Some(options.unix_socket_mode),
        ..ListenOptions::default()
    }
}

/// Listen on what one name stands for. One of its addresses must do: a host may know `localhost` as `::1` and yet
/// have no IPv6.
fn listen_on(
    endpoints: Vec<Endpoint>,
    how: ListenOptions,
    listeners: &mut Vec<Listener>,
) -> Result<(), Error> {
    let mut missing = None;
    let mut any = endpoints.is_empty();
    for endpoint in endpoints {
        let endpoint = same_port(endpoint, listeners.first());
        match Listener::bind(&endpoint, how) {
            Ok(listener) => {
                listeners.push(listener);
                any = true;
            }
            Err(source) if is_missing(&source) => missing = Some(source),
            Err(source) => return Err(Error::Listen { source }),
        }
    }
    match missing {
        Some(source) if !any => Err(Error::Setup {
            source,
            advice: "Give -l an address of this host, such as 127.0.0.1",
        }),
        _ => Ok(()),
    }
}

fn is_missing(error: &net::Error) -> bool {
    matches!(error, net::Error::Listen { source, .. } if matches!(
        source.kind(),
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported
    ) || source.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error()))
}

/// A name may stand for several addresses: where the port is to be picked, they all get the first one's.
fn same_port(endpoint: Endpoint, first: Option<&Listener>) -> Endpoint {
    match (endpoint, first.map(Listener::endpoint)) {
        (Endpoint::Tcp(mut address), Some(Endpoint::Tcp(first))) if address.port() == 0 => {
            address.set_port(first.port());
            Endpoint::Tcp(address)
        }
        (endpoint, _) => endpoint,
    }
}
