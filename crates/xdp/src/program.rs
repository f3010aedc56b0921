//! The program that hands datagrams to AF_XDP sockets, and leaves everything else to the kernel.

use crate::instruction::{
    If, Instruction, Line, Register, Size, add, and, assemble, call, copy, exit, half_from_network,
    jump, jump_if, jump_if_beyond, load, load_map, set,
};
use crate::packet::{
    ETHERNET_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, IPV4_BYTES, IPV6_BYTES, PROTOCOL_UDP, UDP_BYTES,
};
use crate::{Error, FILTER_ADDRESSES_MAX, Interface, Socket, bpf};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Which datagrams go to the sockets: UDP over IPv4 without options or over IPv6 without extension headers, whole (not
/// in fragments), without a VLAN tag, and as said here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Destination ports.
    pub ports: RangeInclusive<u16>,
    /// Destination addresses; all when empty. Say them where the host also forwards packets (to containers, virtual
    /// machines or other networks): those packets pass the interface too, and may be for the same ports elsewhere.
    pub addresses: Vec<IpAddr>,
}

/// Where in the kernel's path of a packet the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, before the kernel allocates anything for a packet. Takes a driver that can.
    Native,
    /// In the kernel's common code, for packets that already are socket buffers. Any driver; slower.
    Generic,
}

/// Which [`Mode`] to attach in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Attach {
    /// Native, else generic: see [`Attachment::native_refusal`].
    #[default]
    BestAvailable,
    /// This or nothing.
    Only(Mode),
}

/// A program in the kernel, and its map from queue to socket. It does nothing until it is [attached](Program::attach).
#[derive(Debug)]
pub struct Program {
    program: OwnedFd,
    sockets: OwnedFd,
    queues: u32,
}

/// A program at work on an interface, for as long as this lives: the kernel detaches it when the process ends, however
/// it ends.
#[derive(Debug)]
pub struct Attachment {
    _link: OwnedFd,
    mode: Mode,
    native_refusal: Option<Error>,
}

impl Program {
    /// Load a program for an interface of so many receive queues. Takes CAP_BPF and CAP_NET_ADMIN. A refusal has what
    /// the kernel's verifier says.
    pub fn load(filter: &Filter, queues: u32) -> Result<Self, Error> {
        if filter.ports.is_empty() || filter.addresses.len() > FILTER_ADDRESSES_MAX {
            return Err(Error::Other(format!(
                "cannot filter for ports {} to {} and {} addresses: give a range of ports that is not empty, and at most \
                 {FILTER_ADDRESSES_MAX} addresses",
                filter.ports.start(),
                filter.ports.end(),
                filter.addresses.len()
            )));
        }
        let sockets = bpf::create_socket_map(queues.max(1))
            .map_err(|source| Error::bpf("make a map of sockets", source))?;
        let instructions = instructions(filter, sockets.as_raw_fd());
        let program = bpf::load_program(&instructions).map_err(|(source, log)| {
            if log.is_empty() {
                Error::bpf("load the XDP program", source)
            } else {
                Error::Other(format!(
                    "the kernel's verifier refuses the XDP program: {source}. This is a defect of the program; the \
                     verifier says:\n{log}"
                ))
            }
        })?;
        Ok(Self {
            program,
            sockets,
            queues: queues.max(1),
        })
    }

    /// Hand the datagrams that arrive on `socket`'s queue to it, until it is closed. Those of queues without a socket
    /// go to the kernel. Refused where the program was loaded for fewer queues.
    pub fn register(&self, socket: &Socket) -> Result<(), Error> {
        if socket.queue() >= self.queues {
            return Err(Error::queue_out_of_range(
                socket.interface(),
                socket.queue(),
                self.queues,
            ));
        }
        bpf::set_socket(self.sockets.as_fd(), socket.queue(), socket.as_fd())
            .map_err(|source| Error::bpf("hand a queue to a socket", source))
    }

