//! What holds over epoll holds over io_uring: the tests whose servers the ring can serve, once more, with it.

use crate::support::{Server, TRANSPORT};
use std::process::Command;

/// Tests of servers that only epoll serves: connections move between workers, or there are datagrams.
const EPOLL_ONLY: [&str; 4] = ["own_keys", "all_items_stay", "erew", "crew"];

/// Long, and the same but for who waits: the long suite has them.
const LONG: &str = "thousands_of_clients";

/// Start this program again, for the tests over io_uring whose names contain `filter`.
fn again(filter: &str) {
    if let Err(reason) = net::Ring::probe() {
        eprintln!("skipped: no io_uring: {reason}");
        return;
    }
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.arg(filter).env(TRANSPORT, "io_uring");
    for name in EPOLL_ONLY {
        command.args(["--skip", name]);
    }
    if std::env::var("RACKSCOPE_SUITE").as_deref() != Ok("long") {
        command.args(["--skip", LONG]);
    }
    let output = command.output().expect("start this program");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(!said.contains(" 0 passed"), "nothing was tried: {said}");
}

/// In the program that `again` starts; by itself it says what is served where nothing is asked for.
#[test]
fn servers_of_these_tests_use_what_was_asked_for() {
    let expected = std::env::var(TRANSPORT).unwrap_or_else(|_| "epoll".to_owned());
    let server = Server::start(&[]);
    let settings = server.connect().ask(b"stats settings\r\n");
    let settings = String::from_utf8(settings).expect("text");
    let line = format!("STAT transport {expected}\r\n");
    assert!(settings.contains(&line), "{settings}");
}

macro_rules! again {
    ($($name:ident),*) => { $( #[test] fn $name() { again(concat!(stringify!($name), "::")); } )* };
}

again!(
    administration,
    binary,
    clients,
    differential,
    operations,
    process,
    protocol,
    threads
);

#[test]
fn the_tests_themselves() {
    again("servers_of_these_tests");
}
