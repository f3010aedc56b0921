//! From the keeper's child to the program: everything between fork and exec.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Access, AtFlags, Mode, OFlags, access, accessat, open, statat};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getpid, getppid, getrlimit, set_parent_process_death_signal,
    setrlimit,
};
use rustix::thread::{
    CpuSet, LinkNameSpaceType, move_into_link_name_space, sched_getaffinity, sched_setaffinity,
    set_no_new_privs,
};

use crate::arguments::Arguments;
use crate::error::Error;
use crate::signals;
use crate::user::User;

/// Where the dynamic loader looks first (`ld.so(8)`).
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// Tells rackscope, over an inherited descriptor, whether the program runs and as which process.
///
/// Both keepers hold it for as long as they live, and the program never does: its end of file tells that nothing is
/// left of the tree.
pub(crate) struct Report(Option<File>);

impl Report {
    /// Takes over the inherited descriptor, and keeps it from the program. Raises an error when it is not open.
    pub(crate) fn adopt(descriptor: Option<RawFd>) -> Result<Self, Error> {
        let Some(raw) = descriptor else {
            return Ok(Self(None));
        };
        // SAFETY: only borrowed for one call, which answers EBADF when the number is not open.
        let borrowed = unsafe { BorrowedFd::borrow_raw(raw) };
        fcntl_setfd(borrowed, FdFlags::CLOEXEC)
            .map_err(Error::cannot(format!("use status descriptor {raw}")))?;
        // SAFETY: it is open, and was given to this process for this alone: nothing else here refers to it.
        Ok(Self(Some(File::from(unsafe { OwnedFd::from_raw_fd(raw) }))))
    }

    /// `started PID`.
    pub(crate) fn started(&self, program: Pid) {
        self.say(&format!("started {}\n", program.as_raw_nonzero()));
    }

    /// `failed REASON`.
    pub(crate) fn failed(&self, error: &Error) {
        self.say(&format!("failed {error}\n"));
    }

    fn say(&self, line: &str) {
        if let Some(mut file) = self.0.as_ref() {
            // Whoever asked for the line may be gone by now; the keeper's work does not depend on it.
            let _ = file.write_all(line.as_bytes());
        }
    }
}

/// Forks; the child lives `life` and exits with the status that it returns.
pub(crate) fn fork(what: &str, life: impl FnOnce() -> u8) -> Result<Pid, Error> {
    // SAFETY: the keeper has one thread, so the child finds every lock free and may run any code.
    let result = unsafe { libc::fork() };
    match Pid::from_raw(result.max(0)) {
        Some(child) => Ok(child),
        None if result == 0 => std::process::exit(life().into()),
        None => Err(Error::cannot(format!("fork {what}"))(
            io::Error::last_os_error(),
        )),
    }
}

/// Starts the program; returns once it is executed. Raises what kept it from that.
pub(crate) fn start(arguments: &Arguments) -> Result<Pid, Error> {
    // The write end closes by itself when the program is executed, so an empty message means that it was.
    let (read_end, write_end) =
        pipe_with(PipeFlags::CLOEXEC).map_err(Error::cannot("open a pipe"))?;
    let keeper = getpid();
    let child = fork("the program", move || {
        let Err(error) = become_program(arguments, keeper);
        let mut message = vec![error.exit_status];
        message.extend_from_slice(error.to_string().as_bytes());
        // If the keeper is gone there is no reader.
        let _ = File::from(write_end).write_all(&message);
        error.exit_status
    })?;
    // The child's copy of the write end is now the only one: ours went with the closure.
    let mut message = Vec::new();
    File::from(read_end)
        .read_to_end(&mut message)
        .map_err(Error::cannot("hear from the program"))?;
    match message.split_first() {
        None => Ok(child),
        Some((&exit_status, text)) => Err(Error {
            message: String::from_utf8_lossy(text).into_owned(),
            exit_status,
        }),
    }
}

