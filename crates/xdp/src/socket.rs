use crate::packet::ETHERNET_BYTES;
use crate::ring::{Consumer, Producer, Ring};
use crate::umem::{Descriptor, Frame, Umem};
use crate::{Error, Interface};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions,
    XdpOptionsFlags, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
    sockopt,
};
use std::io;
use std::time::{Duration, Instant};

/// What the kernel keeps free before a packet that arrives in a frame, in bytes (`XDP_PACKET_HEADROOM`).
pub const HEADROOM_BYTES: u32 = 256;

/// The most frames that one call of [`Socket::receive`] is meant for; larger limits are allowed.
pub const BURST: usize = 64;

/// What a socket's rings and memory are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Length of a frame: 2048 or 4096 bytes. A packet that arrives may use all but [`HEADROOM_BYTES`].
    pub frame_bytes: u32,
    /// How many frames wait for packets, and how many packets wait for the user: a power of two.
    pub receive_frames: u32,
    /// How many packets wait to be sent, and frames beyond those that wait for packets: a power of two.
    pub transmit_frames: u32,
    /// Whether the network card reads and writes the frames itself.
    pub copying: Copying,
}

impl Default for Options {
    /// 2048 frames of 2048 bytes in each direction, copied: 8 MiB.
    fn default() -> Self {
        Self {
            frame_bytes: 2048,
            receive_frames: 2048,
            transmit_frames: 2048,
            copying: Copying::Copy,
        }
    }
}

/// How packets come into frames and out of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copying {
    /// The kernel copies them. Any driver.
    Copy,
    /// The network card reads and writes the frames. Takes a driver that can, in [native](crate::Mode::Native) mode;
    /// others answer [`Error::ZeroCopyRefused`].
    ZeroCopy,
}

/// What became of packets, counted since the socket was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Packets that arrived and were lost: no frame waited for them, or they were longer than a frame has room for.
    pub receive_dropped: u64,
    /// Packets that arrived and were lost because the user had not taken earlier ones (Linux 5.9 and later; before, they
    /// are among [`receive_dropped`](Self::receive_dropped)).
    pub receive_ring_full: u64,
    /// How often no frame waited for a packet that arrived (Linux 5.9 and later).
    pub fill_ring_empty: u64,
    /// Packets that were not sent because they were shorter than an Ethernet header or longer than the interface's MTU
    /// allows.
    pub transmit_invalid: u64,
    /// What the kernel put into a ring and that was not its to give: always zero, or a defect of the kernel or the driver.
    pub not_the_kernels: u64,
}

/// An AF_XDP socket: one queue of one interface, with the frames for it. Datagrams come to it once it is
/// [registered](crate::Program::register) with a program that is [attached](crate::Program::attach).
#[derive(Debug)]
pub struct Socket {
    // Rings and memory are unmapped before the descriptor is closed; the kernel holds its own references to either.
    fill: Producer<u64>,
    completion: Consumer<u64>,
    receive: Consumer<XdpDesc>,
    transmit: Producer<XdpDesc>,
    umem: Umem,
    /// Made with room for all frames, so that it never grows.
    free: Vec<Frame>,
    /// Frames that the kernel has for packets that arrive, or with them.
    receiving: u32,
    /// Frames that the kernel has to send.
    transmitting: u32,
    transmit_invalid: u64,
    not_the_kernels: u64,
    /// The longest packet that is sent, in bytes with its Ethernet header.
    packet_bytes_max: usize,
    options: Options,
    interface: String,
    queue: u32,
    zero_copy: bool,
    descriptor: OwnedFd,
}

