//! `-I` beyond a small part of memory: large items and small ones do not push each other out.

use crate::support::{Client, Folder, Server, run, shown};
use rustix::process::Signal;

/// Of a memory of twice as much.
const LARGE: usize = 16 << 20;

fn set(client: &mut Client, key: &str, bytes: usize) {
    let mut question = format!("set {key} 5 0 {bytes}\r\n").into_bytes();
    question.resize(question.len() + bytes, key.as_bytes()[0]);
    question.extend_from_slice(b"\r\n");
    assert_eq!(shown(&client.ask(&question)), "STORED\\r\\n", "{key}");
}

/// The answer to a `get`, and whether it is what [`set`] stored.
fn has(client: &mut Client, key: &str, bytes: usize) -> bool {
    let answer = client.ask(format!("get {key}\r\n").as_bytes());
    if answer == b"END\r\n" {
        return false;
    }
    let head = format!("VALUE {key} 5 {bytes}\r\n");
    let value = answer
        .strip_prefix(head.as_bytes())
        .and_then(|rest| rest.strip_suffix(b"\r\nEND\r\n"))
        .unwrap_or_else(|| panic!("{}", shown(&answer[..answer.len().min(80)])));
    assert_eq!(value.len(), bytes);
    let expected = [key.as_bytes()[0]; 1 << 16];
    let is_right = |part: &[u8]| part == &expected[..part.len()];
    assert!(value.chunks(expected.len()).all(is_right));
    true
}

#[test]
fn items_of_half_the_memory_and_small_ones_share_it() {
    for threads in ["1", "3"] {
        let server = Server::start(&["-m", "32", "-I", "17m", "-t", threads]);
        let mut client = server.connect();
        for number in 0..5000 {
            set(&mut client, &format!("small{number}"), 300);
        }
        for number in 0..4 {
            let key = format!("large{number}");
            set(&mut client, &key, LARGE);
            assert!(has(&mut client, &key, LARGE));
        }
        assert!((0..5000).all(|number| has(&mut client, &format!("small{number}"), 300)));
        assert_eq!(client.statistic("evictions"), 3);
        // However many small ones there are.
        let value = "x".repeat(1000);
        for number in 0..25_000 {
            let question = format!("set more{number} 0 0 1000 noreply\r\n{value}\r\n");
            client.send(question.as_bytes());
        }
        assert!(has(&mut client, "large3", LARGE));
        assert!(!has(&mut client, "small0", 300));
        assert_eq!(client.statistic("limit_maxbytes"), 32 << 20);
        // From one side to the other and back.
        set(&mut client, "large3", 10);
        assert!(has(&mut client, "large3", 10));
        set(&mut client, "large3", LARGE);
        assert!(has(&mut client, "large3", LARGE));
        assert_eq!(client.ask(b"append large3 0 0 2\r\nll\r\n"), b"STORED\r\n");
        assert!(has(&mut client, "large3", LARGE + 2));
        assert_eq!(client.ask(b"touch large3 1000\r\n"), b"TOUCHED\r\n");
        assert_eq!(
            client.ask(b"incr large3 1\r\n").get(..12),
            Some(&b"CLIENT_ERROR"[..])
        );
        assert_eq!(client.ask(b"delete large3\r\n"), b"DELETED\r\n");
        assert!(!has(&mut client, "large3", LARGE));
    }
}

#[test]
fn workers_that_own_their_keys_have_large_items_too() {
    let folder = Folder::new("large");
    let path = folder.path("items");
    for access in ["erew", "crew"] {
        let arguments = [
            "-m", "64", "-I", "17m", "-t", "2", "--access", access, "-e", &path,
        ];
        let server = Server::start(&arguments);
        let mut client = server.connect();
        for number in 0..1000 {
            set(&mut client, &format!("small{number}"), 300);
            if number % 250 == 0 {
                set(&mut client, &format!("large{number}"), LARGE);
                assert!(has(&mut client, &format!("large{number}"), LARGE));
            }
        }
        let check = |client: &mut Client| {
            let small = (0..1000).all(|number| has(client, &format!("small{number}"), 300));
            small && has(client, "large750", LARGE)
        };
        assert!(check(&mut client));
        server.end_by(Signal::USR1);
        let server = Server::start(&arguments);
        let mut client = server.connect();
        assert!(check(&mut client), "{}", server.said());
        client.ask(b"flush_all\r\n");
        assert_eq!(client.statistic("curr_items"), 0);
        assert!(!has(&mut client, "large750", LARGE));
        server.end_by(Signal::USR1);
    }
    let (status, _, message) = run(&["-m", "64", "-I", "33m", "-t", "2", "--access", "erew"]);
    assert_eq!(status, Some(1));
    assert!(
        message.contains("three quarters of a partition"),
        "{message}"
    );
}

/// Where memory is less than an item may be, the item is refused, at the start or when it comes.
#[test]
fn less_memory_than_one_item_takes_refuses_that_item() {
    for arguments in [
        &["-m", "1"][..],
        &["-m", "1", "-M"],
        &["-m", "2", "-t", "8"],
    ] {
        let server = crate::support::Server::start(arguments);
        let mut client = server.connect();
        let value = "v".repeat(1 << 20);
        let set = |bytes: usize| format!("set a 0 0 {bytes}\r\n{}\r\n", &value[..bytes]);
        assert_eq!(
            client.ask(set(1000).as_bytes()),
            b"STORED\r\n",
            "{arguments:?}"
        );
        let refused = client.ask(set(1 << 20).as_bytes());
        assert_eq!(refused, b"SERVER_ERROR object too large for cache\r\n");
        // What it was to replace is gone, and others have room.
        let asked = format!("get a\r\n{}get a\r\n", set(3));
        let told = b"END\r\nSTORED\r\nVALUE a 0 3\r\nvvv\r\nEND\r\n";
        assert_eq!(client.ask(asked.as_bytes()), told);
    }
    for arguments in [&["-m", "1", "-I", "2m"][..], &["-m", "1", "-I", "1m", "-M"]] {
        let (status, _, message) = crate::support::run(&[&["-p", "0"], arguments].concat());
        assert_eq!(status, Some(1), "{arguments:?}");
        assert!(
            message.contains("-I") && message.contains("larger -m"),
            "{message}"
        );
    }
}
