//! `rackscope-keeper` runs one system and sees to it that nothing of it is left when rackscope ends, however it ends.
//!
//! Two processes do that, each the guardian of the other, so that `kill -9` of any one process leaves nothing behind:
//!
//! ```text
//! rackscope ── outer keeper ── inner keeper ── PROGRAM ── its children, daemons, ...
//! ```
//!
//! Both keepers are child subreapers (`prctl(2)`, `PR_SET_CHILD_SUBREAPER`): whatever in the tree loses its parent
//! becomes their child instead of init's. So "I have no child left" (`ECHILD`) means that the whole tree is gone.
//! Both stand in sessions of their own, so a signal to rackscope's process group does not reach them.
//!
//! - rackscope dies: the outer keeper sees it (a pidfd, see [`parent`]) and ends the tree.
//! - the outer keeper dies: the inner one sees it in the same way and ends the tree.
//! - the inner keeper dies: the kernel kills PROGRAM (`PR_SET_PDEATHSIG`), everything else becomes the outer
//!   keeper's child, and the outer keeper ends it.

mod arguments;
mod error;
mod keep;
mod launch;
mod parent;
mod signals;
mod tree;
mod user;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use arguments::{Arguments, Request};
use error::Error;
use keep::{Keeper, Reach};
use launch::Report;
use parent::Parent;
use rustix::process::Pid;
use signals::SignalQueue;

fn main() -> ExitCode {
    let status = match arguments::parse(std::env::args_os().skip(1)) {
        Ok(Request::Print(text)) => {
            // A reader that went away is no failure of ours.
            let _ = writeln!(std::io::stdout(), "{text}");
            0
        }
        Ok(Request::Run(arguments)) => run(&arguments).unwrap_or_else(|error| complain(&error)),
        Err(error) => complain(&error),
    };
    ExitCode::from(status)
}

fn complain(error: &Error) -> u8 {
    eprintln!("rackscope-keeper: {error}");
    error.exit_status
}

/// The outer keeper's life.
fn run(arguments: &Arguments) -> Result<u8, Error> {
    let report = Report::adopt(arguments.status_descriptor)?;
    let status = run_outer(arguments, &report);
    remove(&arguments.scratch);
    status
}

fn run_outer(arguments: &Arguments, report: &Report) -> Result<u8, Error> {
    keep::settle()?;
    let parent = Parent::watch(arguments.parent)?;
    let signals = SignalQueue::open()?;
    let outer = rustix::process::getpid();
    let inner = launch::fork("the inner keeper", || {
        let status = run_inner(arguments, outer, report).unwrap_or_else(|error| complain(&error));
        remove(&arguments.scratch);
        status
    })?;
    Keeper::new(parent, signals, inner, Reach::Keeper, arguments.grace).keep()
}

/// The inner keeper's life: `outer` is its parent, the program its child.
fn run_inner(arguments: &Arguments, outer: Pid, report: &Report) -> Result<u8, Error> {
    keep::settle()?;
    let parent = Parent::watch(outer)?;
    let signals = SignalQueue::open()?;
    let program = launch::start(arguments).inspect_err(|error| report.failed(error))?;
    report.started(program);
    Keeper::new(parent, signals, program, Reach::Tree, arguments.grace).keep()
}

/// Removes the folders that were lent to the program. Each keeper does so, for the other may have been killed.
fn remove(folders: &[PathBuf]) {
    for folder in folders {
        match std::fs::remove_dir_all(folder) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => eprintln!(
                "rackscope-keeper: cannot remove {}: {error}",
                folder.display()
            ),
        }
    }
}