/// Everything the child does before it is the program. The order matters, and is explained where it does.
fn become_program(arguments: &Arguments, keeper: Pid) -> Result<Infallible, Error> {
    let user = arguments.user.as_ref().map(User::find).transpose()?;
    // First of all: what the program touches from here on is charged there. And before it is pinned, since joining a
    // cpuset sets the affinity anew.
    for folder in &arguments.control_groups {
        join_control_group(folder)?;
    }
    if let Some(file) = &arguments.network_namespace {
        enter_network_namespace(file)?;
    }
    // A session of its own: a program that signals its process group does not reach the keeper.
    rustix::process::setsid().map_err(Error::cannot("start a session"))?;
    if let Some(files) = arguments.open_files {
        limit_open_files(files)?;
    }
    pin(&arguments.cores)?;
    if let Some(folder) = &arguments.folder {
        let what = format!("enter the folder {}", folder.display());
        rustix::process::chdir(folder).map_err(Error::cannot(what))?;
    }
    // What root may open and the user may not even reach, such as a cache in root's home, is opened before.
    let program = Passage::open(&arguments.program);
    let libraries = LibraryPath::open(std::env::var_os(LIBRARY_PATH).unwrap_or_default());
    if let Some(user) = &user {
        user.become_forever()?;
    }
    // After the change of user, which clears it.
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(Error::cannot("set the death signal"))?;
    // A keeper that ended before that line sends nothing.
    if getppid() != Some(keeper) {
        return Err(Error::parent_gone(keeper));
    }
    // No set-user-id program in the tree: one could not be signalled by a keeper that is not root.
    set_no_new_privs(true).map_err(Error::cannot("set no_new_privs"))?;
    signals::unblock_all()?;

    let mut command = Command::new(program.reach());
    command
        .arg0(&arguments.program)
        .args(&arguments.program_arguments);
    if let Some(value) = libraries.reach() {
        command.env(LIBRARY_PATH, value);
    }
    let source = command.exec();
    let program = arguments.program.display();
    Err(Error {
        exit_status: match source.kind() {
            io::ErrorKind::NotFound => 127,
            _ => 126,
        },
        message: format!("cannot start {program}: {source}"),
    })
}

/// Moves this process into the control group with this folder (`cgroups(7)`, the same for both versions).
fn join_control_group(folder: &Path) -> Result<(), Error> {
    // Opened without O_CREAT: a path that is no control group must not get a file of that name. 0 is the writer itself.
    File::options()
        .write(true)
        .open(folder.join("cgroup.procs"))
        .and_then(|mut procs| procs.write_all(b"0"))
        .map_err(Error::cannot(format!(
            "start in the control group {}",
            folder.display()
        )))
}

/// Enters the network namespace that this file stands for (`setns(2)`); what is executed stays in it.
fn enter_network_namespace(file: &Path) -> Result<(), Error> {
    // Opened non-blocking: a pipe in its place would be waited on for ever.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    open(file, flags, Mode::empty())
        .and_then(|descriptor| {
            move_into_link_name_space(descriptor.as_fd(), Some(LinkNameSpaceType::Network))
        })
        .map_err(|source| {
            Error::new(format!(
                "cannot enter the network namespace {}: {} (it must be one, such as /run/netns/NAME, and this takes root \
                 with CAP_SYS_ADMIN)",
                file.display(),
                io::Error::from(source)
            ))
        })
}

/// Sets the soft limit of open files to `wanted`, and raises the hard limit where that is allowed and needed.
fn limit_open_files(wanted: u64) -> Result<(), Error> {
    let hard = getrlimit(Resource::Nofile).maximum;
    let maximum = hard.map(|hard| hard.max(wanted));
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(wanted),
            maximum,
        },
    )
    .map_err(|_| {
        let hard = hard.unwrap_or(u64::MAX);
        Error::new(format!(
            "cannot raise the limit of open files to {wanted}: the hard limit here is {hard}"
        ))
    })
}

/// Confines this process to `cores`; all of them or an error, while the kernel is content with any of them.
fn pin(cores: &[usize]) -> Result<(), Error> {
    if cores.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &core in cores {
        set.set(core);
    }
    let refused = || Error::core(cores[0]);
    sched_setaffinity(None, &set).map_err(|_| refused())?;
    let given = sched_getaffinity(None).map_err(|_| refused())?;
    match cores.iter().find(|&&core| !given.is_set(core)) {
        Some(&core) => Err(Error::core(core)),
        None => Ok(()),
    }
}

