//! What must be known of a network interface.

use crate::Error;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
use std::io;

/// A network interface of the calling thread's network namespace, as it was when it was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number in the kernel.
    pub index: u32,
    /// The longest IP packet that it carries, in bytes.
    pub mtu: u32,
    /// Its MAC address.
    pub hardware_address: [u8; 6],
    /// How many queues it receives on.
    pub receive_queues: u32,
    /// How many queues it transmits on.
    pub transmit_queues: u32,
}

/// The longest name of an interface, in bytes (`IFNAMSIZ` without the zero).
const NAME_BYTES_MAX: usize = 15;

/// `ETHTOOL_GCHANNELS`
const ETHTOOL_GET_CHANNELS: u32 = 0x3c;

/// `struct ethtool_channels`
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    max_receive: u32,
    max_transmit: u32,
    max_other: u32,
    max_combined: u32,
    receive: u32,
    transmit: u32,
    other: u32,
    combined: u32,
}

/// `struct ifreq`: a name and a union, here as bytes. The union is 24 bytes where pointers are 8.
#[repr(C, align(8))]
struct Request {
    name: [u8; NAME_BYTES_MAX + 1],
    data: [u8; 24],
}

impl Interface {
    /// Look an interface up.
    pub fn by_name(name: &str) -> Result<Self, Error> {
        let missing = || Error::no_such_interface(name);
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(['\0', '/']) {
            return Err(missing());
        }
        let failed = |doing: &str, source: io::Error| match source.raw_os_error() {
            Some(libc::ENODEV | libc::ENXIO) => missing(),
            _ => Error::system(format!("{doing} of interface {name}"), source),
        };
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        let socket = socket_with(AddressFamily::INET, kind, flags, None)
            .map_err(|error| failed("read the number", error.into()))?;
        let index = netdevice::name_to_index(&socket, name)
            .map_err(|error| failed("read the number", error.into()))?;
        let mtu =
            ask(&socket, name, Question::Mtu).map_err(|error| failed("read the MTU", error))?;
        let address = ask(&socket, name, Question::HardwareAddress)
            .map_err(|error| failed("read the MAC address", error))?;
        let (receive_queues, transmit_queues) = match channels(&socket, name) {
            Ok(queues) => queues,
            // Not every driver answers.
            Err(_) => (folders(name, index, "rx-"), folders(name, index, "tx-")),
        };
        // Behind the two bytes that say which kind of address it is.
        let [_, _, a, b, c, d, e, f, ..] = address;
        Ok(Self {
            name: name.to_owned(),
            index,
            mtu: u32::from_ne_bytes([mtu[0], mtu[1], mtu[2], mtu[3]]),
            hardware_address: [a, b, c, d, e, f],
            receive_queues,
            transmit_queues,
        })
    }

    /// Whether it is still there, seen from the calling thread.
    pub(crate) fn is_there(&self) -> bool {
        Self::by_name(&self.name).is_ok_and(|found| found.index == self.index)
    }
}

/// Queues that receive and that transmit, as the driver tells.
fn channels(socket: &OwnedFd, name: &str) -> io::Result<(u32, u32)> {
    let mut channels = Channels::default();
    ask(socket, name, Question::Channels(&mut channels))?;
    let queues = |own: u32| own.saturating_add(channels.combined).max(1);
    Ok((queues(channels.receive), queues(channels.transmit)))
}

/// Queues by what /sys shows, at least one.
fn folders(name: &str, index: u32, prefix: &str) -> u32 {
    let folder = format!("/sys/class/net/{name}");
    // It may show the interfaces of another network namespace.
    let shown = std::fs::read_to_string(format!("{folder}/ifindex"));
    if !shown.is_ok_and(|shown| shown.trim() == index.to_string()) {
        return 1;
    }
    let queues = std::fs::read_dir(format!("{folder}/queues")).map(|entries| {
        let names = entries.flatten().map(|entry| entry.file_name());
        names
            .filter(|name| name.to_string_lossy().starts_with(prefix))
            .count()
    });
    u32::try_from(queues.unwrap_or(0)).unwrap_or(1).max(1)
}

/// What is asked of an interface.
enum Question<'a> {
    Mtu,
    HardwareAddress,
    Channels(&'a mut Channels),
}

/// Ask by ioctl(2); the answer is the union of `struct ifreq` (netdevice(7)), or in the channels.
fn ask(socket: &OwnedFd, name: &str, question: Question<'_>) -> io::Result<[u8; 24]> {
    let mut request = Request {
        name: [0; NAME_BYTES_MAX + 1],
        data: [0; 24],
    };
    let length = name.len().min(NAME_BYTES_MAX);
    request.name[..length].copy_from_slice(&name.as_bytes()[..length]);
    let code = match question {
        Question::Mtu => libc::SIOCGIFMTU,
        Question::HardwareAddress => libc::SIOCGIFHWADDR,
        Question::Channels(channels) => {
            channels.command = ETHTOOL_GET_CHANNELS;
            let address = std::ptr::from_mut(channels).expose_provenance();
            request.data[..size_of::<usize>()].copy_from_slice(&address.to_ne_bytes());
            libc::SIOCETHTOOL
        }
    };
    // SAFETY: the request has the size of `struct ifreq` or more, and the kernel writes to nothing else, except for
    // SIOCETHTOOL with ETHTOOL_GCHANNELS, which fills the channels that the question borrows.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), code as _, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(request.data)
}

#[cfg(test)]
mod tests;
