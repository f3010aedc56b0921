//! The commands of bpf(2) that the program needs. All `unsafe` code about eBPF is here.

use crate::instruction::Instruction;
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::io;

/// `enum bpf_cmd`
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;

/// `BPF_MAP_TYPE_XSKMAP`
const MAP_TYPE_XSKMAP: u32 = 17;
/// `BPF_PROG_TYPE_XDP`
const PROG_TYPE_XDP: u32 = 6;
/// `BPF_XDP`
const ATTACH_XDP: u32 = 37;

/// What the verifier says is kept up to this length, in bytes.
const LOG_BYTES: usize = 64 << 10;

/// The name that `bpftool` and `ip link` show; at most 15 bytes.
const NAME: [u8; 16] = *b"rackscope_udp\0\0\0";

/// The beginnings of `union bpf_attr`, as far as each command needs them; the kernel takes the rest as zero.
#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: [u8; 16],
}

#[repr(C)]
#[derive(Default)]
struct MapUpdate {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

/// `bpf(command, attributes, sizeof(attributes))`
///
/// # Safety
/// `T` is the beginning of `union bpf_attr` for this command, its padding explicit, and every address in it is valid for
/// what the command does with it.
unsafe fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads and writes at most the size given; the caller vouches for addresses within.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(attributes),
            size_of::<T>(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// As [`bpf`], for the commands that answer with a new descriptor; again when it breaks off because a signal came, as the
/// verifier does with `EAGAIN` or `EINTR`. Not for ever, as signals may come faster than that.
///
/// # Safety
/// As there.
unsafe fn bpf_descriptor<T>(command: libc::c_int, attributes: &mut T) -> io::Result<OwnedFd> {
    const ATTEMPTS: u32 = 10;
    let mut attempt = 1;
    loop {
        // SAFETY: the caller's.
        match unsafe { bpf(command, attributes) } {
            Err(error)
                if attempt < ATTEMPTS
                    && matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) =>
            {
                attempt += 1;
            }
            outcome => {
                let descriptor = RawFd::try_from(outcome?).map_err(io::Error::other)?;
                // SAFETY: the kernel has just made it for us, and nobody else knows it.
                return Ok(unsafe { OwnedFd::from_raw_fd(descriptor) });
            }
        }
    }
}

/// The address of something for the kernel.
fn address<T>(of: *const T) -> u64 {
    of.expose_provenance() as u64
}

/// Descriptors are never negative.
fn number(descriptor: BorrowedFd<'_>) -> u32 {
    descriptor.as_raw_fd().cast_unsigned()
}

/// A map from queue to AF_XDP socket.
pub(crate) fn create_socket_map(queues: u32) -> io::Result<OwnedFd> {
    let mut attributes = MapCreate {
        map_type: MAP_TYPE_XSKMAP,
        key_size: 4,
        value_size: 4,
        max_entries: queues,
        map_name: NAME,
        ..Default::default()
    };
    // SAFETY: there are no addresses in it.
    unsafe { bpf_descriptor(MAP_CREATE, &mut attributes) }
}

/// Put `socket` at `queue`.
pub(crate) fn set_socket(
    map: BorrowedFd<'_>,
    queue: u32,
    socket: BorrowedFd<'_>,
) -> io::Result<()> {
    let value = number(socket);
    let mut attributes = MapUpdate {
        map_fd: number(map),
        key: address(&raw const queue),
        value: address(&raw const value),
        ..Default::default()
    };
    // SAFETY: key and value have the four bytes that the map was made for, and outlive the call.
    unsafe { bpf(MAP_UPDATE_ELEM, &mut attributes)? };
    Ok(())
}

/// Have the kernel verify and compile a program. An error has what the kernel says, and what its verifier says; the
/// latter is empty if it did not come to that.
pub(crate) fn load_program(instructions: &[Instruction]) -> Result<OwnedFd, (io::Error, String)> {
    // None of the functions that the program calls is reserved to the GPL.
    let license = c"Apache-2.0";
    let mut attributes = ProgLoad {
        prog_type: PROG_TYPE_XDP,
        insn_cnt: u32::try_from(instructions.len()).unwrap_or(u32::MAX),
        insns: address(instructions.as_ptr()),
        license: address(license.as_ptr()),
        prog_name: NAME,
        expected_attach_type: ATTACH_XDP,
        ..Default::default()
    };
    // SAFETY: the instructions and the license outlive the call, and their length and end are told.
    let first = match unsafe { bpf_descriptor(PROG_LOAD, &mut attributes) } {
        Ok(program) => return Ok(program),
        Err(error) => error,
    };
    // Again for the log, which would cost time where all is well.
    let mut log = vec![0_u8; LOG_BYTES];
    attributes.log_level = 1;
    attributes.log_size = u32::try_from(log.len()).unwrap_or(0);
    attributes.log_buf = address(log.as_mut_ptr());
    // SAFETY: as above, and the kernel writes at most `log_size` bytes to the log.
    match unsafe { bpf_descriptor(PROG_LOAD, &mut attributes) } {
        Ok(program) => Ok(program),
        Err(_) => {
            let end = log.iter().position(|byte| *byte == 0).unwrap_or(0);
            let text = String::from_utf8_lossy(&log[..end]).trim().to_owned();
            Err((first, text))
        }
    }
}

/// Attach a program to an interface for as long as the answer is open.
pub(crate) fn create_link(
    program: BorrowedFd<'_>,
    interface: u32,
    flags: u32,
) -> io::Result<OwnedFd> {
    let mut attributes = LinkCreate {
        prog_fd: number(program),
        target_ifindex: interface,
        attach_type: ATTACH_XDP,
        flags,
    };
    // SAFETY: there are no addresses in it.
    unsafe { bpf_descriptor(LINK_CREATE, &mut attributes) }
}

#[cfg(test)]
mod tests;
