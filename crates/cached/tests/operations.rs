//! What those who run a server rely on: passwords, limits, files, users, metrics.

use crate::support::{Client, Folder, PROGRAM, Server, run};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

#[test]
fn nothing_is_served_before_a_password() {
    let folder = Folder::new("accounts");
    let path = folder.path("accounts");
    std::fs::write(&path, "ann:secret\n").expect("write a file");
    let server = Server::start(&["-Y", &path]);
    let mut client = server.connect();
    for (question, answer) in [
        ("get a\r\n", "CLIENT_ERROR unauthenticated\r\n"),
        // Once for a line, however many answers it might have.
        ("get a b c\r\n", "CLIENT_ERROR unauthenticated\r\n"),
        (
            "lru_crawler metadump all\r\n",
            "CLIENT_ERROR unauthenticated\r\n",
        ),
        (
            "add x 0 0 10\r\nann secret\r\n",
            "CLIENT_ERROR unauthenticated\r\n",
        ),
        (
            "set x 0 0 9\r\nann wrong\r\n",
            "CLIENT_ERROR authentication failure\r\n",
        ),
        ("set x 0 0 5000\r\n", "CLIENT_ERROR auth token too long\r\n"),
    ] {
        client.send(question.as_bytes());
        let seen = client.until(b"\r\n");
        assert_eq!(String::from_utf8_lossy(&seen), answer, "{question}");
    }
    client.send(&[b'v'; 5002]);
    // What follows the password in the same packet is served already.
    client.send(b"set x 0 0 10\r\nann secret\r\nset a 0 0 1\r\n1\r\nget a x\r\n");
    assert_eq!(
        client.until(b"END\r\n"),
        b"STORED\r\nSTORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n"
    );
    // And none of it twice.
    assert_eq!(client.ask(b"get x\r\n"), b"END\r\n");
    assert_eq!(
        (
            client.statistic("auth_cmds"),
            client.statistic("auth_errors")
        ),
        (2, 1)
    );
    let mut quitter = server.connect();
    quitter.send(b"quit\r\n");
    assert_eq!(quitter.rest(), b"");
    let (status, _, message) = run(&["-p", "0", "-Y", "/no/such/file"]);
    assert_eq!(status, Some(1));
    assert!(
        message.contains("/no/such/file") && message.contains("-Y"),
        "{message}"
    );
}

#[test]
fn who_asks_for_nothing_is_let_go() {
    let server = Server::start(&["-o", "idle_timeout=1"]);
    let mut idle = server.connect();
    assert_eq!(idle.ask(b"get a\r\n"), b"END\r\n");
    assert_eq!(idle.rest(), b"");
    assert_eq!(server.connect().statistic("idle_kicks"), 1);
}

#[test]
fn clients_end_the_server_or_flush_it_only_where_that_is_allowed() {
    let server = Server::start(&["-F"]);
    let mut client = server.connect();
    assert_eq!(client.ask(b"set a 0 0 1\r\n1\r\n"), b"STORED\r\n");
    assert_eq!(
        client.ask(b"flush_all\r\n"),
        b"CLIENT_ERROR flush_all not allowed\r\n"
    );
    assert_eq!(client.ask(b"flush_all noreply\r\n"), b"");
    assert_eq!(client.ask(b"get a\r\n"), b"VALUE a 0 1\r\n1\r\nEND\r\n");
    assert_eq!(
        client.ask(b"shutdown\r\n"),
        b"ERROR: shutdown not enabled\r\n"
    );
    assert_eq!(
        client.ask(b"shutdown slowly\r\n"),
        b"ERROR: shutdown not enabled\r\n"
    );
    let server = Server::start(&["-A"]);
    assert_eq!(
        server.connect().ask(b"shutdown slowly\r\n"),
        b"CLIENT_ERROR invalid shutdown mode\r\n"
    );
    for how in ["shutdown\r\n", "shutdown graceful\r\n"] {
        let server = Server::start(&["-A"]);
        let mut client = server.connect();
        client.send(how.as_bytes());
        assert_eq!(client.rest(), b"");
        assert_eq!(server.wait().code(), Some(0));
    }
}

#[test]
fn a_protocol_that_is_not_wanted_is_not_spoken() {
    let noop = [&[0x80, 0x0a][..], &[0; 22]].concat();
    let text = Server::start(&["-B", "ascii"]);
    let mut client = text.connect();
    // What is a newline within it would end a line.
    let garbled: Vec<u8> = noop.iter().map(|&byte| byte.max(b'0')).collect();
    client.send(&garbled);
    client.send(b"\r\n");
    assert_eq!(client.until(b"\r\n"), b"ERROR\r\n");
    let binary = Server::start(&["-B", "binary"]);
    let mut client = binary.connect();
    client.send(&noop);
    assert_eq!(client.until(&[0; 8])[..2], [0x81, 0x0a]);
    let mut client = binary.connect();
    client.send(b"get abcdefghijklmnopqrstuvwxyz\r\n");
    assert_eq!(client.rest(), b"");
}

