use std::io;

/// Why there is no [`Ring`](super::Ring) here.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(String);

impl Unavailable {
    /// What the kernel's answer to a system call of io_uring means.
    pub(super) fn explain(error: io::Error) -> Self {
        let why = match error.raw_os_error() {
            // It was built without, or a filter of system calls says so.
            Some(libc::ENOSYS) => "this kernel has no io_uring",
            Some(libc::EINVAL) => "this kernel's io_uring is too old: it takes Linux 6.1",
            Some(libc::EPERM | libc::EACCES) => {
                let setting = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
                match setting.unwrap_or_default().trim() {
                    "2" => {
                        "io_uring is switched off on this host (sysctl kernel.io_uring_disabled is 2)"
                    }
                    // Root may, so it is something else that forbids it.
                    "1" if !rustix::process::geteuid().is_root() => {
                        "io_uring is for root and for the group of sysctl kernel.io_uring_group on this host (kernel.io_uring_disabled is 1)"
                    }
                    // Containers and service managers filter system calls (`seccomp(2)`).
                    _ => {
                        "io_uring is forbidden to this process (a filter of system calls, as containers have)"
                    }
                }
            }
            _ => return Self(format!("io_uring cannot be set up: {error}")),
        };
        Self(why.to_owned())
    }
}
