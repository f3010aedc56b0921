use crate::FILTER_ADDRESSES_MAX;
use rustix::io::Errno;
use std::io;
use std::ops::RangeInclusive;

/// What went wrong while a program or a socket was set up, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A right is missing.
    #[error(
        "not permitted to {doing}: run as root, or give the program {capabilities} (setcap, or the container's options)"
    )]
    Permission {
        /// What was tried.
        doing: &'static str,
        /// The capabilities that it takes.
        capabilities: &'static str,
    },
    /// The kernel was built without AF_XDP or without bpf(2).
    #[error("this kernel has no {what}: it takes Linux 5.9 or later with {configuration}")]
    Unsupported {
        /// What is missing.
        what: &'static str,
        /// The option of the kernel's configuration.
        configuration: &'static str,
    },
    /// No such interface in this network namespace.
    #[error("there is no network interface '{name}' here: `ip link` lists those there are")]
    NoSuchInterface {
        /// The name as given, or the interface's before it went away.
        name: String,
    },
    /// The interface is not up.
    #[error("interface {interface} is down: `ip link set {interface} up`")]
    InterfaceDown {
        /// The interface.
        interface: String,
    },
    /// The interface has no such queue.
    #[error(
        "interface {interface} has no receive queue {queue}: it has {queues}, counted from 0 (`ethtool --set-channels` changes how many)"
    )]
    QueueOutOfRange {
        /// The interface.
        interface: String,
        /// The queue as asked for.
        queue: u32,
        /// How many there are.
        queues: u32,
    },
    /// Another AF_XDP socket has the queue.
    #[error(
        "queue {queue} of interface {interface} is taken by another AF_XDP socket: end the process that has it, or choose another queue"
    )]
    QueueTaken {
        /// The interface.
        interface: String,
        /// The queue.
        queue: u32,
    },
    /// The driver cannot, or not now.
    #[error(
        "the driver of interface {interface} refuses zero-copy mode on queue {queue}: {source}. Use copy mode"
    )]
    ZeroCopyRefused {
        /// The interface.
        interface: String,
        /// The queue.
        queue: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// A packet may be longer than a frame.
    #[error("the MTU of interface {interface}, {mtu} bytes, is too large for frames of {frame_bytes} bytes: lower it to {limit} (`ip link set {interface} mtu {limit}`){}", if *.frame_bytes < 4096 { ", or use frames of 4096 bytes" } else { "" })]
    MtuTooLarge {
        /// The interface.
        interface: String,
        /// Its MTU in bytes.
        mtu: u32,
        /// The length of a frame in bytes.
        frame_bytes: u32,
        /// The largest MTU for such frames, in bytes.
        limit: u32,
    },
    /// The driver does not take the program.
    #[error(
        "the driver of interface {interface} refuses the program in native mode: {source}. {advice}, or use generic mode"
    )]
    NativeRefused {
        /// The interface.
        interface: String,
        /// What the kernel said.
        source: io::Error,
        /// What may help.
        advice: String,
    },
    /// The interface has an XDP program already.
    #[error(
        "interface {interface} has another XDP program already: end the process that attached it, or `ip link set {interface} xdp off`"
    )]
    ProgramAttached {
        /// The interface.
        interface: String,
    },
    /// The verifier found fault with the program.
    #[error(
        "the kernel's verifier refuses the XDP program: {source}. This is a defect of the program; the verifier says:\n{log}"
    )]
    Verifier {
        /// What the kernel said.
        source: io::Error,
        /// What the verifier said.
        log: String,
    },
    /// No such filter can be made.
    #[error("cannot filter for ports {} to {} and {addresses} addresses: give a range of ports that is not empty, and at most {FILTER_ADDRESSES_MAX} addresses", .ports.start(), .ports.end())]
    Filter {
        /// The ports as asked for.
        ports: RangeInclusive<u16>,
        /// How many addresses were asked for.
        addresses: usize,
    },
    /// An option has a value that it cannot have.
    #[error("{what}, not {value}")]
    Options {
        /// What it must be.
        what: &'static str,
        /// What it is.
        value: u32,
    },
    /// The limit of locked memory is too low.
    #[error(
        "cannot lock {bytes} bytes of memory: raise the limit (`ulimit -l`, LimitMEMLOCK of systemd), or give the program CAP_IPC_LOCK"
    )]
    LockedMemory {
        /// How much was to be locked, in bytes.
        bytes: u64,
    },
    /// The system would not give the memory.
    #[error("cannot reserve {bytes} bytes of memory: use fewer or shorter frames")]
    OutOfMemory {
        /// How much was asked for, in bytes.
        bytes: usize,
    },
    /// A system call that should work did not.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was tried.
        doing: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn system(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System {
            doing: doing.into(),
            source: source.into(),
        }
    }

    /// What bpf(2) said.
    pub(crate) fn bpf(doing: &'static str, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::EPERM) => Self::Permission {
                doing,
                capabilities: "CAP_BPF and CAP_NET_ADMIN (before Linux 5.8 CAP_SYS_ADMIN)",
            },
            Some(libc::ENOSYS) => Self::Unsupported {
                what: "bpf(2)",
                configuration: "CONFIG_BPF_SYSCALL",
            },
            _ => Self::system(doing, source),
        }
    }

    /// What the kernel said to a new AF_XDP socket.
    pub(crate) fn socket(error: Errno) -> Self {
        match error {
            Errno::PERM => Self::Permission {
                doing: "open an AF_XDP socket",
                capabilities: "CAP_NET_RAW",
            },
            Errno::AFNOSUPPORT => Self::Unsupported {
                what: "AF_XDP sockets",
                configuration: "CONFIG_XDP_SOCKETS",
            },
            _ => Self::system("open an AF_XDP socket", error),
        }
    }
}
