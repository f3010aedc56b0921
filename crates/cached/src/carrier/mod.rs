//! How bytes get from and to clients.
//!
//! * [`worker`]: the loop of a worker's thread, over either carrier: [`epoll`] or [`ring`] (io_uring). Idle time-outs and
//!   the inbox are there, and what all connections of a worker have is in [`connections`]. [`workers`] makes them.
//! * [`connection`]: a stream over epoll; [`encrypted`]: what it does otherwise where [`tls`] encrypts it.
//! * [`datagrams`]: one request a datagram or many, from the kernel or over AF_XDP, which [`xdp_interface`] sets up.

pub(crate) mod connection;
pub(crate) mod connections;
pub(crate) mod datagrams;
mod encrypted;
mod epoll;
pub(crate) mod error;
pub(crate) mod inbox;
mod ring;
pub(crate) mod tls;
pub(crate) mod worker;
pub(crate) mod workers;
pub(crate) mod xdp_interface;

pub(crate) use error::Error;

use crate::options::{Options, Transport};
use net::Ring;

/// The transport that `options` come to here: the best of those that are asked for and that the kernel has.
pub(crate) fn choose(options: &Options) -> Result<Transport, Error> {
    if options.transport == Transport::Epoll {
        return Ok(Transport::Epoll);
    }
    let missing = if options.parts() > 1 {
        Some("does not move connections between workers, as --access erew and crew need")
    } else if options.udp_port.is_some() {
        Some("serves no datagrams")
    } else if options.tls.is_some() {
        Some("encrypts nothing")
    } else {
        None
    };
    let error = match missing {
        Some(what) => Error::TransportLacks(what),
        None => match Ring::probe() {
            Ok(()) => return Ok(Transport::IoUring),
            Err(error) => Error::Transport(error),
        },
    };
    if options.transport == Transport::IoUring {
        return Err(error);
    }
    if options.verbosity > 0 {
        let reason = error.reason();
        eprintln!("rackscope-cached: {reason}; epoll serves instead");
    }
    Ok(Transport::Epoll)
}
