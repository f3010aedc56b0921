use crate::address::ListenAddress;
use crate::options::Options;
use crate::server::Error;
use net::{Endpoint, ListenOptions, Listener};
use std::io;

/// Where clients may come to.
pub(crate) struct Door {
    pub listener: Listener,
    /// Whether what is said there is encrypted.
    pub is_tls: bool,
}

/// Everything that `options` say to listen on.
pub(crate) fn listen(options: &Options) -> Result<Vec<Door>, Error> {
    let mut listeners = Vec::new();
    let how = ListenOptions {
        backlog: options.backlog,
        unix_mode: Some(options.unix_socket_mode),
        ..ListenOptions::default()
    };
    if let Some(path) = &options.unix_socket {
        let how = (how, false, None);
        listen_on(vec![Endpoint::Unix(path.clone())], how, &mut listeners)?;
        return Ok(listeners);
    }
    let mut known = Vec::new();
    for text in &options.listen {
        let address = ListenAddress::parse(text).map_err(|reason| Error::Address {
            text: text.clone(),
            reason,
        })?;
        let is_tls = options.tls.is_some() && !address.is_plain;
        let port = address.port.unwrap_or(options.port);
        let mut endpoints =
            Endpoint::resolve(address.host, port).map_err(|source| Error::Setup {
                source,
                advice: "Give -l an address of this host, such as 127.0.0.1",
            })?;
        // A port to be picked is another one each time that it is asked for by name.
        if address.port != Some(0) {
            endpoints.retain(|endpoint| !known.contains(endpoint));
            known.extend(endpoints.iter().cloned());
        }
        listen_on(endpoints, (how, is_tls, address.port), &mut listeners)?;
    }
    Ok(listeners)
}

/// Listen on what one name stands for. One of its addresses must do: a host may know `localhost` as `::1` and yet
/// have no IPv6.
fn listen_on(
    endpoints: Vec<Endpoint>,
    (how, is_tls, port): (ListenOptions, bool, Option<u16>),
    doors: &mut Vec<Door>,
) -> Result<(), Error> {
    let mut missing = None;
    let mut any = endpoints.is_empty();
    // Where the port is to be picked: the server's is the same everywhere, one that is asked for apart is not.
    let mut first = match port {
        None => doors.first().map(|door| door.listener.endpoint().clone()),
        Some(_) => None,
    };
    for endpoint in endpoints {
        let endpoint = same_port(endpoint, first.as_ref());
        match Listener::bind(&endpoint, how) {
            Ok(listener) => {
                first.get_or_insert_with(|| listener.endpoint().clone());
                doors.push(Door { listener, is_tls });
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
fn same_port(endpoint: Endpoint, first: Option<&Endpoint>) -> Endpoint {
    match (endpoint, first) {
        (Endpoint::Tcp(mut address), Some(Endpoint::Tcp(first))) if address.port() == 0 => {
            address.set_port(first.port());
            Endpoint::Tcp(address)
        }
        (endpoint, _) => endpoint,
    }
}