    /// Put the program to work on an interface. Fails when only native mode will do and the driver refuses
    /// ([`Error::NativeRefused`]), and when the interface has another program or went away.
    pub fn attach(&self, interface: &Interface, attach: Attach) -> Result<Attachment, Error> {
        match attach {
            Attach::Only(mode) => self.attach_in(interface, mode),
            Attach::BestAvailable => match self.attach_in(interface, Mode::Native) {
                Err(refusal @ Error::NativeRefused { .. }) => {
                    let mut attachment = self.attach_in(interface, Mode::Generic)?;
                    attachment.native_refusal = Some(refusal);
                    Ok(attachment)
                }
                attached => attached,
            },
        }
    }

    fn attach_in(&self, interface: &Interface, mode: Mode) -> Result<Attachment, Error> {
        let flags = match mode {
            Mode::Generic => 1 << 1, // XDP_FLAGS_SKB_MODE
            Mode::Native => 1 << 2,  // XDP_FLAGS_DRV_MODE
        };
        let link = bpf::create_link(self.program.as_fd(), interface.index, flags)
            .map_err(|source| attach_error(interface, mode, source))?;
        Ok(Attachment {
            _link: link,
            mode,
            native_refusal: None,
        })
    }
}

impl AsFd for Program {
    /// For bpf(2), which can run it over a frame.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }
}

impl Attachment {
    /// Where the program runs.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Why it does not run in native mode, when that was tried first.
    pub fn native_refusal(&self) -> Option<&Error> {
        self.native_refusal.as_ref()
    }
}

/// Of `enum xdp_action`.
const XDP_PASS: u32 = 2;

/// `bpf_redirect_map` in `enum bpf_func_id`.
const REDIRECT_MAP: u32 = 51;

// Members of `struct xdp_md`, in bytes from its start.
const CONTEXT_DATA: i16 = 0;
const CONTEXT_DATA_END: i16 = 4;
const CONTEXT_RECEIVE_QUEUE: i16 = 16;

// Positions in a frame, in bytes.
const NETWORK: usize = ETHERNET_BYTES;
const IPV4_TRANSPORT: usize = NETWORK + IPV4_BYTES;
const IPV6_TRANSPORT: usize = NETWORK + IPV6_BYTES;

/// Offsets within the headers are below a hundred.
const fn at(position: usize) -> i16 {
    position as i16
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Ipv6,
    /// Behind the comparison with one of the IPv6 addresses.
    Ipv6Address(usize),
    Ipv6Ports,
    Ipv4Ports,
    Ports,
    Pass,
}

