//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Pid;

use crate::error::Error;
use crate::user::UserName;

const HELP: &str = "\
Runs PROGRAM and ends it, with everything that it started, when process PID ends however it ends.

Usage: rackscope-keeper --parent PID [OPTIONS] -- PROGRAM [ARGUMENT...]

  --parent PID            end everything when this process ends; it must be the keeper's own parent
  --cores LIST            run PROGRAM on these cores, such as 0,2 or 0-3
  --user NAME             run PROGRAM as this user (takes root); also UID:GID
  --folder DIR            run PROGRAM in this folder
  --limit-nofile N        let PROGRAM open N files
  --control-group-procs DIR
                          start PROGRAM in the control group whose folder this is, by its cgroup.procs; may be given
                          again for another hierarchy. The keepers stay outside
  --network-namespace FILE
                          start PROGRAM in this network namespace, such as /run/netns/NAME (takes root)
  --grace-seconds S       time between SIGTERM and SIGKILL (5)
  --scratch DIR           remove this folder in the end; may be given again for another
  --status-descriptor FD  write 'started PID' or 'failed REASON' to this inherited descriptor, and close it
                          when nothing is left
  --help, --version

Exit status: PROGRAM's own, or 128 + the signal that ended it; 127 when PROGRAM was not found, 126 when it could not
be executed, 125 when the keeper itself failed.";

/// Seconds between SIGTERM and SIGKILL unless told otherwise.
const GRACE: Duration = Duration::from_secs(5);
/// The most that `--grace-seconds` takes: a keeper that waits longer than an hour is a leak.
const LONGEST_GRACE_SECONDS: f64 = 3600.0;

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Request {
    /// Run a program.
    Run(Box<Arguments>),
    /// Print this and end.
    Print(String),
}

/// What to run, and how.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) parent: Pid,
    pub(crate) cores: Vec<usize>,
    pub(crate) user: Option<UserName>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) open_files: Option<u64>,
    pub(crate) control_groups: Vec<PathBuf>,
    pub(crate) network_namespace: Option<PathBuf>,
    pub(crate) grace: Duration,
    pub(crate) scratch: Vec<PathBuf>,
    pub(crate) status_descriptor: Option<i32>,
    pub(crate) program: OsString,
    pub(crate) program_arguments: Vec<OsString>,
}

/// Reads the command line without the program's own name. Everything after `--` belongs to PROGRAM.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, Error> {
    let mut rest = arguments.into_iter();
    let mut parent = None;
    let mut cores = Vec::new();
    let mut user = None;
    let mut folder = None;
    let mut open_files = None;
    let mut control_groups = Vec::new();
    let mut network_namespace = None;
    let mut grace = GRACE;
    let mut scratch = Vec::new();
    let mut status_descriptor = None;
    loop {
        let Some(option) = rest.next() else {
            return Err(usage("there is no PROGRAM after --"));
        };
        let option = option.to_string_lossy().into_owned();
        match option.as_str() {
            "--" => break,
            "--help" | "-h" => return Ok(Request::Print(HELP.to_owned())),
            "--version" | "-V" => {
                return Ok(Request::Print(format!(
                    "rackscope-keeper {}",
                    env!("CARGO_PKG_VERSION")
                )));
            }
            _ => {}
        }
        if !OPTIONS.contains(&option.as_str()) {
            return Err(usage(format!("unknown option '{option}'")));
        }
        let value = rest
            .next()
            .ok_or_else(|| usage(format!("{option} needs a value")))?;
        match option.as_str() {
            "--folder" => {
                folder = Some(PathBuf::from(value));
                continue;
            }
            "--scratch" => {
                scratch.push(PathBuf::from(value));
                continue;
            }
            "--control-group-procs" => {
                control_groups.push(PathBuf::from(value));
                continue;
            }
            "--network-namespace" => {
                network_namespace = Some(PathBuf::from(value));
                continue;
            }
            _ => {}
        }
        let text = value
            .into_string()
            .map_err(|value| usage(format!("{option} {value:?} is not text")))?;
        match option.as_str() {
            "--parent" => {
                let number = number::<i32>(&option, &text)?;
                let pid = (number > 0).then(|| Pid::from_raw(number)).flatten();
                parent =
                    Some(pid.ok_or_else(|| usage(format!("--parent {text} is not a process id")))?);
            }
            "--cores" => cores = parse_cores(&text)?,
            "--user" => user = Some(text.parse()?),
            "--limit-nofile" => open_files = Some(number(&option, &text)?),
            "--grace-seconds" => grace = parse_grace(&text)?,
            _ => {
                let descriptor = number::<i32>(&option, &text)?;
                if descriptor < 3 {
                    return Err(usage(format!("--status-descriptor {text} must be above 2")));
                }
                status_descriptor = Some(descriptor);
            }
        }
    }
    Ok(Request::Run(Box::new(Arguments {
        parent: parent.ok_or_else(|| usage("--parent PID is missing"))?,
        cores,
        user,
        folder,
        open_files,
        control_groups,
        network_namespace,
        grace,
        scratch,
        status_descriptor,
        program: rest
            .next()
            .ok_or_else(|| usage("there is no PROGRAM after --"))?,
        program_arguments: rest.collect(),
    })))
}

/// Options that take a value.
const OPTIONS: [&str; 10] = [
    "--parent",
    "--cores",
    "--user",
    "--folder",
    "--limit-nofile",
    "--control-group-procs",
    "--network-namespace",
    "--grace-seconds",
    "--scratch",
    "--status-descriptor",
];

fn usage(message: impl Into<String>) -> Error {
    Error::Usage(message.into())
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T, Error> {
    text.parse()
        .map_err(|_| usage(format!("{option} {text} is not a number")))
}

fn parse_grace(text: &str) -> Result<Duration, Error> {
    let seconds: f64 = number("--grace-seconds", text)?;
    if !(0.0..=LONGEST_GRACE_SECONDS).contains(&seconds) {
        return Err(usage(format!(
            "--grace-seconds {text} is not from 0 to {LONGEST_GRACE_SECONDS}"
        )));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Core numbers of `0,2` or `0-3,8`.
fn parse_cores(text: &str) -> Result<Vec<usize>, Error> {
    let wrong = || usage(format!("--cores {text} is not a list such as 0,2 or 0-3"));
    let core = |part: &str| {
        let core: usize = part.parse().map_err(|_| wrong())?;
        if core < rustix::thread::CpuSet::MAX_CPU {
            Ok(core)
        } else {
            Err(Error::Core(core))
        }
    };
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (core(first)?, core(last)?);
        if last < first {
            return Err(wrong());
        }
        cores.extend(first..=last);
    }
    Ok(cores)
}

#[cfg(test)]
mod tests;
