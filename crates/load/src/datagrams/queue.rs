use crate::Error;
use crate::config::{ClientConfig, MacAddress};
use crate::data_set::DataSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use wire::batch;
use wire::memcached::Datagrams;
use wire::memcached::datagram::FRAME_BYTES;
use xdp::packet::{Checksum, ETHERNET_BYTES, Endpoint, Packet, Template, Verify};
use xdp::{
    Attach, Attachment, BURST, Filter, Frame, HEADROOM_BYTES, Interface, Mode, Options, Program,
    Socket,
};

/// The longest request of a datagram, in bytes with the datagram's frame.
pub(crate) fn request_bytes_max(data: &DataSet) -> usize {
    FRAME_BYTES + batch::SET_HEAD_BYTES + data.keys.most() + data.values.most()
}

/// An interface, whose incoming datagrams go to AF_XDP as long as this lives.
#[derive(Debug)]
pub(crate) struct Attached {
    interface: Interface,
    program: Program,
    _attachment: Attachment,
    source: SocketAddr,
    destination: IpAddr,
    destination_mac: MacAddress,
    /// Of each of the server's workers, or the one.
    ports: Vec<u16>,
}

impl Attached {
    /// Take from the interface of this name what is for `source`, and for as many ports behind that as there are other
    /// connections.
    pub(crate) fn to(
        interface: &str,
        config: &ClientConfig,
        source: SocketAddr,
        (destination, destination_mac): (IpAddr, MacAddress),
        ports: &[u16],
    ) -> Result<Self, Error> {
        let interface = Interface::by_name(interface)?;
        let connections = config.connections;
        if connections > interface.receive_queues as usize {
            return Err(Error::Config(format!(
                "connections must be between 1 and {}, the queues of {}, not {connections}",
                interface.receive_queues, interface.name
            )));
        }
        let filter = Filter {
            ports: source.port()..=source.port() + (connections - 1) as u16,
            addresses: vec![source.ip()],
        };
        let program = Program::load(&filter, interface.receive_queues)?;
        // In generic mode, answers do not come to the queue that asked.
        let attach = match connections {
            1 => Attach::BestAvailable,
            _ => Attach::Only(Mode::Native),
        };
        Ok(Self {
            _attachment: program.attach(&interface, attach)?,
            program,
            interface,
            source,
            destination,
            destination_mac,
            ports: ports.to_vec(),
        })
    }

    /// How many workers of the server have ports of their own.
    pub(crate) fn owners(&self) -> usize {
        self.ports.len()
    }
}

/// A queue of an interface, from which one port of the server is asked.
#[derive(Debug)]
pub(crate) struct Queue {
    socket: Socket,
    template: Template,
    /// Where the first flow of this thread is answered.
    first_port: u16,
    datagram_bytes_max: usize,
    frames: Vec<Frame>,
}

impl Queue {
    /// The queue `number`, which leads to the server's worker `owner`; `first` is the first one of this thread.
    pub(crate) fn open(
        attached: &Attached,
        (number, first): (usize, usize),
        owner: usize,
        request_bytes_max: usize,
    ) -> Result<Self, Error> {
        let Attached { interface, .. } = attached;
        let source_port = attached.source.port() + number as u16;
        let template = Template::new(
            &Endpoint {
                hardware_address: interface.hardware_address,
                address: (attached.source.ip(), source_port).into(),
            },
            &Endpoint {
                hardware_address: attached.destination_mac.0,
                address: (attached.destination, attached.ports[owner]).into(),
            },
        );
        let template =
            template.ok_or(Error::State("source and destination are of two families"))?;
        let packet_bytes_max = interface.mtu as usize + ETHERNET_BYTES;
        let datagram_bytes_max = packet_bytes_max - template.header_bytes();
        if request_bytes_max > datagram_bytes_max {
            return Err(Error::Config(format!(
                "a request can be {request_bytes_max} bytes long, and a datagram over {} {datagram_bytes_max}; choose smaller keys or values, or a larger MTU",
                interface.name
            )));
        }
        let mut options = Options::default();
        if packet_bytes_max > (options.frame_bytes - HEADROOM_BYTES) as usize {
            options.frame_bytes = 4096;
        }
        let socket = Socket::bind(interface, number as u32, &options)?;
        attached.program.register(&socket)?;
        Ok(Self {
            socket,
            template,
            first_port: attached.source.port() + first as u16,
            datagram_bytes_max,
            frames: Vec::with_capacity(BURST),
        })
    }

    pub(crate) fn datagram_bytes_max(&self) -> usize {
        self.datagram_bytes_max
    }

    /// Send `outgoing`, as long as there is room: bytes that were sent.
    pub(crate) fn send(&mut self, outgoing: &Datagrams) -> io::Result<u64> {
        let mut sent = 0;
        for (datagram, ..) in outgoing.runs(1, usize::MAX) {
            if self.frames.len() >= BURST {
                self.transmit()?;
            }
            let Some(mut frame) = self.socket.take() else {
                break;
            };
            let room = self.socket.room(&mut frame);
            let start = self.template.header_bytes();
            let written = match room.get_mut(start..start + datagram.len()) {
                Some(payload) => {
                    payload.copy_from_slice(datagram);
                    self.template.write(room, datagram.len(), Checksum::Compute)
                }
                None => None,
            };
            match written {
                Some(length) => {
                    frame.set_length(length);
                    self.frames.push(frame);
                    sent += datagram.len() as u64;
                }
                None => self.socket.release(frame),
            }
        }
        self.transmit()?;
        Ok(sent)
    }

    fn transmit(&mut self) -> io::Result<()> {
        self.socket.transmit(&mut self.frames);
        self.socket.wake()?;
        for unsent in self.frames.drain(..) {
            self.socket.release(unsent);
        }
        Ok(())
    }

    /// Hand each datagram that is there to `take`, with the number of the flow in this thread that it is for, and say
    /// whether there were any. What the server's kernel answers comes on any queue.
    #[inline]
    pub(crate) fn receive(&mut self, mut take: impl FnMut(usize, &[u8])) -> bool {
        let count = self.socket.receive(&mut self.frames, BURST);
        for frame in self.frames.drain(..) {
            let bytes = self.socket.packet(&frame);
            // And over a virtual interface, with an unfinished checksum.
            if let Some(packet) = Packet::parse(bytes, Verify::ChecksumOrOffload)
                && let Some(port) = packet.destination_port(bytes)
                && let Some(flow) = port.checked_sub(self.first_port)
            {
                take(flow.into(), &bytes[packet.payload()]);
            }
            self.socket.release(frame);
        }
        count > 0
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