impl Socket {
    /// Make a socket for a queue of an interface. It takes no packets from the kernel yet.
    ///
    /// Frames are pinned memory, and stay with the process that made the socket: do this after any `fork`. Takes
    /// CAP_NET_RAW; [`Error::ZeroCopyRefused`] where the driver cannot. Fails for options that cannot be, an MTU too
    /// large for the frames, a queue that is not there or taken, an interface that is down or went away, and memory
    /// that is not to be had or not to be locked.
    pub fn bind(interface: &Interface, queue: u32, options: &Options) -> Result<Self, Error> {
        check(interface, queue, options)?;
        let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
        let descriptor =
            socket_with(AddressFamily::XDP, kind, flags, None).map_err(Error::socket)?;
        let (mut umem, mut free) = Umem::new(
            options.receive_frames + options.transmit_frames,
            options.frame_bytes,
        )?;
        let rings = |source: io::Error| Error::system("make the rings of an AF_XDP socket", source);
        register_umem(&descriptor, &umem)?;
        let (fill, completion, receive, transmit) =
            make_rings(&descriptor, options).map_err(rings)?;
        let mut fill = Producer::new(fill);
        // The lowest addresses are given away last and used first.
        free.reverse();
        let first = free.len() - options.receive_frames as usize;
        for frame in free.drain(first..) {
            _ = fill.push(umem.give_to_receive(frame));
        }
        fill.submit();
        send_in_larger_parts(&descriptor, options);
        bind_to_queue(&descriptor, interface, queue, options)?;
        let zero_copy = sockopt::xdp_options(&descriptor)
            .is_ok_and(|flags| flags.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY));
        Ok(Self {
            fill,
            completion: Consumer::new(completion),
            receive: Consumer::new(receive),
            transmit: Producer::new(transmit),
            umem,
            free,
            receiving: options.receive_frames,
            transmitting: 0,
            transmit_invalid: 0,
            not_the_kernels: 0,
            packet_bytes_max: interface.mtu as usize + ETHERNET_BYTES,
            options: *options,
            interface: interface.name.clone(),
            queue,
            zero_copy,
            descriptor,
        })
    }

    /// The name of its interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Its queue.
    pub fn queue(&self) -> u32 {
        self.queue
    }

    /// Whether the network card reads and writes the frames.
    pub fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Take packets that have arrived, at most `limit` (see [`BURST`]), and append their frames to `frames`, which does not
    /// grow if it has the room. Returns how many there were. Frames for further packets are given to the kernel.
    #[inline]
    pub fn receive(&mut self, frames: &mut Vec<Frame>, limit: usize) -> usize {
        let before = frames.len();
        let mut popped = false;
        while frames.len() - before < limit {
            let Some(entry) = self.receive.pop() else {
                break;
            };
            popped = true;
            let descriptor = Descriptor {
                address: entry.addr,
                length: entry.len,
            };
            match self.umem.received(descriptor) {
                Some(frame) => {
                    self.receiving -= 1;
                    frames.push(frame);
                }
                None => self.not_the_kernels += 1,
            }
        }
        if popped {
            self.receive.release();
        }
        self.refill();
        frames.len() - before
    }

    /// Give free frames to the kernel for packets that arrive, up to as many as it is to have.
    #[inline]
    fn refill(&mut self) {
        let wanted = self.options.receive_frames - self.receiving;
        if wanted == 0 {
            return;
        }
        if self.free.len() < wanted as usize {
            self.reclaim();
        }
        let count = self.fill.room(wanted).min(wanted) as usize;
        let first = self.free.len() - count.min(self.free.len());
        for frame in self.free.drain(first..) {
            self.receiving += 1;
            _ = self.fill.push(self.umem.give_to_receive(frame));
        }
        self.fill.submit();
    }

    /// Take back the frames whose packets were sent.
    #[inline]
    fn reclaim(&mut self) {
        if self.transmitting == 0 {
            return;
        }
        let mut popped = false;
        while let Some(address) = self.completion.pop() {
            popped = true;
            match self.umem.transmitted(address) {
                Some(frame) => {
                    self.transmitting -= 1;
                    self.free.push(frame);
                }
                None => self.not_the_kernels += 1,
            }
        }
        if popped {
            self.completion.release();
        }
    }

    /// An empty frame to put a packet into; `None` when all are on their way: [`wake`](Self::wake) the kernel and go on
    /// later. Frames for packets that arrive come first: who holds received frames has as many fewer to take.
    #[inline]
    pub fn take(&mut self) -> Option<Frame> {
        if self.free.is_empty() {
            self.reclaim();
        }
        self.free.pop()
    }

    /// Give a frame back that is not to be sent.
    ///
    /// # Panics
    /// If the frame is of another socket.
    #[inline]
    pub fn release(&mut self, frame: Frame) {
        let frame = self.umem.emptied(frame);
        self.free.push(frame);
    }

    /// Put the packets of `frames` in line to be sent, in order, and take them out of `frames`; those that find no room
    /// stay. Returns how many were taken. They are sent by [`wake`](Self::wake). One that is no packet (see
    /// [`Statistics::transmit_invalid`]) is taken, and not sent.
    ///
    /// # Panics
    /// If a frame is of another socket.
    #[inline]
    pub fn transmit(&mut self, frames: &mut Vec<Frame>) -> usize {
        let wanted = u32::try_from(frames.len()).unwrap_or(u32::MAX);
        let count = frames.len().min(self.transmit.room(wanted) as usize);
        for frame in frames.drain(..count) {
            // The kernel would pass over it, and never say that the frame is free.
            if !(ETHERNET_BYTES..=self.packet_bytes_max).contains(&frame.length()) {
                self.transmit_invalid += 1;
                let frame = self.umem.emptied(frame);
                self.free.push(frame);
                continue;
            }
            let descriptor = self.umem.give_to_transmit(frame);
            self.transmitting += 1;
            _ = self.transmit.push(XdpDesc {
                addr: descriptor.address,
                len: descriptor.length,
                options: XdpDescOptions::empty(),
            });
        }
        self.transmit.submit();
        count
    }

    /// The packet in a frame.
    ///
    /// # Panics
    /// If the frame is of another socket.
    #[must_use]
    #[inline]
    pub fn packet<'a>(&'a self, frame: &'a Frame) -> &'a [u8] {
        self.umem.packet(frame)
    }

    /// All of a frame from where its packet begins to its end, [`Frame::room`] bytes: for an answer in place, which may be
    /// longer than the packet. Say its length with [`Frame::set_length`].
    ///
    /// # Panics
    /// If the frame is of another socket.
    #[must_use]
    #[inline]
    pub fn room<'a>(&'a self, frame: &'a mut Frame) -> &'a mut [u8] {
        self.umem.room(frame)
    }

    /// Have the kernel look at the rings, where it waits to be told; to be called after [`transmit`](Self::transmit), and
    /// at every turn of a loop that does not sleep. Without need it is no system call.
    ///
    /// In copy mode the calling thread does the sending, until all is sent or the device takes no more; then what is
    /// left stays in line for the next call. `ENETDOWN` while the interface is down, when packets stay in line; `ENXIO`
    /// when it is gone.
    #[inline]
    pub fn wake(&mut self) -> io::Result<()> {
        if self.fill.needs_wakeup() {
            ignore_passing(recv(&self.descriptor, &mut [0_u8; 0][..], RecvFlags::DONTWAIT).err())?;
        }
        if self.transmitting == 0 {
            return Ok(());
        }
        if self.zero_copy {
            // The driver may also wait with reporting what was sent.
            if self.transmit.needs_wakeup() {
                ignore_passing(send(&self.descriptor, &[], SendFlags::DONTWAIT).err())?;
            }
            return Ok(());
        }
        let mut pending = self.transmit.pending();
        while pending > 0 && self.transmit.needs_wakeup() {
            // The kernel does not send what it would have no place to report in.
            self.reclaim();
            let error = send(&self.descriptor, &[], SendFlags::DONTWAIT).err();
            ignore_passing(error)?;
            let before = std::mem::replace(&mut pending, self.transmit.pending());
            if error.is_none() || pending == before {
                break;
            }
        }
        Ok(())
    }

    /// How many packets are in line, or sent and their frames not yet back.
    pub fn transmitting(&self) -> u32 {
        self.transmitting
    }

    /// What became of packets.
    pub fn statistics(&self) -> io::Result<Statistics> {
        let kernel = sockopt::xdp_statistics(&self.descriptor)?;
        Ok(Statistics {
            receive_dropped: kernel.rx_dropped,
            receive_ring_full: kernel.rx_ring_full.unwrap_or(0),
            fill_ring_empty: kernel.rx_fill_ring_empty_descs.unwrap_or(0),
            transmit_invalid: self.transmit_invalid + kernel.tx_invalid_descs,
            not_the_kernels: self.not_the_kernels,
        })
    }
}

