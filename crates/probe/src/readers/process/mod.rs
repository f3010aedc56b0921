//! What a labelled process and all that descend from it use: `/proc/PID/stat`, `io`, and of each thread `schedstat` and
//! `status` (proc(5)).

mod account;
mod files;
mod scan;
mod threads;

use std::io;

use rustix::io::Errno;

use self::account::{Account, Entry, FAULTS, READ, SYSTEM, USER, Usage, WRITTEN};
use self::files::{Opener, Stat};
use self::scan::Scanner;
use self::threads::Threads;
use crate::clock::{self, Throttle};
use crate::host::Host;
use crate::probes::{Probe, column, labelled};
use crate::readers::Reader;
use crate::source::Source;

const NEEDS: &str = "a running process, and /proc mounted so that it is seen (hidepid=0)";
const IO_NEEDS: &str = "the right to trace the process: the same user, or CAP_SYS_PTRACE";

/// More processes than this in a tree are not followed; each keeps two files open.
const MOST_PROCESSES: usize = 256;

/// Threads read in a second, in turns.
const THREADS_PER_SECOND: usize = 160;

/// Processes and threads are searched this often at most, and for this share of the time at most.
const SCAN_NANOSECONDS: u64 = 500_000_000;
const SCAN_SHARE: u64 = 500;

/// Columns of the first probe, in their order in a row; then come those of the second.
const COLUMNS: [(&str, Option<(&str, &str)>); 9] = [
    ("process_cpu_seconds_total", Some(("state", "user"))),
    ("process_cpu_seconds_total", Some(("state", "system"))),
    ("process_resident_bytes", None),
    ("process_count", None),
    ("process_threads", None),
    ("process_page_faults_major_total", None),
    ("process_run_delay_seconds_total", None),
    (
        "process_context_switches_total",
        Some(("kind", "voluntary")),
    ),
    (
        "process_context_switches_total",
        Some(("kind", "involuntary")),
    ),
];
const IO_COLUMNS: [&str; 2] = ["process_read_bytes_total", "process_write_bytes_total"];

struct Process {
    label: String,
    root: u32,
    members: Vec<Member>,
    account: Account,
    threads: Threads,
    scanner: Scanner,
    opener: Opener,
    throttle: Throttle,
    threads_per_tick: usize,
    found: Vec<u32>,
    page_bytes: f64,
    clock_ticks_per_second: f64,
    /// Why bytes read and written are not known; empty while they are.
    io_reason: String,
    io_at_start: bool,
    complete: bool,
    unreadable: Option<String>,
}

/// A process that lives; what it used is in the account.
struct Member {
    pid: u32,
    stat: Source,
    io: Option<Source>,
}

pub(super) fn build(host: &Host) -> Vec<Box<dyn Reader>> {
    host.processes
        .iter()
        .map(|(label, root)| follow(host, label, *root))
        .collect()
}

/// The threads of a process and of all that descend from it, as far as they are followed here.
pub(super) fn threads_of_tree(host: &Host, root: u32) -> Vec<u32> {
    let mut opener = Opener::new(&host.root);
    let mut scanner = Scanner::new(&mut opener, root);
    let mut processes = vec![root];
    scanner.descendants(&mut opener, &mut processes, MOST_PROCESSES);
    let mut threads = Vec::new();
    for process in processes {
        scanner.threads(&mut opener, process, |_, thread| threads.push(thread));
    }
    threads
}

fn follow(host: &Host, label: &str, root: u32) -> Box<dyn Reader> {
    let mut opener = Opener::new(&host.root);
    let missing = match opener.read_process(root, "stat") {
        Ok(text) => files::stat(text).err().map(|fault| {
            fault
                .at(&host.path(&format!("proc/{root}/stat")))
                .to_string()
        }),
        Err(Errno::NOENT | Errno::SRCH) => Some(format!(
            "there is no process {root}, or /proc hides it (hidepid)"
        )),
        Err(errno) => Some(format!(
            "cannot read /proc/{root}/stat: {}",
            io::Error::from(errno)
        )),
    };
    if let Some(reason) = missing {
        return probe(label).missing_reader(reason);
    }
    let ticks_per_second = 1.0 / host.interval.as_secs_f64();
    let mut reader = Process {
        label: label.to_owned(),
        root,
        members: Vec::new(),
        account: Account::default(),
        threads: Threads::new(),
        scanner: Scanner::new(&mut opener, root),
        opener,
        throttle: Throttle::new(SCAN_NANOSECONDS, SCAN_SHARE),
        threads_per_tick: ((THREADS_PER_SECOND as f64 / ticks_per_second) as usize).max(4),
        found: Vec::with_capacity(MOST_PROCESSES),
        page_bytes: host.page_bytes as f64,
        clock_ticks_per_second: host.clock_ticks_per_second as f64,
        io_reason: String::new(),
        io_at_start: true,
        complete: true,
        unreadable: None,
    };
    reader.admit(root);
    reader.scan();
    reader.io_at_start = reader.io_reason.is_empty();
    Box::new(reader)
}

fn probe(label: &str) -> Probe {
    let columns = labelled(&COLUMNS, ("process", label));
    Probe::new(format!("process:{label}"), NEEDS, columns)
}

impl Process {
    /// Searches for processes and threads that are new or gone.
    fn scan(&mut self) {
        let Self {
            found,
            scanner,
            opener,
            threads,
            ..
        } = self;
        found.clear();
        // Those whose parent has ended are still part of the tree; one that has ended is not, as its number may be
        // another's by now.
        found.extend(self.members.iter().map(|member| member.pid));
        self.complete = scanner.descendants(opener, found, MOST_PROCESSES);
        threads.begin_scan();
        for &process in found.iter() {
            scanner.threads(opener, process, |opener, thread| {
                threads.meet(opener, process, thread)
            });
        }
        threads.end_scan();
        for position in 0..self.found.len() {
            let pid = self.found[position];
            if !self.members.iter().any(|member| member.pid == pid) {
                self.admit(pid);
            }
        }
    }

