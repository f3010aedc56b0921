//! The program as a process: how it starts, what it says, how it ends.

use crate::support::{Folder, PROGRAM, Server, resident_bytes, run};
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

#[test]
fn a_signal_ends_it_well() {
    for signal in [Signal::TERM, Signal::INT] {
        let server = Server::start(&["-t", "2"]);
        let mut client = server.connect();
        client.ask(b"set a 0 0 1\r\nx\r\n");
        let (status, said) = server.end_by(signal);
        assert_eq!((status.code(), status.signal()), (Some(0), None), "{said}");
        assert_eq!(said, "");
        assert_eq!(client.rest(), b"");
    }
}

#[test]
fn the_file_of_a_unix_socket_comes_and_goes_and_a_dead_one_is_replaced() {
    let folder = Folder::new("socket");
    let path = folder.path("cache");
    for signal in [Signal::KILL, Signal::TERM] {
        let server = Server::start(&["-s", &path]);
        assert_eq!(server.address(), format!("unix:{path}"));
        assert_eq!(server.connect().ask(b"get a\r\n"), b"END\r\n");
        server.end_by(signal);
    }
    assert!(!std::path::Path::new(&path).exists());
}

#[test]
fn an_address_in_use_is_named_with_what_to_do() {
    let server = Server::start(&[]);
    let (_, port) = server.address().rsplit_once(':').expect("a port");
    let (status, output, message) = run(&["-p", port]);
    assert_eq!((status, output.as_str()), (Some(1), ""));
    assert_eq!(message.lines().count(), 1, "{message}");
    for part in ["rackscope-cached: ", server.address(), "in use", "-p"] {
        assert!(message.contains(part), "{message}");
    }
    let folder = Folder::new("in-use");
    let path = folder.path("cache");
    let _server = Server::start(&["-s", &path]);
    let (status, _, message) = run(&["-s", &path]);
    assert_eq!(status, Some(1));
    assert!(
        message.contains(&path) && message.contains("in use"),
        "{message}"
    );
}

#[test]
fn what_cannot_be_had_is_one_line_and_a_status() {
    for (arguments, status, part) in [
        (&["-p", "x"][..], 2, "-p x"),
        (&["--wrong"], 2, "--wrong"),
        (&["-l", "no such host"], 1, "no such host"),
        (&["-l", "192.0.2.1", "-p", "0"], 1, "192.0.2.1"),
        (
            &["-s", "/no/such/folder/socket"],
            1,
            "/no/such/folder/socket",
        ),
        (&["-I", "60m", "-p", "0"], 1, "-I 62914560"),
        (&["--cores", "1000000", "-p", "0"], 1, "1000000"),
    ] {
        let (code, output, message) = run(arguments);
        assert_eq!(
            (code, output.as_str()),
            (Some(status), ""),
            "{arguments:?}: {message}"
        );
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(
            message.starts_with("rackscope-cached: ") && message.contains(part),
            "{message}"
        );
    }
}

#[test]
fn it_introduces_itself() {
    let (status, output, _) = run(&["-V"]);
    assert_eq!(
        (status, output.as_str()),
        (
            Some(0),
            concat!("rackscope-cached ", env!("CARGO_PKG_VERSION"), "\n")
        )
    );
    let (status, output, _) = run(&["--help"]);
    assert_eq!(status, Some(0));
    for option in [
        "--port",
        "--listen",
        "--unix-socket",
        "--memory-limit",
        "--threads",
        "--cores",
        "--transport",
        "--conn-limit",
        "--max-item-size",
    ] {
        assert!(output.contains(option), "{option} is missing");
    }
}

#[test]
fn workers_can_be_pinned() {
    let allowed = net::affinity::allowed_cores();
    let core = allowed.last().expect("a core").to_string();
    let server = Server::start(&["-t", "2", "--cores", &core]);
    assert_eq!(server.connect().ask(b"get a\r\n"), b"END\r\n");
    let mut pinned = 0;
    for task in std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("list its threads")
    {
        let folder = task.expect("a thread").path();
        let read = |name| std::fs::read_to_string(folder.join(name)).expect("read about a thread");
        if read("comm").starts_with("worker-") {
            let status = read("status");
            let cores = status
                .lines()
                .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            assert_eq!(cores.map(str::trim), Some(core.as_str()));
            pinned += 1;
        }
    }
    assert_eq!(pinned, 2);
}

#[test]
fn it_serves_those_it_can_when_descriptors_run_out() {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -n 32; exec \"$0\" -p 0 -v --transport \"$1\"",
        PROGRAM,
        &crate::support::transport(),
    ]);
    let server = Server::from_command(command);
    let mut first = server.connect();
    assert_eq!(first.ask(b"get a\r\n"), b"END\r\n");
    // The kernel completes these connections, the server cannot accept them all.
    let mut others: Vec<_> = (0..40).map(|_| server.connect()).collect();
    assert_eq!(first.ask(b"get a\r\n"), b"END\r\n");
    assert!(first.statistic("curr_connections") < 32);
    // As some leave, those who wait get their turn.
    for mut last in others.split_off(39) {
        last.send(b"get a\r\nmn\r\n");
        others.drain(..30);
        assert_eq!(last.receive(), b"END\r\n");
    }
    let (status, said) = server.end_by(Signal::TERM);
    assert_eq!(status.code(), Some(0));
    assert!(
        said.contains("cannot accept a connection for now"),
        "{said}"
    );
    // It said so each time it tried: now and then, not all the time.
    assert!(said.lines().count() < 100, "{said}");
}

#[test]
fn memory_is_locked_as_it_is_used() {
    const MIB: usize = 1 << 20;
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: locking memory takes root");
        return;
    }
    let server = Server::start(&["-k", "-m", "2048", "-t", "2"]);
    let (empty, used) = (resident_bytes(server.pid()), 64 * MIB);
    assert!(empty < 256 * MIB, "{} MiB", empty / MIB);
    let mut client = server.connect();
    let value = "v".repeat(MIB / 2);
    for number in 0..used / value.len() {
        client.ask(format!("set {number} 0 0 {} noreply\r\n{value}\r\n", value.len()).as_bytes());
    }
    let pages = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", server.pid()));
    let pages = pages.expect("what pages it has");
    let locked = pages.lines().find_map(|line| line.strip_prefix("Locked:"));
    let locked = locked.and_then(|text| text.trim().strip_suffix(" kB"));
    let locked: usize = locked.and_then(|kib| kib.parse().ok()).expect("a number");
    assert!(locked << 10 >= used, "{locked} KiB");
}
