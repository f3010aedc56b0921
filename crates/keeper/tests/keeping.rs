//! What the keeper promises: nothing of a tree is left, whoever dies and however.
//!
//! Every process of a test carries a token of its own in its environment, so that a test finds all of them, and only
//! them, wherever they were moved to. Waiting is polling with a deadline.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

const KEEPER: &str = env!("CARGO_BIN_EXE_rackscope-keeper");
/// Long enough for the slowest machine; a test that passes does not wait for it.
const DEADLINE: Duration = Duration::from_secs(30);

/// A tree of processes with a token; whatever a failed test leaves is killed when this is dropped.
struct Tree {
    token: String,
}

impl Tree {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            token: format!("KEEPER_TEST={}-{number}", std::process::id()),
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let (name, value) = self.token.split_once('=').unwrap();
        // A folder on PATH that cannot be searched would turn "not found" into "not allowed".
        command
            .env(name, value)
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null());
        command
    }

    /// A keeper of `script`, whose parent is this test.
    fn keep(&self, options: &[&str], script: &str) -> Child {
        self.command(KEEPER)
            .args(["--parent", &std::process::id().to_string()])
            .args(options)
            .args(["--", "sh", "-c", script])
            .stderr(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// A shell that starts a keeper of `script`, says its own pid and waits: a parent to be killed.
    fn keep_below_shell(&self, script: &str) -> Child {
        let shell = format!("{KEEPER} --parent $$ --grace-seconds 1 -- sh -c '{script}' & wait");
        self.command("sh")
            .args(["-c", &shell])
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Ids and command lines of the live processes that carry the token.
    fn members(&self) -> Vec<(i32, String)> {
        let mut members = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            // An ended process, reaped or not, has neither.
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if environment
                .split(|&byte| byte == 0)
                .any(|variable| variable == self.token.as_bytes())
            {
                members.push((pid, String::from_utf8_lossy(&command).replace('\0', " ")));
            }
        }
        members
    }

    fn find(&self, part: &str) -> Vec<i32> {
        let members = self.members().into_iter();
        members
            .filter(|(_, command)| command.starts_with(part))
            .map(|(pid, _)| pid)
            .collect()
    }

    /// Waits until `count` processes run whose command line starts with `part`.
    fn wait_for(&self, part: &str, count: usize) -> Vec<i32> {
        let start = Instant::now();
        loop {
            let found = self.find(part);
            if found.len() == count {
                return found;
            }
            assert!(
                start.elapsed() < DEADLINE,
                "no {count} '{part}' in {:?}",
                self.members()
            );
            pause();
        }
    }

    fn wait_until_empty(&self) {
        let start = Instant::now();
        while !self.members().is_empty() {
            assert!(
                start.elapsed() < DEADLINE,
                "still there: {:?}",
                self.members()
            );
            pause();
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // Again until none is found: a keeper that still lives may be starting something.
        for _ in 0..100 {
            let members = self.members();
            if members.is_empty() {
                break;
            }
            for (pid, _) in members {
                send(pid, Signal::KILL);
            }
            pause();
        }
    }
}

fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}

fn send(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

fn id(child: &Child) -> i32 {
    child.id().try_into().unwrap()
}

fn finish(child: Child) -> Output {
    child.wait_with_output().unwrap()
}

fn keep(options: &[&str], script: &str) -> Output {
    finish(Tree::new().keep(options, script))
}

/// Both keepers, the outer one first.
fn keepers(tree: &Tree, outer: i32) -> (i32, i32) {
    let both = tree.wait_for(KEEPER, 2);
    let inner = both.into_iter().find(|&pid| pid != outer).unwrap();
    (outer, inner)
}

/// A main process, a child of it, a daemon in a session of its own whose parents have all ended, and a process that
/// ignores SIGTERM: four sleeps.
const FAMILY: &str = r#"
    (setsid sh -c "(sleep 1001 &)") &
    sh -c "trap \"\" TERM; sleep 1002 & wait" &
    sleep 1003 &
    exec sleep 1004
"#;

fn wait_for_family(tree: &Tree) {
    tree.wait_for("sleep 100", 4);
}

#[test]
fn passes_on_the_exit_status() {
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -9 $$", 137),
        ("kill -15 $$", 143),
    ] {
        assert_eq!(keep(&[], script).status.code(), Some(code), "{script}");
    }
}

#[test]
fn ends_what_the_main_process_leaves_behind() {
    let tree = Tree::new();
    let script = r#"(setsid sh -c "(sleep 1001 &)"); sh -c "sleep 1002 &"; exit 3"#;
    let child = tree.keep(&["--grace-seconds", "1"], script);
    assert_eq!(finish(child).status.code(), Some(3));
    // Without polling: when the keeper has ended, so has everything else.
    assert_eq!(tree.members(), []);
}

#[test]
fn ends_the_family_on_sigterm() {
    let tree = Tree::new();
    let child = tree.keep(&["--grace-seconds", "0.3"], FAMILY);
    wait_for_family(&tree);
    send(id(&child), Signal::TERM);
    assert_eq!(finish(child).status.code(), Some(143));
    assert_eq!(tree.members(), []);
}

#[test]
fn lets_a_program_end_by_itself_within_the_grace_period() {
    let tree = Tree::new();
    let script = r#"trap "echo saved; exit 5" TERM; sleep 1005 & wait"#;
    let child = tree.keep(&["--grace-seconds", "600"], script);
    tree.wait_for("sleep 1005", 1);
    send(id(&child), Signal::TERM);
    let output = finish(child);
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "saved\n");
}

