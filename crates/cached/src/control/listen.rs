use super::address::ListenAddress;
use super::error::Error;
use crate::options::Options;
use net::{DatagramSocket, Endpoint, ListenOptions, Listener};
use std::io;
use std::sync::Arc;

/// A socket that is listened on.
pub(crate) struct Listening {
    pub listener: Listener,
    /// The worker that serves those that come here; `None` for all in turn.
    pub worker: Option<usize>,
    /// Whether what is said there is encrypted.
    pub is_tls: bool,
}

/// Everything that `options` say to listen on.
pub(crate) fn listen(options: &Options) -> Result<Vec<Listening>, Error> {
    let mut listeners = Vec::new();
    let how = how(options);
    if let Some(path) = &options.unix_socket {
        let how = (how, false, None);
        listen_on(vec![Endpoint::Unix(path.clone())], how, &mut listeners)?;
        return Ok(listeners);
    }
    let mut known = Vec::new();
    for text in &options.listen {
        let address = parse(text)?;
        let is_tls = options.tls.is_some() && !address.is_plain;
        let port = address.port.unwrap_or(options.port);
        let mut endpoints = resolve(address.host, port)?;
        // A port to be picked is another one each time that it is asked for by name.
        if address.port != Some(0) {
            endpoints.retain(|endpoint| !known.contains(endpoint));
            known.extend(endpoints.iter().cloned());
        }
        listen_on(endpoints, (how, is_tls, address.port), &mut listeners)?;
    }
    Ok(listeners)
}

/// A listener for each worker, where each has keys of its own: the ports behind the common one, or PATH.0, PATH.1 and so on.
/// A client that knows the partition map saves the server a move between workers. The common one is the first of `common`, and they
/// are encrypted if that is.
pub(crate) fn worker_listeners(
    options: &Options,
    common: &[Listening],
) -> Result<Vec<Listening>, Error> {
    let mut own = Vec::new();
    let Some(first) = common.first().filter(|_| options.parts() > 1) else {
        return Ok(own);
    };
    // As it was asked for, which may be by the address.
    let asked = options.listen.first().map(|text| parse(text)).transpose()?;
    let port = asked.and_then(|address| address.port);
    let port = port.unwrap_or(options.port);
    for worker in 0..options.threads {
        let endpoint = match first.listener.endpoint().clone() {
            Endpoint::Tcp(mut address) => {
                address.set_port(own_port(port, worker, options)?);
                Endpoint::Tcp(address)
            }
            Endpoint::Unix(mut path) => {
                path.as_mut_os_string().push(format!(".{worker}"));
                Endpoint::Unix(path)
            }
        };
        // Not as `listen_on` does: each has a port of its own.
        let listener = Listener::bind(&endpoint, how(options)).map_err(Error::Listen)?;
        own.push(Listening {
            listener,
            worker: Some(worker),
            is_tls: first.is_tls,
        });
    }
    Ok(own)
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
    let bind = |address, is_shared| DatagramSocket::bind(address, is_shared).map(Arc::new);
    let mut known = Vec::new();
    for text in &options.listen {
        // A port behind the address is that of TCP.
        for endpoint in resolve(parse(text)?.host, port)? {
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
                    Err(error) if worker == 0 && is_missing(&error) => break,
                    socket => socket.map_err(Error::Listen)?,
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
    if options.parts() > 1 {
        for (worker, sockets) in workers.iter_mut().enumerate() {
            let mut address = first;
            address.set_port(own_port(port, worker, options)?);
            sockets.push(bind(address, false).map_err(Error::Listen)?);
        }
    }
    Ok(workers)
}

fn parse(text: &str) -> Result<ListenAddress<'_>, Error> {
    ListenAddress::parse(text).map_err(|reason| Error::Address(text.to_owned(), reason))
}

fn resolve(host: &str, port: u16) -> Result<Vec<Endpoint>, Error> {
    Endpoint::resolve(host, port).map_err(|error| Error::Setup(error, OTHER_ADDRESS))
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
    (how, is_tls, port): (ListenOptions, bool, Option<u16>),
    listeners: &mut Vec<Listening>,
) -> Result<(), Error> {
    let mut missing = None;
    let mut any = endpoints.is_empty();
    // Where the port is to be picked: the server's is the same everywhere, one that is asked for apart is not.
    let mut first = match port {
        None => listeners
            .first()
            .map(|first| first.listener.endpoint().clone()),
        Some(_) => None,
    };
    for endpoint in endpoints {
        let endpoint = same_port(endpoint, first.as_ref());
        match Listener::bind(&endpoint, how) {
            Ok(listener) => {
                first.get_or_insert_with(|| listener.endpoint().clone());
                listeners.push(Listening {
                    listener,
                    worker: None,
                    is_tls,
                });
                any = true;
            }
            Err(error) if is_missing(&error) => missing = Some(error),
            Err(error) => return Err(Error::Listen(error)),
        }
    }
    match missing {
        Some(error) if !any => Err(Error::Setup(error, OTHER_ADDRESS)),
        _ => Ok(()),
    }
}

const OTHER_ADDRESS: &str = "Give -l an address of this host, such as 127.0.0.1";

fn is_missing(error: &net::Error) -> bool {
    matches!(error, net::Error::Listen(_, source) | net::Error::ListenForDatagrams(_, source) if matches!(
        source.kind(),
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported
    ) || source.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error()))
}

/// A name may stand for several addresses: where the port is to be picked, they all get the first one's.
fn same_port(endpoint: Endpoint, first: Option<&Endpoint>) -> Endpoint {
    match (endpoint, first) {
        (Endpoint::Tcp(mut address), Some(Endpoint::Tcp(first))) if address.port() == 0 => {
            address.set_port(first.port());
            Endpoint::Tcp(address)
        }
        (endpoint, _) => endpoint,
    }
}