/// A file that may lie below a folder which the user cannot enter, with that folder held open.
///
/// `/proc/self/fd/N/NAME` leads to the file without passing through the folders above (`proc_pid_fd(5)`).
struct Passage {
    path: PathBuf,
    folder: Option<OwnedFd>,
}

impl Passage {
    /// Prepares for `path`. A bare name is left for the search in PATH.
    fn open(path: &OsStr) -> Self {
        let path = PathBuf::from(path);
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let folder = parent.and_then(|parent| open_folder(parent).ok());
        Self { path, folder }
    }

    /// The way to the file that works for whom this process is by now.
    fn reach(&self) -> PathBuf {
        match (&self.folder, self.path.file_name()) {
            (Some(folder), Some(name)) if access(&self.path, Access::EXEC_OK).is_err() => {
                let way = through(folder).join(name);
                // Otherwise the plain path gives the plain reason.
                if access(&way, Access::EXEC_OK).is_ok() {
                    way
                } else {
                    self.path.clone()
                }
            }
            _ => self.path.clone(),
        }
    }
}

/// The folders of `LD_LIBRARY_PATH`, held open for the same reason.
///
/// The program inherits those that it cannot reach otherwise, and what it holds open it can walk from. So each is a mount
/// of its own, above which there is nothing; without the right to make one (`CAP_SYS_ADMIN`), only a folder is lent
/// whose parent keeps the user out.
struct LibraryPath(Vec<(OsString, Option<OwnedFd>)>);

impl LibraryPath {
    fn open(value: OsString) -> Self {
        let folders = value
            .as_bytes()
            .split(|&byte| byte == b':')
            .filter(|folder| !folder.is_empty());
        Self(
            folders
                .map(OsStr::from_bytes)
                .map(|folder| (folder.to_owned(), open_folder(Path::new(folder)).ok()))
                .map(|(name, folder)| {
                    (
                        name,
                        folder.map(|folder| detached(&folder).unwrap_or(folder)),
                    )
                })
                .collect(),
        )
    }

    /// The value to execute the program with; `None` when there is nothing to change.
    fn reach(&self) -> Option<OsString> {
        let mut changed = false;
        let mut folders = Vec::new();
        for (folder, descriptor) in &self.0 {
            match descriptor {
                Some(descriptor)
                    if access(folder, Access::EXEC_OK).is_err() && is_end(descriptor) =>
                {
                    // The loader opens it after exec, so it must stay open across it.
                    changed |= fcntl_setfd(descriptor, FdFlags::empty()).is_ok();
                    folders.push(through(descriptor).into_os_string());
                }
                _ => folders.push(folder.clone()),
            }
        }
        changed.then(|| folders.join(OsStr::new(":")))
    }
}

fn open_folder(path: &Path) -> rustix::io::Result<OwnedFd> {
    open(
        path,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// The folder as a mount that is attached nowhere (`open_tree(2)`); `None` where that is not allowed.
fn detached(folder: &OwnedFd) -> Option<OwnedFd> {
    let flags =
        libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_EMPTY_PATH as libc::c_uint;
    let (folder, path) = (folder.as_raw_fd(), c"".as_ptr());
    // SAFETY: the path ends with a zero, and the rest are numbers.
    let opened = unsafe { libc::syscall(libc::SYS_open_tree, folder, path, flags) };
    // SAFETY: what was just opened has no other owner.
    (opened >= 0).then(|| unsafe { OwnedFd::from_raw_fd(opened as RawFd) })
}

/// Whether who this process is by now gets no further up from a folder than to itself: it is the root of its mount, or
/// its parent may not be entered.
fn is_end(folder: &OwnedFd) -> bool {
    let place = |path: &str| {
        let found = statat(folder, path, AtFlags::empty()).ok()?;
        Some((found.st_dev, found.st_ino))
    };
    place(".").is_some_and(|own| place("..") == Some(own))
        || accessat(folder, "..", Access::EXEC_OK, AtFlags::empty()).is_err()
}

fn through(folder: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}
