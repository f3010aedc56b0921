use crate::error::Error;
use crate::options::{Access, Options};
use net::{DatagramSocket, Endpoint, ListenOptions, Listener};
use std::io;
use std::sync::Arc;

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
        let mut endpoints = resolve(host, options.port)?;
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
                address.set_port(own_port(options.port, worker, options)?);
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

/// The sockets for datagrams of each worker: one for each address, among which the kernel spreads senders, and one of
/// its own, where each has keys of its own.
pub(crate) fn listen_for_datagrams(
    options: &Options,
) -> Result<Vec<Vec<Arc<DatagramSocket>>>, Error> {
    let mut workers: Vec<Vec<_>> = (0..options.threads).map(|_| Vec::new()).collect();
    let Some(port) = options.udp_port else {
        return Ok(workers);
    };
    let bind = |address, is_shared| match DatagramSocket::bind(address, is_shared) {
        Ok(socket) => Ok(Arc::new(socket)),
        Err(source) => Err(Error::Listen { source }),
    };
    let mut known = Vec::new();
    for host in &options.listen {
        for endpoint in resolve(host, port)? {
            let Endpoint::Tcp(mut address) = endpoint else {
                continue;
            };
            if known.contains(&address) {
                continue;
            }
            known.push(address);
            for (worker, sockets) in workers.iter_mut().enumerate() {
                let socket = match bind(address, options.threads > 1) {
                    // A host may know `localhost` as `::1` and yet have no IPv6.
                    Err(Error::Listen { source }) if worker == 0 && is_missing(&source) => break,
                    socket => socket?,
                };
                // All of them share the free port that the first one got.
                address = socket.address();
                sockets.push(socket);
            }
        }
    }
    let Some(first) = workers[0].first().map(|socket| socket.address()) else {
        return Err(Error::NoDatagramAddress);
    };
    if options.threads > 1 && options.access != Access::Crcw {
        for (worker, sockets) in workers.iter_mut().enumerate() {
            let mut address = first;
            address.set_port(own_port(port, worker, options)?);
            sockets.push(bind(address, false)?);
        }
    }
    Ok(workers)
}

fn resolve(host: &str, port: u16) -> Result<Vec<Endpoint>, Error> {
    Endpoint::resolve(host, port).map_err(|source| Error::Setup {
        source,
        advice: "Give -l an address of this host, such as 127.0.0.1",
    })
}

/// The port of a worker's own behind the common one; a free one, where that is free too.
fn own_port(common: u16, worker: usize, options: &Options) -> Result<u16, Error> {
    if common == 0 {
        return Ok(0);
    }
    let offset = u16::try_from(worker + 1).ok();
    let port = offset.and_then(|offset| common.checked_add(offset));
    port.ok_or(Error::TooFewPorts {
        port: common,
        workers: options.threads,
    })
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
    matches!(error, net::Error::Listen { source, .. } | net::Error::ListenForDatagrams { source, .. } if matches!(
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
