//! What can go wrong in the keeper; each is one clear line.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Exit status when the keeper itself could not do its work, as in `env(1)` and `timeout(1)`.
pub(crate) const KEEPER_FAILED: u8 = 125;

/// Why the keeper, or the program it was to run, could not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The command line is wrong.
    #[error("{0}. Try rackscope-keeper --help")]
    Usage(String),
    /// The parent had already ended, or is not the keeper's parent.
    #[error("process {0} is not the parent of this keeper, or has ended: nothing was started")]
    ParentGone(i32),
    /// A system call that should work everywhere did not.
    #[error("cannot {doing}: {source}")]
    Setup {
        /// What was being done, such as "fork".
        doing: String,
        /// What the kernel answered.
        source: io::Error,
    },
    /// A core that this process may not use.
    #[error(
        "core {0} cannot be used here: it does not exist, is offline, or is outside this process's cpuset"
    )]
    Core(usize),
    /// No such user.
    #[error("there is no user '{0}' in /etc/passwd (an id is written UID:GID)")]
    UnknownUser(String),
    /// Becoming the user was refused.
    #[error("cannot become user {user}: {source} (this takes root with CAP_SETUID and CAP_SETGID)")]
    BecomeUser {
        /// The user as asked for.
        user: String,
        /// What the kernel answered.
        source: io::Error,
    },
    /// More open files than the hard limit allows.
    #[error("cannot raise the limit of open files to {wanted}: the hard limit here is {hard}")]
    OpenFiles {
        /// Descriptors asked for.
        wanted: u64,
        /// The hard limit.
        hard: u64,
    },
    /// The control group does not take the program in.
    #[error("cannot start in the control group {path}: {source}", path = path.display())]
    ControlGroup {
        /// The group's folder.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The network namespace cannot be entered.
    #[error(
        "cannot enter the network namespace {path}: {source} (it must be one, such as /run/netns/NAME, and this takes root with CAP_SYS_ADMIN)",
        path = path.display()
    )]
    NetworkNamespace {
        /// The namespace's file.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The folder cannot be entered.
    #[error("cannot enter the folder {path}: {source}", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The program could not be executed.
    #[error("cannot start {program}: {source}", program = program.display())]
    Program {
        /// The program as asked for.
        program: OsString,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The child told why it could not become the program.
    #[error("{message}")]
    Child {
        /// The child's own sentence.
        message: String,
        /// The exit status that goes with it.
        exit_status: u8,
    },
}

impl Error {
    /// 127: the program was not found; 126: found but not executable; 125: anything else, as in `env(1)`.
    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            Self::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Program { .. } => 126,
            Self::Child { exit_status, .. } => *exit_status,
            _ => KEEPER_FAILED,
        }
    }

    /// A failed set-up step.
    pub(crate) fn setup(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Setup {
            doing: doing.into(),
            source: source.into(),
        }
    }
}
