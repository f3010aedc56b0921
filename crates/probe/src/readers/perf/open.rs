//! The system call behind perf events: perf_event_open(2).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;

/// Hardware events that the kernel knows on every CPU (`PERF_TYPE_HARDWARE`).
const HARDWARE: u32 = 0;
/// Events by the CPU's own numbers (`PERF_TYPE_RAW`).
const RAW: u32 = 4;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    kind: u32,
    config: u64,
    extension: u64,
}

impl Event {
    pub(super) const CYCLES: Self = Self::hardware(0);
    pub(super) const INSTRUCTIONS: Self = Self::hardware(1);
    pub(super) const CACHE_MISSES: Self = Self::hardware(3);

    const fn hardware(config: u64) -> Self {
        Self {
            kind: HARDWARE,
            config,
            extension: 0,
        }
    }

    /// An event by its number and unit mask, as the CPU's manual gives them.
    pub(super) const fn raw(number: u8, mask: u8) -> Self {
        Self {
            kind: RAW,
            config: (mask as u64) << 8 | number as u64,
            extension: 0,
        }
    }

    /// An Intel event that is told more by a register of its own (off-core response).
    pub(super) const fn offcore(number: u8, mask: u8, response: u64) -> Self {
        Self {
            extension: response,
            ..Self::raw(number, mask)
        }
    }
}

/// Whose events are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// Everything that runs on a CPU.
    Cpu(u32),
    /// A thread, and threads and processes that it starts from now on.
    Thread(u32),
}

/// The first 72 bytes of `struct perf_event_attr` (`PERF_ATTR_SIZE_VER1`), which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
}

const READ_TOTAL_TIME_ENABLED: u64 = 1 << 0;
const READ_TOTAL_TIME_RUNNING: u64 = 1 << 1;
const READ_GROUP: u64 = 1 << 3;
const FLAG_DISABLED: u64 = 1 << 0;
const FLAG_INHERIT: u64 = 1 << 1;
const FLAG_EXCLUDE_KERNEL: u64 = 1 << 5;
const FLAG_EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const OPEN_CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
/// `_IO('$', 0)` and the flag for a whole group.
const IOCTL_ENABLE: u64 = 0x2400;
const IOCTL_FLAG_GROUP: libc::c_ulong = 1;

/// Opens an event as the leader of a group, stopped, or as a member of the group of `leader`.
pub(super) fn open(
    event: Event,
    target: Target,
    user_only: bool,
    leader: Option<&OwnedFd>,
) -> Result<OwnedFd, Errno> {
    let (process, cpu) = match target {
        Target::Cpu(cpu) => (-1, i32::try_from(cpu).map_err(|_| Errno::NODEV)?),
        Target::Thread(thread) => (i32::try_from(thread).map_err(|_| Errno::SRCH)?, -1),
    };
    let attributes = attributes(event, target, user_only, leader.is_none());
    call(&attributes, process, cpu, leader)
}

fn attributes(event: Event, target: Target, user_only: bool, leads: bool) -> Attributes {
    let mut flags = FLAG_EXCLUDE_HYPERVISOR;
    if leads {
        flags |= FLAG_DISABLED;
    }
    if user_only {
        flags |= FLAG_EXCLUDE_KERNEL;
    }
    if matches!(target, Target::Thread(_)) {
        flags |= FLAG_INHERIT;
    }
    Attributes {
        kind: event.kind,
        size: size_of::<Attributes>() as u32,
        config: event.config,
        read_format: READ_TOTAL_TIME_ENABLED | READ_TOTAL_TIME_RUNNING | READ_GROUP,
        flags,
        config1: event.extension,
        ..Attributes::default()
    }
}

/// Opens an event that belongs to no core, such as the energy of a package: `kind` and `config` are as `/sys` gives them,
/// `cpu` is the one that answers for it. It counts at once; what is read is one number of 64 bits. Such events refuse any
/// attribute that leaves something out.
pub(in crate::readers) fn open_uncore(kind: u32, config: u64, cpu: u32) -> Result<OwnedFd, Errno> {
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        ..Attributes::default()
    };
    let cpu = i32::try_from(cpu).map_err(|_| Errno::NODEV)?;
    call(&attributes, -1, cpu, None)
}

fn call(
    attributes: &Attributes,
    process: i32,
    cpu: i32,
    leader: Option<&OwnedFd>,
) -> Result<OwnedFd, Errno> {
    let group = leader.map_or(-1, AsRawFd::as_raw_fd);
    // SAFETY: the first argument points to a structure that lives throughout the call, is laid out as the kernel's and
    // tells its own size; the kernel writes at most its `size` field. The other arguments are plain numbers.
    let result = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            process,
            cpu,
            group,
            OPEN_CLOSE_ON_EXEC,
        )
    };
    if result < 0 {
        return Err(last_error());
    }
    // SAFETY: the kernel has just handed out this descriptor, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(result as RawFd) })
}

/// Starts all events of a group.
pub(super) fn enable(leader: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: this request takes a number, no pointer; the descriptor is open as long as `leader` is borrowed.
    let result = unsafe { libc::ioctl(leader.as_raw_fd(), IOCTL_ENABLE as _, IOCTL_FLAG_GROUP) };
    if result < 0 {
        Err(last_error())
    } else {
        Ok(())
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests;
