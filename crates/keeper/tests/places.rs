//! Where the keeper starts a program: in control groups and a network namespace, itself staying outside.
//!
//! What takes a right that this machine does not give is left out, with a line that says so.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const KEEPER: &str = env!("CARGO_BIN_EXE_rackscope-keeper");
/// Long enough for the slowest machine; a test that passes does not wait for it.
const DEADLINE: Duration = Duration::from_secs(30);

fn keep(options: &[&str], script: &str) -> Output {
    Command::new(KEEPER)
        .args(["--parent", &std::process::id().to_string()])
        .args(options)
        .args(["--", "sh", "-c", script])
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// A control group of this test's, removed when dropped; `None` where none can be made.
struct Group(PathBuf);

impl Group {
    fn make(mount: &str) -> Option<Self> {
        let folder = Path::new(mount).join(format!("keeper-test-{}", std::process::id()));
        match fs::create_dir(&folder) {
            Ok(()) if folder.join("cgroup.procs").exists() => Some(Self(folder)),
            Ok(()) => {
                fs::remove_dir(&folder).unwrap();
                None
            }
            Err(_) => None,
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let start = Instant::now();
        while fs::remove_dir(&self.0).is_err() && start.elapsed() < DEADLINE {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn starts_the_program_in_every_control_group_and_stays_outside() {
    let mounts = [
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup/cpu",
        "/sys/fs/cgroup/memory",
    ];
    let groups: Vec<Group> = mounts
        .iter()
        .filter_map(|mount| Group::make(mount))
        .collect();
    if groups.is_empty() {
        eprintln!("left out: no control group can be made here");
        return;
    }
    let mut options = vec!["--user", "65534:65534"];
    if !rustix::process::geteuid().is_root() {
        options.clear();
    }
    for group in &groups {
        options.extend(["--control-group-procs", group.0.to_str().unwrap()]);
    }
    // The program's own line, and its keeper's.
    let output = keep(
        &options,
        "cat /proc/self/cgroup; echo; cat /proc/$PPID/cgroup",
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let (program, keeper) = text
        .split_once("\n\n")
        .unwrap_or_else(|| panic!("{text} {}", String::from_utf8_lossy(&output.stderr)));
    let name = groups[0].0.file_name().unwrap().to_str().unwrap();
    assert_eq!(program.matches(name).count(), groups.len(), "{program}");
    assert!(!keeper.contains(name), "{keeper}");
}

#[test]
fn says_in_one_line_what_is_no_control_group_and_creates_nothing() {
    let folder = std::env::temp_dir().join(format!("keeper-no-group-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let output = keep(
        &["--control-group-procs", folder.to_str().unwrap()],
        "echo ran",
    );
    let left: Vec<_> = fs::read_dir(&folder).unwrap().collect();
    fs::remove_dir_all(&folder).unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(output.stdout, b"");
    assert!(
        message.contains("cannot start in the control group"),
        "{message}"
    );
    assert!(message.contains("No such file"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(left.is_empty());
}

#[test]
fn says_in_one_line_what_is_no_network_namespace() {
    for (path, part) in [
        ("/nowhere/ns", "No such file"),
        ("/etc/passwd", "Invalid argument"),
    ] {
        let output = keep(&["--network-namespace", path], "echo ran");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125));
        assert_eq!(output.stdout, b"");
        assert!(
            message.contains(&format!("network namespace {path}: {part}")),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

/// A process in a network namespace of its own, ended when dropped; `None` where none can be made.
struct Namespace(Child);

impl Namespace {
    fn make() -> Option<Self> {
        let child = Command::new("unshare")
            .args(["--net", "sleep", "1000"])
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut made = Self(child);
        let (start, own) = (Instant::now(), inode("/proc/self/ns/net"));
        while start.elapsed() < DEADLINE {
            if made.0.try_wait().unwrap().is_some() {
                return None;
            }
            if inode(&made.path()) != own {
                return Some(made);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.0.id())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn inode(path: &str) -> Option<u64> {
    fs::metadata(path).map(|metadata| metadata.ino()).ok()
}

#[test]
fn starts_the_program_in_the_network_namespace_as_the_user() {
    let Some(namespace) = Namespace::make() else {
        eprintln!("left out: no network namespace can be made here");
        return;
    };
    let path = namespace.path();
    let expected = fs::read_link(&path).unwrap();
    let output = keep(
        &["--network-namespace", &path, "--user", "65534:65534"],
        "readlink /proc/self/ns/net; id -u",
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, format!("{}\n65534\n", expected.display()));
}
