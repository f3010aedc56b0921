//! `/dev/ipmi0`: how the kernel's IPMI driver is asked (Documentation/driver-api/ipmi.rst, include/uapi/linux/ipmi.h).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How a management controller is asked.
pub(super) trait Transport: Send {
    /// Sends a request and waits for its answer, the completion code first; how long it is.
    fn ask(
        &mut self,
        network_function: u8,
        command: u8,
        request: &[u8],
        answer: &mut [u8],
    ) -> io::Result<usize>;
}

/// Where the device may be.
const PATHS: [&str; 3] = ["/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0"];
/// The driver itself gives a controller up after some seconds.
const PATIENCE: Duration = Duration::from_secs(4);

/// The address of the server's own controller.
#[repr(C)]
struct SystemInterfaceAddress {
    kind: libc::c_int,
    channel: libc::c_short,
    unit: u8,
}

/// A message without its address.
#[repr(C)]
struct Message {
    network_function: u8,
    command: u8,
    length: u16,
    data: *mut u8,
}

#[repr(C)]
struct Request {
    address: *mut u8,
    address_length: libc::c_uint,
    number: libc::c_long,
    message: Message,
}

#[repr(C)]
struct Received {
    kind: libc::c_int,
    address: *mut u8,
    address_length: libc::c_uint,
    number: libc::c_long,
    message: Message,
}

const SYSTEM_INTERFACE: libc::c_int = 0x0c;
const CONTROLLERS_CHANNEL: libc::c_short = 0x0f;
/// The largest address of any kind.
const ADDRESS_BYTES: usize = 40;
const IS_RESPONSE: libc::c_int = 1;

/// `_IOR('i', 13, struct ipmi_req)`.
const SEND_COMMAND: u64 = 2 << 30 | (size_of::<Request>() as u64) << 16 | (b'i' as u64) << 8 | 13;
/// `_IOWR('i', 11, struct ipmi_recv)`.
const RECEIVE_AND_CUT: u64 =
    3 << 30 | (size_of::<Received>() as u64) << 16 | (b'i' as u64) << 8 | 11;

/// The kernel's door to the management controller.
pub(super) struct Device {
    file: File,
    number: libc::c_long,
}

impl Device {
    /// The device; None where there is none, else why it cannot be opened.
    pub(super) fn open() -> Result<Option<Self>, String> {
        for path in PATHS {
            match OpenOptions::new().read(true).write(true).open(path) {
                Ok(file) => return Ok(Some(Self { file, number: 0 })),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("cannot open {path}: {error}; run as root")),
            }
        }
        Ok(None)
    }

    fn send(&self, network_function: u8, command: u8, request: &[u8]) -> io::Result<()> {
        let mut address = SystemInterfaceAddress {
            kind: SYSTEM_INTERFACE,
            channel: CONTROLLERS_CHANNEL,
            unit: 0,
        };
        let mut data = request.to_vec();
        let mut request = Request {
            address: (&raw mut address).cast(),
            address_length: size_of::<SystemInterfaceAddress>() as libc::c_uint,
            number: self.number,
            message: Message {
                network_function,
                command,
                length: data.len() as u16,
                data: data.as_mut_ptr(),
            },
        };
        // SAFETY: the request is laid out as the kernel's `struct ipmi_req`, and its two pointers point to the address
        // and the data, with their lengths beside them, which live until the call returns; it keeps neither.
        let result =
            unsafe { libc::ioctl(self.file.as_raw_fd(), SEND_COMMAND as _, &raw mut request) };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// The next answer that waits: its kind, number and length; None when none waits.
    fn receive(&self, answer: &mut [u8]) -> io::Result<Option<(libc::c_int, libc::c_long, usize)>> {
        let mut address = [0_u8; ADDRESS_BYTES];
        let mut received = Received {
            kind: 0,
            address: address.as_mut_ptr(),
            address_length: address.len() as libc::c_uint,
            number: 0,
            message: Message {
                network_function: 0,
                command: 0,
                length: answer.len().min(usize::from(u16::MAX)) as u16,
                data: answer.as_mut_ptr(),
            },
        };
        // SAFETY: laid out as the kernel's `struct ipmi_recv`; the kernel writes at most as many bytes behind the two
        // pointers as the lengths beside them say, and both buffers are borrowed until the call returns.
        let result = unsafe {
            libc::ioctl(
                self.file.as_raw_fd(),
                RECEIVE_AND_CUT as _,
                &raw mut received,
            )
        };
        if result < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN) => Ok(None),
                // The answer was longer, and was cut: what is there can be read.
                Some(libc::EMSGSIZE) => Ok(Some((received.kind, received.number, answer.len()))),
                _ => Err(error),
            };
        }
        let length = usize::from(received.message.length).min(answer.len());
        Ok(Some((received.kind, received.number, length)))
    }
}

impl Transport for Device {
    fn ask(
        &mut self,
        network_function: u8,
        command: u8,
        request: &[u8],
        answer: &mut [u8],
    ) -> io::Result<usize> {
        self.number += 1;
        self.send(network_function, command, request)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).unwrap_or_default();
            let mut files = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut files, Some(&timeout)) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            match self.receive(answer)? {
                Some((IS_RESPONSE, number, length)) if number == self.number => return Ok(length),
                // An event, or an answer that was given up.
                Some(_) | None => {}
            }
        }
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests;
