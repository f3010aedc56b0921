//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::ValueExt;
use lexopt::prelude::{Long, Short, Value};
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

/// Reads the command line without the program's own name. Everything from PROGRAM on belongs to it.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, Error> {
    let mut parser = lexopt::Parser::from_args(arguments);
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
    let program = loop {
        let argument = parser
            .next()?
            .ok_or_else(|| Error::usage("there is no PROGRAM after --"))?;
        match argument {
            Long("parent") => {
                let number: i32 = number(&mut parser, "--parent")?;
                let pid = (number > 0).then(|| Pid::from_raw(number)).flatten();
                let wrong = || Error::usage(format!("--parent {number} is not a process id"));
                parent = Some(pid.ok_or_else(wrong)?);
            }
            Long("cores") => cores = parse_cores(&parser.value()?.string()?)?,
            Long("user") => user = Some(parser.value()?.string()?.parse()?),
            Long("folder") => folder = Some(PathBuf::from(parser.value()?)),
            Long("limit-nofile") => open_files = Some(number(&mut parser, "--limit-nofile")?),
            Long("control-group-procs") => control_groups.push(PathBuf::from(parser.value()?)),
            Long("network-namespace") => network_namespace = Some(PathBuf::from(parser.value()?)),
            Long("grace-seconds") => grace = parse_grace(&mut parser)?,
            Long("scratch") => scratch.push(PathBuf::from(parser.value()?)),
            Long("status-descriptor") => {
                let descriptor: i32 = number(&mut parser, "--status-descriptor")?;
                if descriptor < 3 {
                    let what = format!("--status-descriptor {descriptor} must be above 2");
                    return Err(Error::usage(what));
                }
                status_descriptor = Some(descriptor);
            }
            Long("help") | Short('h') => return Ok(Request::Print(HELP.to_owned())),
            Long("version") | Short('V') => {
                let version = concat!("rackscope-keeper ", env!("CARGO_PKG_VERSION"));
                return Ok(Request::Print(version.to_owned()));
            }
            Value(program) => break program,
            other => return Err(other.unexpected().into()),
        }
    };
    Ok(Request::Run(Box::new(Arguments {
        parent: parent.ok_or_else(|| Error::usage("--parent PID is missing"))?,
        cores,
        user,
        folder,
        open_files,
        control_groups,
        network_namespace,
        grace,
        scratch,
        status_descriptor,
        program,
        program_arguments: parser.raw_args()?.collect(),
    })))
}

fn number<T: std::str::FromStr>(parser: &mut lexopt::Parser, option: &str) -> Result<T, Error> {
    let text = parser.value()?.string()?;
    text.parse()
        .map_err(|_| Error::usage(format!("{option} {text} is not a number")))
}

fn parse_grace(parser: &mut lexopt::Parser) -> Result<Duration, Error> {
    let seconds: f64 = number(parser, "--grace-seconds")?;
    if !(0.0..=LONGEST_GRACE_SECONDS).contains(&seconds) {
        return Err(Error::usage(format!(
            "--grace-seconds {seconds} is not from 0 to {LONGEST_GRACE_SECONDS}"
        )));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Core numbers of `0,2` or `0-3,8`.
fn parse_cores(text: &str) -> Result<Vec<usize>, Error> {
    let wrong = || Error::usage(format!("--cores {text} is not a list such as 0,2 or 0-3"));
    let core = |part: &str| {
        let core: usize = part.parse().map_err(|_| wrong())?;
        if core < rustix::thread::CpuSet::MAX_CPU {
            Ok(core)
        } else {
            Err(Error::core(core))
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
