//! Which keys are used most.

use crate::support::datagrams::{Sender, get};
use crate::support::{Client, Server};

/// The keys that are told, with count and error.
fn told(client: &mut Client) -> Vec<(String, u64, u64)> {
    let answer = String::from_utf8(client.ask(b"stats hotkeys\r\n")).expect("text");
    assert!(
        answer.starts_with("STAT hotkeys:enabled yes\r\nSTAT hotkeys:uses "),
        "{answer}"
    );
    assert!(answer.ends_with("END\r\n"), "{answer}");
    let mut keys: Vec<(String, u64, u64)> = Vec::new();
    for line in answer
        .lines()
        .filter_map(|line| line.strip_prefix("STAT hotkeys:"))
    {
        let (name, value) = line.split_once(' ').expect("a value");
        let Some((number, field)) = name.split_once(':') else {
            continue;
        };
        let number: usize = number.parse().expect("a number");
        match field {
            "key" => {
                keys.push((value.to_owned(), 0, 0));
                assert_eq!(keys.len(), number);
            }
            "count" => keys[number - 1].1 = value.parse().expect("a number"),
            "error" => keys[number - 1].2 = value.parse().expect("a number"),
            other => panic!("{other}"),
        }
    }
    keys
}

#[test]
fn the_hottest_keys_come_first_whatever_is_done_with_them() {
    for kind in [
        &["-t", "1"][..],
        &["-t", "3"],
        &["-t", "2", "--access", "erew"],
        &["-t", "3", "--access", "crew"],
    ] {
        let server = Server::start(&[kind, &["--hot-keys", "3"]].concat());
        let mut clients = [server.connect(), server.connect(), server.connect()];
        // Of a hundred: 40 of one, 20 of another whose bytes are no text, 10 of a third, and 30 of as many keys as there are
        // numbers.
        // Keys of other workers make a connection move, which takes its time.
        let rounds = if kind.len() > 2 { 500 } else { 1500 };
        for round in 0..rounds {
            let client = &mut clients[round % 3];
            let mut burst = "get hot\r\n".repeat(30) + &"set hot 0 0 1\r\n1\r\n".repeat(10);
            burst += &"mg AP8vIA== b q v\r\n".repeat(20);
            burst += "get warm warm warm warm warm\r\n";
            burst += &"delete warm noreply\r\n".repeat(5);
            for number in 0..30 {
                burst += &format!("get cold{round}-{number}\r\n");
            }
            client.ask(burst.as_bytes());
        }
        let uses = rounds as u64 * 100;
        let keys = told(&mut clients[0]);
        let names: Vec<&str> = keys.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["hot", "%00%FF%2F%20", "warm"]);
        for ((name, count, error), share) in keys.iter().zip([40, 20, 10]) {
            let truth = uses * share / 100;
            // Six standard errors, where two are told.
            assert!(
                truth.abs_diff(*count) <= 3 * error,
                "{name}: {truth}, {count} +- {error}"
            );
            assert!(error < count, "{name}: {count} +- {error}");
        }
        assert_eq!(clients[1].ask(b"stats reset\r\n"), b"RESET\r\n");
        assert_eq!(told(&mut clients[1]), []);
    }
}

#[test]
fn binary_requests_count_too() {
    let server = Server::start(&["--hot-keys", "1"]);
    let mut client = server.connect();
    // GETKQ of a key that is not there, and a NOOP.
    let get = [
        &[0x80, 0x0d, 0, 3, 0, 0, 0, 0, 0, 0, 0, 3][..],
        &[0; 12],
        b"bin",
    ]
    .concat();
    let noop = [&[0x80, 0x0a][..], &[0; 22]].concat();
    for _ in 0..100 {
        client.send(&[get.repeat(200), noop.clone()].concat());
        let mut answer = 0;
        while answer < 24 {
            answer += client.some().len();
        }
    }
    let keys = told(&mut server.connect());
    assert_eq!(keys.len(), 1);
    let (name, count, error) = &keys[0];
    assert_eq!(name, "bin");
    assert!(count.abs_diff(20_000) <= 3 * error, "{count} +- {error}");
}

#[test]
fn datagrams_count_too() {
    for kind in [&["-t", "1"][..], &["-t", "2", "--access", "erew"]] {
        let (server, address) =
            Server::start_with_datagrams(&[kind, &["--hot-keys", "2"]].concat());
        let mut sender = Sender::to(&address);
        let owns_all = kind.len() == 2;
        let many: Vec<_> = (0..30).map(|_| get("batched")).collect();
        for _ in 0..500 {
            sender.text("get text\r\n");
            sender.text(&"touch text 0\r\n".repeat(19));
            if owns_all {
                assert_eq!(sender.batch(&many).len(), 30);
            }
        }
        let expected: &[_] = if owns_all {
            &[("batched", 15_000), ("text", 10_000)]
        } else {
            &[("text", 10_000)]
        };
        let keys = told(&mut server.connect());
        assert_eq!(keys.len(), expected.len());
        for ((name, count, error), (wanted, truth)) in keys.iter().zip(expected) {
            assert_eq!(name, wanted);
            assert!(count.abs_diff(*truth) <= 3 * error, "{count} +- {error}");
        }
    }
}

#[test]
fn nothing_is_counted_unless_asked() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.ask("get a\r\n".repeat(1000).as_bytes());
    assert_eq!(
        client.ask(b"stats hotkeys\r\n"),
        b"STAT hotkeys:enabled no\r\nEND\r\n"
    );
}