#[test]
fn its_number_is_in_a_file_while_it_runs() {
    let folder = Folder::new("pid");
    let path = folder.path("pid");
    let server = Server::start(&["-P", &path]);
    let read = || std::fs::read_to_string(&path);
    assert_eq!(read().expect("a file"), format!("{}\n", server.pid()));
    server.end_by(Signal::TERM);
    assert!(!Path::new(&path).exists());
    let (status, _, message) = run(&["-p", "0", "-P", "/no/such/folder/pid"]);
    assert_eq!(status, Some(1));
    assert!(message.contains("/no/such/folder/pid"), "{message}");
}

#[test]
fn a_daemon_is_reachable_when_its_parent_ends() {
    let folder = Folder::new("daemon");
    let (socket, pid) = (folder.path("socket"), folder.path("pid"));
    let status = Command::new(PROGRAM)
        .args(["-d", "-s", &socket, "-P", &pid])
        .args(["--transport", &crate::support::transport()])
        .status()
        .expect("run the program");
    assert_eq!(status.code(), Some(0));
    let mut client = Client::connect(&format!("unix:{socket}"));
    let number = client.statistic("pid");
    assert_eq!(
        std::fs::read_to_string(&pid).expect("a file"),
        format!("{number}\n")
    );
    let daemon = rustix::process::Pid::from_raw(number as i32).expect("a process");
    rustix::process::kill_process(daemon, Signal::TERM).expect("end it");
    assert_eq!(client.rest(), b"");
}

#[test]
fn root_is_given_up_for_good() {
    let (status, _, message) = run(&["-p", "0", "-u", "no-such-user"]);
    if !rustix::process::geteuid().is_root() {
        return;
    }
    assert_eq!(status, Some(1));
    assert!(message.contains("no-such-user"), "{message}");
    let server = Server::start(&["-u", "nobody", "-t", "2"]);
    assert_eq!(server.connect().ask(b"get a\r\n"), b"END\r\n");
    for task in std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("its threads") {
        let path = task.expect("a thread").path().join("status");
        let status = std::fs::read_to_string(path).expect("read about a thread");
        let ids = status
            .lines()
            .filter(|line| line.starts_with("Uid:") || line.starts_with("Gid:"));
        for line in ids {
            assert!(
                line.split_whitespace().skip(1).all(|id| id != "0"),
                "{line}"
            );
        }
    }
}

#[test]
fn who_may_open_a_unix_socket_is_told() {
    let folder = Folder::new("mode");
    for (arguments, mode) in [(&[][..], 0o700), (&["-a", "766"], 0o766)] {
        let path = folder.path("socket");
        let server = Server::start(&[&["-s", path.as_str()], arguments].concat());
        let found = std::fs::metadata(&path)
            .expect("a socket")
            .permissions()
            .mode();
        assert_eq!(found & 0o777, mode);
        server.end_by(Signal::TERM);
    }
}

#[test]
fn metrics_are_told_to_whoever_asks_for_them() {
    let mut server = Server::start(&["--metrics", "127.0.0.1:0", "-t", "2"]);
    let line = server.message();
    let address = line
        .trim_end()
        .strip_prefix("rackscope-cached: metrics at http://")
        .and_then(|rest| rest.strip_suffix("/metrics"))
        .unwrap_or_else(|| panic!("{line}"))
        .to_owned();
    server
        .connect()
        .ask(b"set a 0 0 1\r\n1\r\nget a\r\nget b\r\n");
    let fetch = |request: &str| {
        let mut client = Client::connect(&address);
        client.send(request.as_bytes());
        String::from_utf8(client.rest()).expect("text")
    };
    for _ in 0..2 {
        let answer = fetch("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
        for line in [
            "rackscope_cached_get_hits_total 1\n",
            "rackscope_cached_get_misses_total 1\n",
            "# TYPE rackscope_cached_curr_items gauge\nrackscope_cached_curr_items 1\n",
        ] {
            assert!(answer.contains(line), "{line}: {answer}");
        }
    }
    assert!(fetch("GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 404 "));
    assert!(fetch("nonsense\r\n\r\n").starts_with("HTTP/1.0 400 "));
    // Neither one who says nothing nor one who never ends holds up others for long, or the end.
    let _silent = Client::connect(&address);
    let mut endless = Client::connect(&address);
    endless.send(&[b'x'; 10_000]);
    assert!(fetch("GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 200 "));
    let (status, said) = server.end_by(Signal::TERM);
    assert_eq!((status.code(), said.as_str()), (Some(0), ""));
}
