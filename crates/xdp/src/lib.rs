//! AF_XDP sockets for UDP, and what they need: datagrams between a network card and user space past the kernel's network
//! stack, without libbpf, clang or C.
//!
//! * [`Interface`]: what must be known of a network interface.
//! * [`Program`]: a few eBPF instructions, put together here, that hand the UDP datagrams for a range of ports to the socket
//!   of the queue that they arrive on. All else goes to the kernel: ARP, neighbour discovery, TCP, other ports,
//!   fragments. Attached, it stays as long as its [`Attachment`] or the process, however that ends.
//! * [`Socket`]: one queue of one interface, with memory for its frames. Packets come and go in bursts; an answer may be
//!   built in the frame that the question came in. Nothing is allocated for a packet. A [`Frame`] is the only one with
//!   its bytes, so that no safe code can touch what the kernel has.
//! * [`packet`]: the headers of such datagrams, read and made in byte slices; pure.
//!
//! ```no_run
//! use xdp::packet::{Checksum, Packet, Verify};
//! use xdp::{Attach, BURST, Filter, Interface, Options, Program, Socket};
//!
//! let interface = Interface::by_name("eth0")?;
//! let filter = Filter { ports: 11_211..=11_214, addresses: vec!["192.0.2.1".parse()?] };
//! let program = Program::load(&filter, interface.receive_queues)?;
//! let mut socket = Socket::bind(&interface, 0, &Options::default())?;
//! program.register(&socket)?;
//! let attachment = program.attach(&interface, Attach::BestAvailable)?;
//!
//! // An echo.
//! let (mut frames, mut answers) = (Vec::with_capacity(BURST), Vec::with_capacity(BURST));
//! loop {
//!     socket.receive(&mut frames, BURST);
//!     for mut frame in frames.drain(..) {
//!         let length = Packet::parse(socket.packet(&frame), Verify::Checksum).and_then(|packet| {
//!             let bytes = packet.payload().len();
//!             packet.reply(socket.room(&mut frame), bytes, Checksum::Compute)
//!         });
//!         match length {
//!             Some(length) => {
//!                 frame.set_length(length);
//!                 answers.push(frame);
//!             }
//!             None => socket.release(frame),
//!         }
//!     }
//!     socket.transmit(&mut answers);
//!     socket.wake()?;
//! }
//! # #[expect(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it takes
//!
//! Linux 5.9 (links of XDP programs) with `CONFIG_XDP_SOCKETS` and `CONFIG_BPF_SYSCALL`; CAP_NET_RAW for sockets, CAP_BPF and
//! CAP_NET_ADMIN for the program, and CAP_IPC_LOCK or a limit of locked memory above the frames' (8 MiB a socket by
//! default). What is missing is an [`Error`] that says what to do.
//!
//! An interface, its sockets and its program belong to the network namespace of the thread that asks. A socket has one
//! queue, so a server has a socket for each: datagrams on queues without one go to the kernel.
//!
//! # Copying or not, native or generic
//!
//! [`Copying::ZeroCopy`] takes a driver that reads and writes the frames itself, and a program in [`Mode::Native`]. The
//! caller who gets [`Error::ZeroCopyRefused`] may go on with [`Copying::Copy`], and should say so. In copy mode it is
//! [`Socket::wake`] that sends, in the thread that calls it.
//!
//! # veth
//!
//! What follows was found with Linux 6.18, where the tests hold it to most of it.
//!
//! * Native mode needs nothing on the other side: no program there, and no GRO. (That is for drivers' own redirection,
//!   `XDP_TX` and `ndo_xdp_xmit`, which sockets do not use.) Attaching switches the peer's TSO off by itself.
//! * The driver refuses native mode ([`Error::NativeRefused`]) when the peer's MTU is above what fits a page with its
//!   headroom (3506 bytes with pages of 4 KiB), and when the peer transmits on more queues than the interface receives
//!   on: make both with as many (`ip link add A numrxqueues 4 numtxqueues 4 type veth peer name B numrxqueues 4
//!   numtxqueues 4`).
//! * **Steering:** with the receiver in native mode, what a socket sends on queue *q* arrives on the peer's queue *q*. With
//!   the receiver in generic mode it does not: the kernel takes the number for one that a driver recorded, which counts
//!   from one, so that queue 0 comes to 0, and *q* to *q* - 1.
//! * Between the two is a queue of 256 packets in native mode; in generic mode, the backlog of the processor
//!   (`net.core.netdev_max_backlog`, 1000). What finds it full is dropped, and neither side's [`Statistics`] tell. Who has
//!   fewer packets on their way loses none.
//! * The receiver's part of the work, its program included, is mostly done in the sender's system call.
//! * A datagram of the kernel's own sockets comes with an unfinished checksum: [`Verify::ChecksumOrOffload`]. Those that
//!   come from a network have a whole one: [`Verify::Checksum`].
//! * There is no zero-copy mode.
//!
//! [`Verify::ChecksumOrOffload`]: packet::Verify::ChecksumOrOffload
//! [`Verify::Checksum`]: packet::Verify::Checksum

mod bpf;
mod error;
mod instruction;
mod interface;
pub mod packet;
mod program;
mod ring;
mod socket;
mod umem;

pub use error::Error;
pub use interface::Interface;
pub use program::{Attach, Attachment, Filter, Mode, Program};
pub use socket::{BURST, Copying, HEADROOM_BYTES, Options, Socket, Statistics};
pub use umem::Frame;

/// The most addresses that a [`Filter`] may have: each is a few instructions more for every packet.
pub const FILTER_ADDRESSES_MAX: usize = 64;
