//! The network interface whose datagrams are served over AF_XDP: what is taken from it, and by which worker.

use super::Error;
use super::datagrams::{Queue, Source};
use crate::options::Options;
use net::DatagramSocket;
use std::fmt::{self, Display};
use std::net::IpAddr;
use std::sync::Arc;
use wire::memcached::datagram::{DATAGRAM_BYTES_MAX, FRAME_BYTES};
use xdp::packet::{ETHERNET_BYTES, IPV6_BYTES, UDP_BYTES};
use xdp::{Attach, Attachment, Copying, Filter, HEADROOM_BYTES, Interface, Mode, Program, Socket};

/// The least MTU, in bytes: text is cut into datagrams of this length at most, and the kernel, which would cut packets
/// further, is not asked.
const MTU_LEAST: u32 = (DATAGRAM_BYTES_MAX + FRAME_BYTES + UDP_BYTES + IPV6_BYTES) as u32;

/// An interface some of whose datagrams do not go to the kernel, as long as this lives.
pub(crate) struct XdpInterface {
    interface: Interface,
    program: Program,
    attachment: Attachment,
    is_zero_copy: bool,
    zero_copy_refusal: Option<xdp::Error>,
}

/// Take the datagrams for `sockets` from the interface that `options` name, once there are workers to hand them to.
pub(crate) fn attach(
    options: &Options,
    sockets: &[Vec<Arc<DatagramSocket>>],
) -> Result<Option<XdpInterface>, Error> {
    let Some(name) = &options.interface else {
        return Ok(None);
    };
    let interface = Interface::by_name(name)?;
    if interface.mtu < MTU_LEAST {
        return Err(Error::ShortPackets {
            interface: interface.name,
            mtu: interface.mtu,
            least: MTU_LEAST,
        });
    }
    let filter = filter(name, sockets)?;
    let program = Program::load(&filter, interface.receive_queues)?;
    let attachment = program.attach(&interface, Attach::BestAvailable)?;
    Ok(Some(XdpInterface {
        interface,
        program,
        attachment,
        is_zero_copy: false,
        zero_copy_refusal: None,
    }))
}

/// What `sockets` listen to.
fn filter(interface: &str, sockets: &[Vec<Arc<DatagramSocket>>]) -> Result<Filter, Error> {
    let all = || sockets.iter().flatten().map(|socket| socket.address());
    // The common port, and behind it the workers' own.
    let ports = all().map(|address| address.port());
    let (first, last) = (ports.clone().min(), ports.max());
    let mut addresses: Vec<IpAddr> = all().map(|address| address.ip()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.retain(|address| !address.is_loopback());
    if addresses.is_empty() {
        return Err(Error::OnlyLoopback(interface.to_owned()));
    }
    if addresses.iter().any(IpAddr::is_unspecified) {
        addresses.clear();
    }
    Ok(Filter {
        ports: first.unwrap_or(0)..=last.unwrap_or(0),
        addresses,
    })
}

impl XdpInterface {
    /// Take all queues of the interface: those of each of `workers`, which have them in turn, so that a client that
    /// chooses the queue chooses the worker.
    pub(crate) fn open(
        &mut self,
        workers: usize,
        sockets: &[Vec<Arc<DatagramSocket>>],
    ) -> Result<Vec<Vec<Source>>, Error> {
        let kernel_sockets: Arc<[_]> = sockets.iter().flatten().cloned().collect();
        let mut queues: Vec<Vec<_>> = (0..workers).map(|_| Vec::new()).collect();
        for number in 0..self.interface.receive_queues {
            let socket = self.bind(number)?;
            self.program.register(&socket)?;
            let mtu = self.interface.mtu as usize;
            let queue = Queue::new(socket, mtu, Arc::clone(&kernel_sockets));
            queues[number as usize % workers].push(Source::Queue(Box::new(queue)));
        }
        Ok(queues)
    }

    fn bind(&mut self, queue: u32) -> Result<Socket, xdp::Error> {
        let mut options = xdp::Options::default();
        if self.interface.mtu > options.frame_bytes - HEADROOM_BYTES - ETHERNET_BYTES as u32 {
            options.frame_bytes = 4096;
        }
        if self.attachment.mode() == Mode::Native && self.zero_copy_refusal.is_none() {
            options.copying = Copying::ZeroCopy;
            match Socket::bind(&self.interface, queue, &options) {
                Err(refusal @ xdp::Error::ZeroCopyRefused { .. }) => {
                    self.zero_copy_refusal = Some(refusal);
                }
                socket => {
                    self.is_zero_copy = socket.is_ok();
                    return socket;
                }
            }
        }
        options.copying = Copying::Copy;
        Socket::bind(&self.interface, queue, &options)
    }
}

impl Display for XdpInterface {
    /// `eth0: native, copied, 2 queues (zero-copy refused: ...)`
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.attachment.mode() {
            Mode::Native => "native",
            Mode::Generic => "generic",
        };
        // Some queues may have what others were refused: then the refusal says it.
        let copying = match (self.is_zero_copy, &self.zero_copy_refusal) {
            (true, None) => "zero-copy",
            _ => "copied",
        };
        let (name, queues) = (&self.interface.name, self.interface.receive_queues);
        let plural = if queues == 1 { "" } else { "s" };
        write!(
            formatter,
            "{name}: {mode}, {copying}, {queues} queue{plural}"
        )?;
        if let Some(xdp::Error::NativeRefused(_, error, advice)) = self.attachment.native_refusal()
        {
            write!(formatter, " (native refused: {error}. {advice})")?;
        }
        if let Some(xdp::Error::ZeroCopyRefused(.., error)) = &self.zero_copy_refusal {
            write!(formatter, " (zero-copy refused: {error})")?;
        }
        Ok(())
    }
}