/// The program. The verifier demands that a packet's end is looked at before its bytes are.
fn instructions(filter: &Filter, sockets: RawFd) -> Vec<Instruction> {
    use If::{Above, AnyBit, Below, Different, Equal};
    use Label::{Ipv4Ports, Ipv6, Ipv6Address, Ipv6Ports, Pass, Ports};
    use Register::{R0, R1, R2, R3, R4, R5, R6};
    use Size::{Byte, Half, Word};

    /// Two bytes of a packet as a load of a [`Half`](Size::Half) gives them.
    const fn half(value: u16) -> u32 {
        value.to_be() as u32
    }

    let all = filter.addresses.is_empty();
    let (mut ipv4, mut ipv6) = (Vec::new(), Vec::new());
    for address in &filter.addresses {
        match address {
            IpAddr::V4(address) => ipv4.push(address.octets()),
            IpAddr::V6(address) => ipv6.push(address.octets()),
        }
    }

    let mut lines = vec![
        copy(R6, R1),
        load(Word, R2, R1, CONTEXT_DATA),
        load(Word, R3, R1, CONTEXT_DATA_END),
        // Long enough for the shorter of the two?
        copy(R4, R2),
        add(R4, (IPV4_TRANSPORT + UDP_BYTES) as u32),
        jump_if_beyond(R4, R3, Pass),
        load(Half, R5, R2, at(12)),
    ];
    // What could never be reached would be refused, so that a family without an address has no code.
    if all || !ipv6.is_empty() {
        lines.push(jump_if(R5, Equal, half(ETHERTYPE_IPV6), Ipv6));
    }
    if all || !ipv4.is_empty() {
        lines.extend([
            jump_if(R5, Different, half(ETHERTYPE_IPV4), Pass),
            // Version 4 and a header of five words; neither "more fragments" nor an offset; UDP.
            load(Byte, R5, R2, at(NETWORK)),
            jump_if(R5, Different, 0x45, Pass),
            load(Half, R5, R2, at(NETWORK + 6)),
            jump_if(R5, AnyBit, half(0x3fff), Pass),
            load(Byte, R5, R2, at(NETWORK + 9)),
            jump_if(R5, Different, PROTOCOL_UDP.into(), Pass),
        ]);
        if !all {
            lines.push(load(Word, R5, R2, at(NETWORK + 16)));
            for address in ipv4 {
                lines.push(jump_if(R5, Equal, u32::from_ne_bytes(address), Ipv4Ports));
            }
            lines.push(jump(Pass));
        }
        lines.extend([
            Line::Label(Ipv4Ports),
            add(R2, IPV4_TRANSPORT as u32),
            jump(Ports),
        ]);
    } else {
        lines.push(jump(Pass));
    }
    if all || !ipv6.is_empty() {
        lines.extend([
            Line::Label(Ipv6),
            copy(R4, R2),
            add(R4, (IPV6_TRANSPORT + UDP_BYTES) as u32),
            jump_if_beyond(R4, R3, Pass),
            load(Byte, R5, R2, at(NETWORK)),
            and(R5, 0xf0),
            jump_if(R5, Different, 0x60, Pass),
            load(Byte, R5, R2, at(NETWORK + 6)),
            jump_if(R5, Different, PROTOCOL_UDP.into(), Pass),
        ]);
        for (position, address) in ipv6.iter().enumerate() {
            let next = Ipv6Address(position);
            for (word, bytes) in address.as_chunks::<4>().0.iter().enumerate() {
                lines.extend([
                    load(Word, R5, R2, at(NETWORK + 24 + 4 * word)),
                    jump_if(R5, Different, u32::from_ne_bytes(*bytes), next),
                ]);
            }
            lines.extend([jump(Ipv6Ports), Line::Label(next)]);
        }
        if !all {
            lines.push(jump(Pass));
        }
        lines.extend([Line::Label(Ipv6Ports), add(R2, IPV6_TRANSPORT as u32)]);
    }
    lines.extend([
        Line::Label(Ports),
        load(Half, R5, R2, at(2)),
        half_from_network(R5),
        jump_if(R5, Below, (*filter.ports.start()).into(), Pass),
        jump_if(R5, Above, (*filter.ports.end()).into(), Pass),
        // return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS)
        load(Word, R2, R6, CONTEXT_RECEIVE_QUEUE),
    ]);
    lines.extend(load_map(R1, sockets));
    lines.extend([
        set(R3, XDP_PASS),
        call(REDIRECT_MAP),
        exit(),
        Line::Label(Pass),
        set(R0, XDP_PASS),
        exit(),
    ]);
    // An empty program is refused by the kernel with a clear word; a test sees to it that the labels are there.
    assemble(&lines).unwrap_or_default()
}

/// What the kernel said when a program was attached.
fn attach_error(interface: &Interface, mode: Mode, source: io::Error) -> Error {
    let name = interface.name.clone();
    match (source.raw_os_error(), mode) {
        (Some(libc::EPERM), _) => Error::permission("attach an XDP program", "CAP_NET_ADMIN"),
        (Some(libc::EBUSY | libc::EEXIST), _) => Error::Other(format!(
            "interface {name} has another XDP program already: end the process that attached it, or `ip link set {name} \
             xdp off`"
        )),
        // The kernel has the same word for an interface that went away as for much else.
        (Some(libc::ENODEV | libc::EINVAL), _) if !interface.is_there() => {
            Error::no_such_interface(&name)
        }
        (Some(libc::EOPNOTSUPP), Mode::Native) => Error::NativeRefused(
            name,
            source,
            "It has no native XDP: use a card whose driver has".to_owned(),
        ),
        (_, Mode::Native) => Error::NativeRefused(
            name,
            source,
            format!(
                "Often the MTU is too large for it (here {}, and with veth the peer's counts; about 3500 with pages of 4 KiB), or it has too few queues (of veth, the peer may not transmit on more than are received on): lower the MTU or change the queues",
                interface.mtu
            ),
        ),
        (_, Mode::Generic) => Error::system(
            format!("attach an XDP program to interface {name} in generic mode"),
            source,
        ),
    }
}
