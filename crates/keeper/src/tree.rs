//! Finding and signalling every descendant of this process.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal,
};

/// What `/proc/PID/stat` says of a process (`proc_pid_stat(5)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    parent: i32,
    /// Clock ticks since boot; with the process id it names one process for good.
    start_time: u64,
    /// Ended and not yet reaped: there is nothing left to signal.
    is_zombie: bool,
}

/// The descendants of this process that were asked to end.
#[derive(Debug, Default)]
pub(crate) struct Asked(HashSet<(i32, Option<u64>)>);

impl Asked {
    /// Asks every descendant to end, each once: to be called again for those that were forked meanwhile.
    pub(crate) fn ask_descendants(&mut self, child: Option<Pid>) {
        for (pid, start_time) in find_descendants(child) {
            if self.0.insert((pid, start_time)) {
                signal_one(pid, start_time, Signal::TERM);
                // A stopped process would not see the first one.
                signal_one(pid, start_time, Signal::CONT);
            }
        }
    }
}

/// Kills every descendant of this process. One pass: what is forked meanwhile is met by the next one.
pub(crate) fn kill_descendants(child: Option<Pid>) {
    for (pid, start_time) in find_descendants(child) {
        signal_one(pid, start_time, Signal::KILL);
    }
}

/// Ids and start times of all descendants that have not ended. One whose parent ends becomes the child of this
/// process, which is a subreaper, so it is found as well. Where /proc tells nothing there is still the `child` that
/// was not reaped yet, whose number is therefore its own.
fn find_descendants(child: Option<Pid>) -> Vec<(i32, Option<u64>)> {
    let processes = read_processes(Path::new("/proc"));
    let mut found = Vec::new();
    for pid in descendants(&processes, getpid().as_raw_nonzero().get()) {
        if let Some(process) = processes.get(&pid).filter(|process| !process.is_zombie) {
            found.push((pid, Some(process.start_time)));
        }
    }
    if let (true, Some(child)) = (processes.is_empty(), child) {
        found.push((child.as_raw_nonzero().get(), None));
    }
    found
}

/// Sends `signal` to `pid` if it is still the process that started at `start_time`.
fn signal_one(pid: i32, start_time: Option<u64>, signal: Signal) {
    let Some(handle) = Pid::from_raw(pid) else {
        return;
    };
    let pidfd = pidfd_open(handle, PidfdFlags::empty());
    // The number may have been given to another process since it was read. Once a pidfd is open it cannot change again.
    let now = read_process(Path::new("/proc"), pid).map(|process| process.start_time);
    if start_time.is_some() && now != start_time {
        return;
    }
    // A process that has ended meanwhile needs no signal, and one that we may not signal (none, under no_new_privs)
    // would be met again in the next pass: an error here has no other consequence.
    let _ = match pidfd {
        Ok(pidfd) => pidfd_send_signal(pidfd, signal),
        Err(_) => kill_process(handle, signal),
    };
}

/// Every process below `root`, parents before children.
fn descendants(processes: &HashMap<i32, Process>, root: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (&pid, process) in processes {
        children.entry(process.parent).or_default().push(pid);
    }
    let mut found = Vec::new();
    let mut next = vec![root];
    while let Some(pid) = next.pop() {
        // Taking the entry out keeps this finite even if the snapshot, which is not atomic, holds a circle.
        for child in children.remove(&pid).unwrap_or_default() {
            found.push(child);
            next.push(child);
        }
    }
    found
}

fn read_processes(proc: &Path) -> HashMap<i32, Process> {
    let Ok(entries) = fs::read_dir(proc) else {
        return HashMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, read_process(proc, pid)?))
        })
        .collect()
}

fn read_process(proc: &Path, pid: i32) -> Option<Process> {
    parse_stat(&fs::read(proc.join(pid.to_string()).join("stat")).ok()?)
}

/// Reads `PID (COMMAND) STATE PARENT ...`; the command may hold spaces and parentheses.
fn parse_stat(stat: &[u8]) -> Option<Process> {
    let end_of_command = stat.iter().rposition(|&byte| byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[end_of_command + 1..])
        .ok()?
        .split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // Field 22 of the line; state is field 3 and parent field 4.
    let start_time = fields.nth(17)?.parse().ok()?;
    Some(Process {
        parent,
        start_time,
        is_zombie: matches!(state, "Z" | "X" | "x"),
    })
}

#[cfg(test)]
mod tests;
