//! The files of `/proc/PID` that are read here (proc(5)), and paths to them made without allocation.

use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Fault, Problem};
use crate::parse::{self, Fields, Line, Lines};
use crate::source::fill;

/// What `/proc/PID/stat` says of a process and of its children that were waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Stat {
    pub parent: u32,
    pub major_faults: u64,
    pub children_major_faults: u64,
    pub user_ticks: u64,
    pub system_ticks: u64,
    pub children_user_ticks: u64,
    pub children_system_ticks: u64,
    pub threads: u64,
    pub resident_pages: u64,
}

pub(super) fn stat(text: &[u8]) -> Result<Stat, Fault> {
    let line = Lines::new(text).expect("stat")?;
    // The name of the program comes second, in brackets, and may hold brackets and spaces of its own.
    let name_end = memchr::memrchr(b')', line.text).ok_or(line.fault("name", Problem::Missing))?;
    let mut fields = Fields::new(&line.text[name_end + 1..], line.number);
    fields.skip(1);
    let parent = fields.number("ppid")?;
    let parent = u32::try_from(parent).map_err(|_| line.fault("ppid", Problem::TooLarge))?;
    fields.skip(7);
    let major_faults = fields.number("majflt")?;
    let children_major_faults = fields.number("cmajflt")?;
    let user_ticks = fields.number("utime")?;
    let system_ticks = fields.number("stime")?;
    let children_user_ticks = fields.number("cutime")?;
    let children_system_ticks = fields.number("cstime")?;
    fields.skip(2);
    let threads = fields.number("num_threads")?;
    fields.skip(3);
    let resident_pages = fields.number("rss")?;
    Ok(Stat {
        parent,
        major_faults,
        children_major_faults,
        user_ticks,
        system_ticks,
        children_user_ticks,
        children_system_ticks,
        threads,
        resident_pages,
    })
}

/// Bytes read from and written towards disks, of `/proc/PID/io`; children that were waited for are part of them.
pub(super) fn io(text: &[u8]) -> Result<[u64; 2], Fault> {
    let [read, written] = keyed(
        text,
        [b"read_bytes:", b"write_bytes:"],
        ["read_bytes", "write_bytes"],
    )?;
    Ok([read, written])
}

/// Voluntary and involuntary context switches of a thread, of its `status`.
pub(super) fn switches(text: &[u8]) -> Result<[u64; 2], Fault> {
    keyed(
        text,
        [b"voluntary_ctxt_switches:", b"nonvoluntary_ctxt_switches:"],
        ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"],
    )
}

/// Nanoseconds in which a thread could run but had no core: the second field of its `schedstat`
/// (Documentation/scheduler/sched-stats.rst).
pub(super) fn run_delay(text: &[u8]) -> Result<u64, Fault> {
    let mut fields = Lines::new(text).expect("run delay")?.fields();
    fields.skip(1);
    fields.number("run delay")
}

/// The numbers of lines that start with a key.
fn keyed<const N: usize>(
    text: &[u8],
    keys: [&[u8]; N],
    items: [&'static str; N],
) -> Result<[u64; N], Fault> {
    let mut values = [None; N];
    let mut lines = Lines::new(text);
    let mut last = Line {
        text: b"",
        number: 1,
    };
    while let Some(line) = lines.next()? {
        last = line;
        let mut fields = line.fields();
        let key = fields.next().unwrap_or_default();
        if let Some(position) = keys.iter().position(|known| *known == key) {
            values[position] = Some(fields.number(items[position])?);
        }
    }
    let mut found = [0; N];
    for ((found, value), item) in found.iter_mut().zip(values).zip(items) {
        *found = value.ok_or(last.fault(item, Problem::Missing))?;
    }
    Ok(found)
}

/// Opens, reads and closes files whose paths differ from one time to the next, with buffers that are kept.
pub(super) struct Opener {
    path: Vec<u8>,
    root_length: usize,
    text: Vec<u8>,
}

impl Opener {
    pub(super) fn new(root: &Path) -> Self {
        let mut path = root.as_os_str().as_bytes().to_vec();
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        path.extend_from_slice(b"proc");
        let root_length = path.len();
        path.reserve(64);
        Self {
            path,
            root_length,
            text: vec![0; 8192],
        }
    }

    /// The path of `/proc/PID/task/TID/NAME`.
    fn thread_path(&mut self, process: u32, thread: u32, name: &str) -> &Path {
        self.path.truncate(self.root_length);
        // Writing to a vector does not fail.
        let _ = write!(self.path, "/{process}/task/{thread}/{name}");
        Path::new(OsStr::from_bytes(&self.path))
    }

    /// The path of `/proc/PID/NAME`.
    pub(super) fn process_path(&mut self, process: u32, name: &str) -> &Path {
        self.path.truncate(self.root_length);
        let _ = write!(self.path, "/{process}/{name}");
        Path::new(OsStr::from_bytes(&self.path))
    }

    /// The path of `/proc`.
    pub(super) fn proc_path(&mut self) -> &Path {
        self.path.truncate(self.root_length);
        Path::new(OsStr::from_bytes(&self.path))
    }

    /// What a file of a thread holds.
    pub(super) fn read_thread(
        &mut self,
        process: u32,
        thread: u32,
        name: &str,
    ) -> Result<&[u8], Errno> {
        self.thread_path(process, thread, name);
        self.read()
    }

    /// What a file of a process holds.
    pub(super) fn read_process(&mut self, process: u32, name: &str) -> Result<&[u8], Errno> {
        self.process_path(process, name);
        self.read()
    }

    /// Opens a file of a thread, to be read again and again.
    pub(super) fn open_thread(
        &mut self,
        process: u32,
        thread: u32,
        name: &str,
    ) -> Result<OwnedFd, Errno> {
        open(self.thread_path(process, thread, name))
    }

    /// What a file of a thread holds: through `kept`, if it was kept open.
    pub(super) fn read_kept_or_thread(
        &mut self,
        kept: Option<&OwnedFd>,
        process: u32,
        thread: u32,
        name: &str,
    ) -> Result<&[u8], Errno> {
        let Some(file) = kept else {
            return self.read_thread(process, thread, name);
        };
        let length = fill(file, &mut self.text)?;
        Ok(&self.text[..length])
    }

    fn read(&mut self) -> Result<&[u8], Errno> {
        let file = open(Path::new(OsStr::from_bytes(&self.path)))?;
        let length = fill(&file, &mut self.text)?;
        Ok(&self.text[..length])
    }
}

fn open(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// The number that a name in `/proc` stands for.
pub(super) fn number(name: &[u8]) -> Option<u32> {
    u32::try_from(parse::unsigned(name).ok()?).ok()
}

#[cfg(test)]
mod tests;
