//! Signals as something to poll: they are blocked and read from a `signalfd(2)`.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::error::Error;

/// Those that ask the keeper to end the tree.
const ENDING: [libc::c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];
/// `sizeof(struct signalfd_siginfo)`, fixed by signalfd(2); its first field is the number, 32 bits.
const RECORD: usize = 128;

/// The signals that have arrived.
pub(crate) struct SignalQueue(OwnedFd);

impl SignalQueue {
    /// Blocks the signals in this process and queues them from now on. A child inherits the block
    /// (see [`unblock_all`]); a keeper that was forked from a keeper opens a queue of its own.
    pub(crate) fn open() -> Result<Self, Error> {
        let mut set = empty_set();
        for signal in ENDING.into_iter().chain([libc::SIGCHLD]) {
            // A signal that whoever started the keeper ignores would never be queued.
            // SAFETY: `set` is an initialised signal set, `signal` a valid number, SIG_DFL a valid disposition.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::sigaddset(&raw mut set, signal);
            }
        }
        set_mask(&set)?;
        // SAFETY: `set` is initialised and outlives the call; -1 asks for a new descriptor.
        let descriptor =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(Error::cannot("open a signalfd")(
                std::io::Error::last_os_error(),
            ));
        }
        // SAFETY: the kernel has just given this descriptor to us alone.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Readable when a signal has arrived.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Takes everything that has arrived: whether one of SIGTERM, SIGINT, SIGHUP, SIGQUIT has. SIGCHLD is only a reason
    /// to wake: the caller reaps in any case.
    pub(crate) fn asked_to_end(&self) -> bool {
        let mut asked = false;
        let mut record = [0_u8; RECORD];
        while let Ok(RECORD) = rustix::io::read(&self.0, &mut record) {
            let number = i32::from_ne_bytes([record[0], record[1], record[2], record[3]]);
            asked |= ENDING.contains(&number);
        }
        asked
    }
}

/// Undoes for a program about to be executed what a keeper (and Rust, which ignores SIGPIPE) changed.
pub(crate) fn unblock_all() -> Result<(), Error> {
    // SAFETY: SIG_DFL is a valid disposition and SIGPIPE a valid number.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    set_mask(&empty_set())
}

fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the whole set and cannot fail on a valid pointer.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

fn set_mask(set: &libc::sigset_t) -> Result<(), Error> {
    // SAFETY: `set` is initialised; the old mask is not asked for.
    let result = unsafe { libc::sigprocmask(libc::SIG_SETMASK, set, std::ptr::null_mut()) };
    if result == 0 {
        Ok(())
    } else {
        Err(Error::cannot("set the signal mask")(
            std::io::Error::last_os_error(),
        ))
    }
}