#[test]
fn ends_a_stopped_program_politely() {
    let tree = Tree::new();
    let script = r#"trap "exit 6" TERM; kill -STOP $$; while :; do :; done"#;
    let child = tree.keep(&["--grace-seconds", "600"], script);
    let program = tree.wait_for("sh", 1)[0];
    let start = Instant::now();
    while !fs::read_to_string(format!("/proc/{program}/stat"))
        .unwrap()
        .contains(") T ")
    {
        assert!(start.elapsed() < DEADLINE);
        pause();
    }
    send(id(&child), Signal::TERM);
    assert_eq!(finish(child).status.code(), Some(6));
}

#[test]
fn kills_what_ignores_sigterm() {
    let tree = Tree::new();
    let child = tree.keep(
        &["--grace-seconds", "0.2"],
        r#"trap "" TERM; while :; do sleep 0.01; done"#,
    );
    tree.wait_for("sh", 1);
    // The trap is set once a sleep has been seen.
    tree.wait_for("sleep 0.01", 1);
    send(id(&child), Signal::TERM);
    assert_eq!(finish(child).status.code(), Some(137));
    assert_eq!(tree.members(), []);
}

#[test]
fn survives_the_end_of_its_parent_and_ends_the_family() {
    let tree = Tree::new();
    let mut shell = tree.keep_below_shell(FAMILY);
    wait_for_family(&tree);
    shell.kill().unwrap();
    shell.wait().unwrap();
    tree.wait_until_empty();
}

#[test]
fn survives_a_kill_of_its_parents_process_group() {
    use std::os::unix::process::CommandExt;
    let tree = Tree::new();
    let script = format!("{KEEPER} --parent $$ --grace-seconds 1 -- sleep 1006 & wait");
    let mut shell = tree
        .command("sh")
        .args(["-c", &script])
        .process_group(0)
        .spawn()
        .unwrap();
    tree.wait_for("sleep 1006", 1);
    kill_process_group(Pid::from_raw(id(&shell)).unwrap(), Signal::KILL).unwrap();
    assert_eq!(shell.wait().unwrap().signal(), Some(9));
    tree.wait_until_empty();
}

#[test]
fn the_inner_keeper_ends_the_family_when_the_outer_one_is_killed() {
    let tree = Tree::new();
    let mut child = tree.keep(&["--grace-seconds", "0.3"], FAMILY);
    wait_for_family(&tree);
    child.kill().unwrap();
    child.wait().unwrap();
    tree.wait_until_empty();
}

