//! The process that serves: in the background, as another user, with its number in a file.
//!
//! All `unsafe` code of this crate is here.

use crate::options::ProcessOptions;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};

/// The texts of a user's entry are shorter.
const ENTRY_BYTES: usize = 64 << 10;

/// What of it could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("-u {0}: this host has no such user")]
    User(String),
    #[error("cannot {0}: {1}")]
    System(String, #[source] io::Error),
}

/// What is undone when the process ends.
#[derive(Debug)]
pub struct Process {
    pid_file: Option<PathBuf>,
}

/// Do what is asked, in an order in which each step may still do what it needs. Then comes what needs root, then
/// [`become_user`]. Refuses to go to the background where there are other threads, which do not survive it.
pub fn prepare(options: &ProcessOptions) -> Result<Process, Error> {
    if options.dumps_core {
        let mut limit = getrlimit(Resource::Core);
        limit.current = limit.maximum;
        setrlimit(Resource::Core, limit).map_err(system("allow core files"))?;
    }
    if options.is_daemon {
        go_to_background()?;
    }
    let process = Process {
        pid_file: options.pid_file.clone(),
    };
    if let Some(path) = &options.pid_file {
        write_pid(path)?;
    }
    if options.locks_memory {
        lock_memory()?;
    }
    Ok(process)
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(path) = &self.pid_file {
            // The user that the process became may not be allowed to; the number of a process that has ended does
            // no harm.
            _ = std::fs::remove_file(path);
        }
    }
}

fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
    let what = what.into();
    move |error| Error::System(what, error.into())
}

fn write_pid(path: &Path) -> Result<(), Error> {
    // Readers never see half a number.
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    std::fs::write(&draft, format!("{}\n", std::process::id()))
        .and_then(|()| std::fs::rename(&draft, path))
        .map_err(system(format!("write {}", path.display())))
}

fn go_to_background() -> Result<(), Error> {
    let others = std::fs::read_dir("/proc/self/task")
        .map(|threads| threads.count() - 1)
        .map_err(system("see which threads there are (/proc/self/task)"))?;
    if others > 0 {
        return Err(system("go to the background")(io::Error::other(
            "another thread runs, which would be lost",
        )));
    }
    // SAFETY: no other thread runs, nor can one start another, so the child is as whole as its parent.
    if unsafe { libc::daemon(1, 0) } != 0 {
        return Err(system("go to the background")(io::Error::last_os_error()));
    }
    Ok(())
}

fn lock_memory() -> Result<(), Error> {
    // As pages are used: the index reserves far more than it ever fills, and the log may stay empty.
    let which = libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT;
    // SAFETY: takes flags and changes no memory.
    if unsafe { libc::mlockall(which) } != 0 {
        return Err(system(
            "lock memory (it takes CAP_IPC_LOCK or a larger 'ulimit -l')",
        )(io::Error::last_os_error()));
    }
    Ok(())
}

/// User and group of who has this name (`getpwnam_r(3)`).
fn find_user(name: &CStr) -> Option<(libc::uid_t, libc::gid_t)> {
    let mut texts = vec![0; ENTRY_BYTES];
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: the name ends with a zero; the entry and its texts are written to memory of ours, of the length given.
    unsafe {
        libc::getpwnam_r(
            name.as_ptr(),
            entry.as_mut_ptr(),
            texts.as_mut_ptr(),
            texts.len(),
            &raw mut found,
        );
        // SAFETY: null, or the entry, which is filled then.
        found.as_ref().map(|entry| (entry.pw_uid, entry.pw_gid))
    }
}

/// Give up root for good. A process that is not root stays who it is.
pub fn become_user(name: &str) -> Result<(), Error> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let unknown = || Error::User(name.to_owned());
    let text = CString::new(name).map_err(|_| unknown())?;
    let (user, group) = find_user(&text).ok_or_else(unknown)?;
    // SAFETY: plain numbers, and the name from above. Groups go first: without root they no longer could.
    let refused = unsafe {
        libc::initgroups(text.as_ptr(), group) != 0
            || libc::setgid(group) != 0
            || libc::setuid(user) != 0
    };
    if refused {
        return Err(system(format!("become {name}"))(io::Error::last_os_error()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