    /// Takes a process into the tree; one that is gone again is left alone.
    fn admit(&mut self, pid: u32) {
        let stat = match Source::open_small(self.opener.process_path(pid, "stat")) {
            Ok(stat) => stat,
            Err(error) => {
                if !error.is_gone() {
                    self.unreadable = Some(error.to_string());
                }
                return;
            }
        };
        let io = Source::open_small(self.opener.process_path(pid, "io"));
        let io = match io.and_then(Source::readable) {
            Ok(io) => Some(io),
            Err(error) => {
                if !error.is_gone() || pid == self.root {
                    self.io_reason = error.to_string();
                }
                None
            }
        };
        self.members.push(Member { pid, stat, io });
        self.account.entries.push(Entry {
            pid,
            parent: 0,
            usage: [0; 5],
            children_ticks: None,
            growth: 0,
            ended: None,
        });
    }

    /// Reads every process and returns the sum of those that live: processes, threads, resident pages.
    fn read_members(&mut self) -> [u64; 3] {
        let mut sums = [0_u64; 3];
        let Self {
            members,
            account,
            unreadable,
            ..
        } = self;
        members.retain_mut(|member| {
            let entry = account
                .entries
                .iter_mut()
                .find(|entry| entry.pid == member.pid && entry.ended.is_none());
            let Some(entry) = entry else { return false };
            let stat = match member.stat.contents().map(files::stat) {
                Ok(Ok(stat)) => stat,
                // The kernel answers so once the process is gone.
                Err(_) => {
                    entry.ended = Some(0);
                    return false;
                }
                Ok(Err(fault)) => {
                    if unreadable.is_none() {
                        *unreadable = Some(fault.at(member.stat.path()).to_string());
                    }
                    entry.growth = 0;
                    return true;
                }
            };
            update(entry, &stat);
            if let Some(Ok(Ok([read, written]))) =
                member.io.as_mut().map(|io| io.contents().map(files::io))
            {
                entry.usage[READ] = read;
                entry.usage[WRITTEN] = written;
            }
            sums[0] += 1;
            sums[1] = sums[1].saturating_add(stat.threads);
            sums[2] = sums[2].saturating_add(stat.resident_pages);
            true
        });
        sums
    }
}

fn update(entry: &mut Entry, stat: &Stat) {
    // No kernel says numbers so large that sums saturate; a file in its place may.
    let children_ticks = stat
        .children_user_ticks
        .saturating_add(stat.children_system_ticks);
    entry.parent = stat.parent;
    entry.growth = children_ticks.saturating_sub(entry.children_ticks.unwrap_or(children_ticks));
    entry.children_ticks = Some(children_ticks);
    entry.usage[USER] = stat.user_ticks.saturating_add(stat.children_user_ticks);
    entry.usage[SYSTEM] = stat.system_ticks.saturating_add(stat.children_system_ticks);
    entry.usage[FAULTS] = stat.major_faults.saturating_add(stat.children_major_faults);
}

impl Reader for Process {
    fn probes(&self) -> Vec<Probe> {
        let mut probe = probe(&self.label);
        if !self.complete {
            probe = probe.untrusted(format!(
                "the tree has more than the {MOST_PROCESSES} processes that are followed"
            ));
        }
        if self.threads.left_out > 0 {
            let count = self.threads.left_out;
            probe = probe.untrusted(format!(
                "context switches and run delay miss {count} threads: more than are followed"
            ));
        }
        if let Some(reason) = &self.unreadable {
            probe = probe.untrusted(reason);
        }
        if self.members.is_empty() {
            probe.note("all processes of the tree have ended");
        }
        if !self.threads.has_run_delay {
            probe.note("this kernel does not count run delay (CONFIG_SCHED_INFO)");
        }
        let columns = IO_COLUMNS
            .iter()
            .map(|name| column(name, &[("process", &self.label)]))
            .collect();
        let mut io = Probe::new(format!("process_io:{}", self.label), IO_NEEDS, columns);
        if !self.io_at_start {
            io = io.missing(&self.io_reason);
        } else if !self.io_reason.is_empty() {
            io = io.untrusted(&self.io_reason);
        }
        vec![probe, io]
    }

    fn read(&mut self, row: &mut [f64]) {
        let [processes, threads, pages] = self.read_members();
        let usage: Usage = self.account.total();
        if processes == 0 {
            return;
        }
        row[0] = usage[USER] as f64 / self.clock_ticks_per_second;
        row[1] = usage[SYSTEM] as f64 / self.clock_ticks_per_second;
        row[2] = pages as f64 * self.page_bytes;
        row[3] = processes as f64;
        row[4] = threads as f64;
        row[5] = usage[FAULTS] as f64;
        let waits = self.threads.total(&mut self.opener, self.threads_per_tick);
        if self.threads.has_run_delay {
            row[6] = waits[0] as f64 / 1e9;
        }
        if self.threads.has_switches {
            row[7] = waits[1] as f64;
            row[8] = waits[2] as f64;
        }
        if self.io_at_start && self.io_reason.is_empty() {
            row[9] = usage[READ] as f64;
            row[10] = usage[WRITTEN] as f64;
        }
        // After the reading, which tells who has ended; what is found is read with the next row.
        let now = clock::monotonic();
        if self.throttle.is_due(now) {
            self.scan();
            self.throttle.done(now, clock::monotonic());
        }
    }
}

#[cfg(test)]
mod tests;