#[test]
fn the_outer_keeper_ends_the_family_when_the_inner_one_is_killed() {
    let tree = Tree::new();
    let child = tree.keep(&["--grace-seconds", "0"], FAMILY);
    wait_for_family(&tree);
    let (_, inner) = keepers(&tree, id(&child));
    send(inner, Signal::KILL);
    assert_eq!(finish(child).status.code(), Some(137));
    assert_eq!(tree.members(), []);
}

#[test]
fn removes_the_scratch_folder_however_it_ends() {
    use std::os::unix::fs::symlink;
    for kill_outer in [false, true] {
        let tree = Tree::new();
        let name = format!("keeper-scratch-{}-{kill_outer}", std::process::id());
        let (folder, precious) = (
            std::env::temp_dir().join(&name),
            std::env::temp_dir().join(format!("{name}-precious")),
        );
        fs::create_dir_all(folder.join("below")).unwrap();
        fs::write(&precious, "kept").unwrap();
        symlink(&precious, folder.join("below/link")).unwrap();
        let scratch = folder.to_str().unwrap();
        let mut child = tree.keep(&["--scratch", scratch], "sleep 1007 & wait");
        tree.wait_for("sleep 1007", 1);
        if kill_outer {
            child.kill().unwrap();
            child.wait().unwrap();
        } else {
            send(id(&child), Signal::TERM);
            finish(child);
        }
        tree.wait_until_empty();
        assert!(!folder.exists());
        assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
        fs::remove_file(&precious).unwrap();
    }
}