impl AsFd for Socket {
    /// For polling: readable when a packet has arrived, writable when at least half of the transmit ring is free.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// What a wake-up may answer without anything being wrong: the device or the socket's buffer is full for now (`EAGAIN`,
/// `ENOBUFS`), the device dropped a packet (`EBUSY`), a signal came.
#[inline]
fn ignore_passing(error: Option<Errno>) -> io::Result<()> {
    match error {
        None | Some(Errno::AGAIN | Errno::NOBUFS | Errno::BUSY | Errno::INTR) => Ok(()),
        Some(error) => Err(error.into()),
    }
}

/// What can be said without asking the kernel.
fn check(interface: &Interface, queue: u32, options: &Options) -> Result<(), Error> {
    let frame_bytes = options.frame_bytes;
    if !matches!(frame_bytes, 2048 | 4096) {
        return Err(Error::Other(format!(
            "frame_bytes must be 2048 or 4096, not {frame_bytes}"
        )));
    }
    for (what, value) in [
        ("receive_frames", options.receive_frames),
        ("transmit_frames", options.transmit_frames),
    ] {
        if !value.is_power_of_two() || value > 1 << 20 {
            return Err(Error::Other(format!(
                "{what} must be a power of two from 1 to 2^20, not {value}"
            )));
        }
    }
    let Interface { name, mtu, .. } = interface;
    if queue >= interface.receive_queues {
        let queues = interface.receive_queues;
        return Err(Error::queue_out_of_range(name, queue, queues));
    }
    let limit = frame_bytes - HEADROOM_BYTES - ETHERNET_BYTES as u32;
    if *mtu > limit {
        let longer = match frame_bytes {
            2048 => ", or use frames of 4096 bytes",
            _ => "",
        };
        return Err(Error::Other(format!(
            "the MTU of interface {name}, {mtu} bytes, is too large for frames of {frame_bytes} bytes: lower it to {limit} \
             (`ip link set {name} mtu {limit}`){longer}"
        )));
    }
    Ok(())
}

fn register_umem(descriptor: &OwnedFd, umem: &Umem) -> Result<(), Error> {
    let register = XdpUmemReg {
        addr: umem.address(),
        len: umem.bytes(),
        chunk_size: umem.frame_bytes(),
        headroom: 0,
        flags: XdpUmemRegFlags::empty(),
        tx_metadata_len: 0,
    };
    let register = || sockopt::set_xdp_umem_reg(descriptor, register);
    unless_about_to_be_released(Errno::NOBUFS, register).map_err(|error| match error {
        Errno::NOBUFS => Error::Other(format!(
            "cannot lock {} bytes of memory: raise the limit (`ulimit -l`, LimitMEMLOCK of systemd), or give the program \
             CAP_IPC_LOCK",
            umem.bytes()
        )),
        Errno::NOMEM => Error::out_of_memory(umem.bytes() as usize),
        _ => Error::system("register memory with an AF_XDP socket", error),
    })
}

type Rings = (Ring<u64>, Ring<u64>, Ring<XdpDesc>, Ring<XdpDesc>);

/// The fill, completion, receive and transmit rings.
fn make_rings(descriptor: &OwnedFd, options: &Options) -> io::Result<Rings> {
    let (receive, transmit) = (options.receive_frames, options.transmit_frames);
    sockopt::set_xdp_umem_fill_ring_size(descriptor, receive)?;
    sockopt::set_xdp_umem_completion_ring_size(descriptor, transmit)?;
    sockopt::set_xdp_rx_ring_size(descriptor, receive)?;
    sockopt::set_xdp_tx_ring_size(descriptor, transmit)?;
    let offsets = sockopt::xdp_mmap_offsets(descriptor)?;
    let socket = descriptor.as_fd();
    // SAFETY: rings of these sizes were just made, the fill and completion rings of addresses, the other two of
    // descriptors; this is where the kernel says they are, and nobody else has the socket.
    unsafe {
        Ok((
            Ring::map(socket, XDP_UMEM_PGOFF_FILL_RING, &offsets.fr, receive)?,
            Ring::map(
                socket,
                XDP_UMEM_PGOFF_COMPLETION_RING,
                &offsets.cr,
                transmit,
            )?,
            Ring::map(socket, XDP_PGOFF_RX_RING, &offsets.rx, receive)?,
            Ring::map(socket, XDP_PGOFF_TX_RING, &offsets.tx, transmit)?,
        ))
    }
}

/// In copy mode, let one system call send all that is in line, and as much be on its way: by default, the kernel stops
/// after 32 packets, and where what is on its way fills the socket's send buffer. Whatever is refused costs system calls,
/// not packets.
fn send_in_larger_parts(descriptor: &OwnedFd, options: &Options) {
    /// What the kernel counts for a packet besides its bytes.
    const OVERHEAD_BYTES: usize = 1024;
    let bytes = options.transmit_frames as usize * (options.frame_bytes as usize + OVERHEAD_BYTES);
    _ = sockopt::set_socket_send_buffer_size_force(descriptor, bytes.min(i32::MAX as usize / 2));
    /// `XDP_MAX_TX_SKB_BUDGET`, since Linux 6.17.
    const MAX_TX_SKB_BUDGET: libc::c_int = 9;
    let budget = options.transmit_frames;
    // SAFETY: the kernel reads four bytes of `budget`, which outlives the call.
    _ = unsafe {
        libc::setsockopt(
            descriptor.as_raw_fd(),
            libc::SOL_XDP,
            MAX_TX_SKB_BUDGET,
            (&raw const budget).cast(),
            size_of_val(&budget) as libc::socklen_t,
        )
    };
}

fn bind_to_queue(
    descriptor: &OwnedFd,
    interface: &Interface,
    queue: u32,
    options: &Options,
) -> Result<(), Error> {
    let copying = match options.copying {
        Copying::Copy => SocketAddrXdpFlags::XDP_COPY,
        Copying::ZeroCopy => SocketAddrXdpFlags::XDP_ZEROCOPY,
    };
    let flags = copying | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
    let address = SocketAddrXdp::new(flags, interface.index, queue);
    unless_about_to_be_released(Errno::BUSY, || bind(descriptor, &address))
        .map_err(|error| bind_error(interface, queue, options.copying, error))
}

/// Try something that fails with `taken` while another has it. What a socket had that was just closed is free a moment
/// later, when the kernel has got round to it.
fn unless_about_to_be_released(
    taken: Errno,
    attempt: impl Fn() -> Result<(), Errno>,
) -> Result<(), Errno> {
    const RELEASE: Duration = Duration::from_secs(1);
    let start = Instant::now();
    loop {
        match attempt() {
            Err(error) if error == taken && start.elapsed() < RELEASE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            outcome => return outcome,
        }
    }
}

/// What the kernel said when a socket was bound to a queue.
fn bind_error(interface: &Interface, queue: u32, copying: Copying, error: Errno) -> Error {
    let name = interface.name.clone();
    match (error, copying) {
        (Errno::BUSY, _) => Error::Other(format!(
            "queue {queue} of interface {name} is taken by another AF_XDP socket: end the process that has it, or choose \
             another queue"
        )),
        (Errno::NODEV, _) => Error::no_such_interface(&name),
        (Errno::NETDOWN, _) => {
            Error::Other(format!("interface {name} is down: `ip link set {name} up`"))
        }
        (error, Copying::ZeroCopy) => Error::ZeroCopyRefused(name, queue, error.into()),
        // The interface may have lost queues since it was looked up.
        (Errno::INVAL, Copying::Copy) => {
            Error::queue_out_of_range(&name, queue, interface.receive_queues)
        }
        (error, Copying::Copy) => Error::system(
            format!("bind an AF_XDP socket to queue {queue} of interface {name}"),
            error,
        ),
    }
}
