use std::io;

/// Why there is no [`Ring`](super::Ring) here.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// It was built without, or a filter of system calls says so.
    #[error("this kernel has no io_uring")]
    Missing,
    /// What is used came with Linux 6.1.
    #[error("this kernel's io_uring is too old: it takes Linux 6.1")]
    Old,
    /// `kernel.io_uring_disabled` is 2.
    #[error("io_uring is switched off on this host (sysctl kernel.io_uring_disabled is 2)")]
    Disabled,
    /// `kernel.io_uring_disabled` is 1.
    #[error(
        "io_uring is for root and for the group of sysctl kernel.io_uring_group on this host (kernel.io_uring_disabled is 1)"
    )]
    Reserved,
    /// Containers and service managers filter system calls (`seccomp(2)`).
    #[error("io_uring is forbidden to this process (a filter of system calls, as containers have)")]
    Forbidden,
    /// No descriptor or no memory is left, or something else.
    #[error("io_uring cannot be set up: {0}")]
    Failed(#[from] io::Error),
}

impl Unavailable {
    /// What the kernel's answer to a system call of io_uring means.
    pub(super) fn explain(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOSYS) => Self::Missing,
            Some(libc::EINVAL) => Self::Old,
            Some(libc::EPERM | libc::EACCES) => {
                let setting = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
                match setting.unwrap_or_default().trim() {
                    "2" => Self::Disabled,
                    // Root may, so it is something else that forbids it.
                    "1" if !rustix::process::geteuid().is_root() => Self::Reserved,
                    _ => Self::Forbidden,
                }
            }
            _ => Self::Failed(error),
        }
    }
}