#[test]
fn starts_nothing_when_the_parent_is_not_its_parent() {
    let output = Tree::new()
        .command(KEEPER)
        .args(["--parent", "1", "--", "echo", "started"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(output.stdout, b"");
    assert!(String::from_utf8_lossy(&output.stderr).contains("process 1 is not the parent"));
}

#[test]
fn says_in_one_line_why_a_program_cannot_start() {
    let parent = std::process::id().to_string();
    for (options, program, code, part) in [
        (
            vec![],
            "/nowhere/server",
            127,
            "cannot start /nowhere/server: No such file",
        ),
        (
            vec![],
            "no-such-program",
            127,
            "cannot start no-such-program: No such file",
        ),
        (
            vec![],
            "/etc/passwd",
            126,
            "cannot start /etc/passwd: Permission denied",
        ),
        (
            vec!["--folder", "/nowhere"],
            "true",
            125,
            "cannot enter the folder /nowhere: No such file",
        ),
        (
            vec!["--cores", "1023"],
            "true",
            125,
            "core 1023 cannot be used here",
        ),
        (
            vec!["--user", "no such user"],
            "true",
            125,
            "there is no user 'no such user'",
        ),
        (
            vec!["--limit-nofile", "9999999999"],
            "true",
            125,
            "cannot raise the limit of open files to 9999999999",
        ),
        (
            vec!["--status-descriptor", "999"],
            "true",
            125,
            "cannot use status descriptor 999: Bad file descriptor",
        ),
        (
            vec!["--frobnicate"],
            "true",
            125,
            "invalid option '--frobnicate'",
        ),
    ] {
        let output = Tree::new()
            .command(KEEPER)
            .args(["--parent", &parent])
            .args(options)
            .args(["--", program])
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(message.contains(part), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn runs_the_program_in_the_folder_on_the_cores_with_the_limit() {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let core = (0..rustix::thread::CpuSet::MAX_CPU)
        .rfind(|&core| allowed.is_set(core))
        .unwrap()
        .to_string();
    let script = "pwd; ulimit -n; grep -E '^(NoNewPrivs|Cpus_allowed_list|SigBlk|SigIgn):' /proc/self/status";
    let output = keep(
        &["--cores", &core, "--folder", "/", "--limit-nofile", "123"],
        script,
    );
    let text = String::from_utf8(output.stdout)
        .unwrap()
        .replace(['\t', ' '], "");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["/", "123"]);
    assert!(lines.contains(&"NoNewPrivs:1"), "{text}");
    assert!(
        lines.contains(&format!("Cpus_allowed_list:{core}").as_str()),
        "{text}"
    );
    assert!(lines.contains(&"SigBlk:0000000000000000"), "{text}");
}

#[test]
fn reports_the_program_over_the_status_descriptor() {
    use std::os::fd::AsRawFd;
    let parent = std::process::id().to_string();
    for (script, expected) in [
        ("echo $$", None),
        ("", Some("failed cannot start /nowhere: ")),
    ] {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let number = writer.as_raw_fd();
        // A shell makes the end of the pipe one that is inherited, under a number of our choice.
        let program = if script.is_empty() { "/nowhere" } else { "sh" };
        let tree = Tree::new();
        let mut command = tree.command("sh");
        command.args([
            "-c",
            r#"exec "$@" 7>"/proc/$0/fd/$FD""#,
            &parent,
            KEEPER,
            "--parent",
            &parent,
            "--status-descriptor",
            "7",
            "--",
            program,
            "-c",
            script,
        ]);
        let output = command.env("FD", number.to_string()).output().unwrap();
        drop(writer);
        let mut report = String::new();
        reader.read_to_string(&mut report).unwrap();
        match expected {
            Some(expected) => assert!(report.starts_with(expected), "{report}"),
            None => {
                let shell = String::from_utf8(output.stdout).unwrap();
                assert_eq!(report, format!("started {shell}"));
            }
        }
    }
}

/// A folder that only root may enter, with a program in it.
struct Vault(PathBuf);

impl Vault {
    fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("keeper-vault-{}", std::process::id()));
        fs::create_dir_all(folder.join("inner")).unwrap();
        fs::copy("/bin/sh", folder.join("inner/shell")).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        Self(folder)
    }
}

impl Drop for Vault {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn drops_privileges_and_still_reaches_a_program_that_only_root_can_find() {
    if !rustix::process::geteuid().is_root() {
        let output = keep(&["--user", "0:0"], "true");
        assert_eq!(output.status.code(), Some(125));
        assert!(String::from_utf8_lossy(&output.stderr).contains("cannot become user 0:0"));
        return;
    }
    let vault = Vault::new();
    let tree = Tree::new();
    let inner = vault.0.join("inner");
    let script = r#"id -u; id -g; id -G; cat /proc/$$/comm; echo "$LD_LIBRARY_PATH"; ls "$LD_LIBRARY_PATH"; kill -9 $PPID"#;
    let output = tree
        .command(KEEPER)
        .args([
            "--parent",
            &std::process::id().to_string(),
            "--user",
            "65534:65534",
            "--folder",
        ])
        .arg(&vault.0)
        .arg("--")
        .arg(inner.join("shell"))
        .args(["-c", script])
        .env("LD_LIBRARY_PATH", &inner)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..4],
        ["65534", "65534", "65534", "shell"],
        "{text} {:?}",
        output.stderr
    );
    assert!(lines[4].starts_with("/proc/self/fd/"), "{text}");
    assert_eq!(lines[5], "shell");
    // Its last command was refused: the program cannot kill its keeper.
    assert_eq!(output.status.code(), Some(1));
}

/// What lies beside and above the libraries' folder stays out of the program's reach.
#[test]
fn lends_the_libraries_and_nothing_else_of_where_they_lie() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can lend what another user cannot reach");
        return;
    }
    let vault = Vault::new();
    fs::create_dir(vault.0.join("beside")).unwrap();
    fs::write(vault.0.join("beside/secret"), "secret").unwrap();
    // Open to all, for those who come so far.
    let libraries = vault.0.join("shared/libraries");
    fs::create_dir_all(&libraries).unwrap();
    fs::write(vault.0.join("shared/secret"), "secret").unwrap();
    fs::write(libraries.join("library"), "library").unwrap();
    let script = r#"cd "$LD_LIBRARY_PATH" && cat library; for way in ../secret ../../beside/secret; do
        cat "$LD_LIBRARY_PATH/$way"; cat "$way"; done; touch ../made ./made"#;
    let output = Tree::new()
        .command(KEEPER)
        .args(["--parent", &std::process::id().to_string()])
        .args(["--user", "65534:65534", "--", "sh", "-c", script])
        .env("LD_LIBRARY_PATH", &libraries)
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "library",
        "{output:?}"
    );
}
