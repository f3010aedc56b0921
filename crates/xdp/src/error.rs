use rustix::io::Errno;
use std::fmt::Display;
use std::io;

/// What went wrong while a program or a socket was set up, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A right is missing, or the kernel was built without AF_XDP or without bpf(2).
    #[error("{0}")]
    Unavailable(String),
    /// The driver of this interface cannot on this queue, or not now.
    #[error("the driver of interface {0} refuses zero-copy mode on queue {1}: {2}. Use copy mode")]
    ZeroCopyRefused(String, u32, #[source] io::Error),
    /// The driver of this interface does not take the program; last what may help.
    #[error(
        "the driver of interface {0} refuses the program in native mode: {1}. {2}, or use generic mode"
    )]
    NativeRefused(String, #[source] io::Error, String),
    /// Everything else: an option, an interface, a queue, memory, a system call.
    #[error("{0}")]
    Other(String),
}

impl Error {
    pub(crate) fn system(doing: impl Display, source: impl Into<io::Error>) -> Self {
        Self::Other(format!("cannot {doing}: {}", source.into()))
    }

    pub(crate) fn permission(doing: &str, capabilities: &str) -> Self {
        Self::Unavailable(format!(
            "not permitted to {doing}: run as root, or give the program {capabilities} (setcap, or the container's options)"
        ))
    }

    fn unsupported(what: &str, configuration: &str) -> Self {
        Self::Unavailable(format!(
            "this kernel has no {what}: it takes Linux 5.9 or later with {configuration}"
        ))
    }

    /// In this network namespace.
    pub(crate) fn no_such_interface(name: &str) -> Self {
        Self::Other(format!(
            "there is no network interface '{name}' here: `ip link` lists those there are"
        ))
    }

    pub(crate) fn queue_out_of_range(interface: &str, queue: u32, queues: u32) -> Self {
        Self::Other(format!(
            "interface {interface} has no receive queue {queue}: it has {queues}, counted from 0 (`ethtool --set-channels` \
             changes how many)"
        ))
    }

    pub(crate) fn out_of_memory(bytes: usize) -> Self {
        Self::Other(format!(
            "cannot reserve {bytes} bytes of memory: use fewer or shorter frames"
        ))
    }

    /// What bpf(2) said.
    pub(crate) fn bpf(doing: &'static str, source: io::Error) -> Self {
        let capabilities = "CAP_BPF and CAP_NET_ADMIN (before Linux 5.8 CAP_SYS_ADMIN)";
        match source.raw_os_error() {
            Some(libc::EPERM) => Self::permission(doing, capabilities),
            Some(libc::ENOSYS) => Self::unsupported("bpf(2)", "CONFIG_BPF_SYSCALL"),
            _ => Self::system(doing, source),
        }
    }

    /// What the kernel said to a new AF_XDP socket.
    pub(crate) fn socket(error: Errno) -> Self {
        match error {
            Errno::PERM => Self::permission("open an AF_XDP socket", "CAP_NET_RAW"),
            Errno::AFNOSUPPORT => Self::unsupported("AF_XDP sockets", "CONFIG_XDP_SOCKETS"),
            _ => Self::system("open an AF_XDP socket", error),
        }
    }
}
