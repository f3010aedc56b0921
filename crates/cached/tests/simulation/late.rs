//! A reply that comes when its client is gone, and another has the place that it had.

use cached::options::{Access, Options};
use cached::simulated_server::{ForwardLimits, SimulatedServer};
use mica::Config;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// More than a quarter of what may be held for clients.
const VALUE_BYTES: usize = 300 << 10;

fn server() -> SimulatedServer {
    let options = Options {
        threads: 3,
        access: Access::Erew,
        client_memory_mebibytes: Some(1),
        ..Options::default()
    };
    // One batch may bring more than there is memory for.
    let limits = ForwardLimits {
        reply_bytes: 4 << 20,
        ..ForwardLimits::default()
    };
    let mut layout = Config::for_log_bytes(16 << 20);
    layout.item_bytes_max = 1 << 20;
    SimulatedServer::start(&options, layout, 1, limits, None).expect("a server")
}

fn connect(server: &SimulatedServer, worker: usize) -> UnixStream {
    let client = server.connect(worker, None, None).expect("a connection");
    client.set_nonblocking(true).expect("an option");
    client
}

/// Each has turns enough to do all that there is for it: commands for others leave a turn after they came.
fn turns(server: &mut SimulatedServer, workers: &[usize]) {
    for &worker in workers {
        for _ in 0..5 {
            server.turn(worker).expect("a turn");
        }
    }
}

/// What there is to read, and whether the server has closed the connection.
fn heard(mut client: &UnixStream) -> (String, bool) {
    let mut bytes = Vec::new();
    let is_closed = client.read_to_end(&mut bytes).is_ok();
    (String::from_utf8(bytes).expect("text"), is_closed)
}

/// A key of `owner`, with a value: of commands that come to their owner, none goes on.
fn store(server: &mut SimulatedServer, owner: usize, value_bytes: usize) -> String {
    let client = connect(server, owner);
    for number in 0..100 {
        let forwards = server.forwards();
        let key = format!("key-{number}");
        (&client)
            .write_all(format!("mg {key}\r\n").as_bytes())
            .expect("room");
        turns(server, &[owner]);
        if server.forwards() > forwards {
            turns(server, &[0, 1, 2, owner]);
            heard(&client);
            continue;
        }
        let command = format!("ms {key} {value_bytes}\r\n{}\r\n", "v".repeat(value_bytes));
        let mut rest = command.as_bytes();
        while !rest.is_empty() {
            let sent = (&client).write(rest).expect("room");
            rest = &rest[sent..];
            turns(server, &[owner]);
        }
        assert_eq!(heard(&client), ("EN\r\nHD\r\n".into(), false));
        return key;
    }
    panic!("worker {owner} has none of a hundred keys");
}

#[test]
fn a_late_reply_is_not_taken_for_one_of_whoever_came_after() {
    let mut server = server();
    let [large, small] = [(1, VALUE_BYTES), (2, 5)]
        .map(|(owner, value_bytes)| store(&mut server, owner, value_bytes));
    let first = connect(&server, 0);
    let question = format!("mg {large} v\r\n").repeat(4) + &format!("mg {small} v\r\n");
    (&first).write_all(question.as_bytes()).expect("room");
    // Its replies from one worker are more than may be held, while another worker has not replied yet.
    turns(&mut server, &[0, 1, 0]);
    assert_eq!(heard(&first), (String::new(), true));
    assert_eq!(server.given_up(), 1);
    let second = connect(&server, 0);
    let question = format!("mg {small} k\r\n");
    (&second).write_all(question.as_bytes()).expect("room");
    turns(&mut server, &[0, 2, 0, 2, 0]);
    assert_eq!(heard(&second), (format!("HD k{small}\r\n"), false));
}
