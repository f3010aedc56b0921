//! Requests by UDP: memcached's frames, and many requests a datagram.

use crate::support::datagrams::{Sender, delete, get, set};
use crate::support::memcached::{Memcached, memcached_program};
use crate::support::{PATIENCE, Server};
use std::time::Instant;
use wire::batch::{Answer, Refusal, Request, parse_answer, push_request};
use wire::memcached::datagram::{Format, Frame};
use wire::memcached::partition_map::owner;

fn server(arguments: &[&str]) -> (Server, String) {
    Server::start_with_datagrams(arguments)
}

#[test]
fn text_is_answered_as_over_a_connection() {
    for arguments in [
        &[][..],
        &["-t", "3"],
        &["-t", "3", "--access", "erew"],
        &["-t", "3", "--access", "crew"],
    ] {
        let (server, address) = server(arguments);
        let mut sender = Sender::to(&address);
        assert_eq!(sender.text("get a\r\n"), "END\r\n");
        assert_eq!(
            sender.text("set a 3 0 1\r\nx\r\nset b 0 0 1\r\ny\r\n"),
            "STORED\r\nSTORED\r\n"
        );
        assert_eq!(sender.text("get a\r\n"), "VALUE a 3 1\r\nx\r\nEND\r\n");
        assert_eq!(
            sender.text("get a b c d\r\nmg a f\r\nincr a 1\r\n"),
            "VALUE a 3 1\r\nx\r\nVALUE b 0 1\r\ny\r\nEND\r\nHD f3\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
        );
        // A quiet one is answered by nothing at all.
        sender.send(Format::Text, b"set q 0 0 1 noreply\r\nz\r\n");
        // Datagrams have no order: another worker may answer this before its owner has stored it.
        let deadline = Instant::now() + PATIENCE;
        while sender.text("get q\r\n") != "VALUE q 0 1\r\nz\r\nEND\r\n" {
            assert!(Instant::now() < deadline, "it was never stored");
        }
        let large = "v".repeat(100_000);
        let mut client = server.connect();
        client.ask(format!("set l 0 0 100000\r\n{large}\r\n").as_bytes());
        assert_eq!(
            sender.text("get l\r\n"),
            format!("VALUE l 0 100000\r\n{large}\r\nEND\r\n")
        );
        assert_eq!(
            sender.text(&format!("get{}\r\n", " l".repeat(12))),
            "SERVER_ERROR the answer is too long for datagrams\r\n"
        );
        assert!(sender.text("stats\r\n").contains("STAT curr_items 4\r\n"));
        assert_eq!(sender.text("flush_all\r\n"), "OK\r\n");
        assert_eq!(client.ask(b"get a b l q\r\n"), b"END\r\n");
        assert!(client.statistic("datagrams_received") >= 10);
    }
}

#[test]
fn many_requests_come_in_one_datagram() {
    let (server, address) = server(&[]);
    let mut sender = Sender::to(&address);
    let keys: Vec<String> = (0..100).map(|number| format!("key{number}")).collect();
    let sets: Vec<Request<'_>> = keys.iter().map(|key| set(key, key)).collect();
    assert_eq!(sender.batch(&sets), vec!["Done"; 100]);
    let mut gets: Vec<Request<'_>> = keys.iter().map(|key| get(key)).collect();
    gets.extend([get("none"), delete("key7"), delete("key7"), get("key7")]);
    let mut expected: Vec<String> = keys.iter().map(|key| format!("5 {key}")).collect();
    expected.extend(["NotFound", "Done", "NotFound", "NotFound"].map(str::to_owned));
    assert_eq!(sender.batch(&gets), expected);
    let mut client = server.connect();
    assert_eq!(
        client.ask(b"get key99\r\n"),
        b"VALUE key99 5 5\r\nkey99\r\nEND\r\n"
    );
    // One that is longer than a datagram of many fills one by itself; one that no datagram holds is refused.
    let long = "l".repeat(60_000);
    assert_eq!(sender.batch(&[set("long", &long)]), ["Done"]);
    assert_eq!(
        sender.batch(&[get("key1"), get("long"), get("key2")]),
        ["5 key1", &format!("5 {long}"), "5 key2"]
    );
    client.ask(format!("set longer 0 0 65500\r\n{}\r\n", "l".repeat(65_500)).as_bytes());
    assert_eq!(
        sender.batch(&[get("longer")]),
        [format!("{:?}", Answer::Refused(Refusal::TooLarge))]
    );
}

#[test]
fn a_batch_says_which_keys_are_another_worker_s() {
    let (server, address) = server(&["-t", "2", "--access", "erew"]);
    let map = String::from_utf8(server.connect().ask(b"stats partitions\r\n")).expect("text");
    let mut own: Vec<Sender> = (0..2)
        .map(|worker| {
            let name = format!("STAT {worker}:udp_port ");
            let port = map.lines().find_map(|line| line.strip_prefix(&name));
            Sender::to(&format!(
                "127.0.0.1:{}",
                port.unwrap_or_else(|| panic!("{map}"))
            ))
        })
        .collect();
    let other_worker = format!("{:?}", Answer::Refused(Refusal::OtherWorker));
    for number in 0..50 {
        let key = format!("key{number}");
        let worker = owner(key.as_bytes(), 2);
        assert_eq!(
            own[worker].batch(&[set(&key, "v"), get(&key)]),
            ["Done", "5 v"]
        );
        assert_eq!(
            own[1 - worker].batch(&[get(&key), set(&key, "w"), delete(&key)]),
            vec![other_worker.as_str(); 3]
        );
        // Text finds its way.
        assert_eq!(
            own[1 - worker].text(&format!("get {key}\r\n")),
            format!("VALUE {key} 5 1\r\nv\r\nEND\r\n")
        );
    }
    drop(address);
}

#[test]
fn what_is_no_datagram_of_ours_is_not_answered_and_does_no_harm() {
    let (_server, address) = server(&[]);
    let mut sender = Sender::to(&address);
    for noise in [
        &b""[..],
        b"get a\r\n",
        &[0xff; 8],
        &[0xff; 1000],
        b"\0\x01\0\0\0\x01\0",
    ] {
        sender.socket.send(noise).expect("send");
    }
    // Cut short: nothing whole to answer.
    sender.send(Format::Text, b"get a");
    sender.send(Format::Text, b"set a 0 0 10\r\nab");
    sender.send(Format::Text, b"");
    sender.send(Format::Batch, b"");
    // A request in several datagrams, of any number.
    for frame in [(0, 2), (1, 2), (0, 0)] {
        let frame = Frame {
            request: 9,
            sequence: frame.0,
            datagrams: frame.1,
            format: Format::Text,
        };
        sender
            .socket
            .send(&[&frame.to_bytes()[..], b"get a\r\n"].concat())
            .expect("send");
        assert_eq!(
            sender.receive().1,
            b"SERVER_ERROR multi-packet request not supported\r\n"
        );
    }
    let malformed = format!("{:?}", Answer::Refused(Refusal::Malformed));
    let mut entries = Vec::new();
    push_request(&mut entries, set("a", "x"));
    push_request(&mut entries, get("a"));
    let whole = entries.len();
    for cut in 1..whole {
        sender.send(Format::Batch, &entries[..cut]);
        let (_, answer) = sender.receive();
        let (mut rest, mut last) = (&answer[..], String::new());
        while let Some((answer, behind)) = parse_answer(rest).expect("whole entries") {
            (last, rest) = (format!("{answer:?}"), behind);
        }
        let is_between = cut == whole - 9;
        assert_eq!(last == malformed, !is_between, "{cut}: {last}");
    }
    assert_eq!(sender.text("get a\r\n"), "VALUE a 5 1\r\nx\r\nEND\r\n");
}

/// One key at a time: memcached answers each in datagrams of its own.
#[test]
fn memcached_frames_its_answers_in_the_same_way() {
    let Some(program) = memcached_program() else {
        eprintln!("skipped: no memcached 1.6 in RACKSCOPE_MEMCACHED or on PATH");
        return;
    };
    let (_server, address) = server(&[]);
    let memcached = Memcached::start(&program, &[]);
    let (mut ours, mut theirs) = (Sender::to(&address), Sender::to(memcached.address()));
    let large = "v".repeat(5_000);
    for commands in [
        "get a\r\n".to_owned(),
        "set a 1 0 1\r\nx\r\n".to_owned(),
        format!("set l 0 0 5000\r\n{large}\r\n"),
        "get l\r\n".to_owned(),
        "nonsense\r\n".to_owned(),
        "incr a 1\r\n".to_owned(),
        "mg a v\r\n".to_owned(),
    ] {
        let (ours, theirs) = (ours.text(&commands), theirs.text(&commands));
        assert_eq!(ours, theirs, "to {commands:?}");
    }
}

/// A client that checks every value, with datagrams of one request and of many, of one worker and of several.
#[test]
fn a_load_of_datagrams_reads_what_it_wrote() {
    for (arguments, protocol, batch) in [
        (&[][..], "memcached_text", 1),
        (&[], "batch", 16),
        (&["-t", "2"], "batch", 7),
        (&["-t", "2", "--access", "erew"], "batch", 16),
        (&["-t", "2", "--access", "crew"], "memcached_text", 1),
    ] {
        let (server, address) = server(arguments);
        let map = String::from_utf8(server.connect().ask(b"stats partitions\r\n")).expect("text");
        let mut ports: Vec<u16> = map
            .lines()
            .filter_map(|line| line.split_once(":udp_port ")?.1.parse().ok())
            .collect();
        if ports.is_empty() {
            ports.push(
                address
                    .rsplit(':')
                    .next()
                    .and_then(|port| port.parse().ok())
                    .expect("a port"),
            );
        }
        let config = serde_json::json!({
            "target": {"kind": "udp", "host": "127.0.0.1", "ports": ports}, "protocol": protocol, "batch": batch,
            "connections": 4, "pipeline": 8, "seed": 7, "verify": true,
            "keys": {"count": 3000, "size": {"kind": "fixed", "bytes": 24}},
            "values": {"kind": "fixed", "bytes": 100},
        });
        let client = load::LoadClient::new(&config.to_string()).expect("a client");
        let phase = |operations: serde_json::Value, kind: &str, count: u64| {
            let phase = serde_json::json!({
                "name": "phase", "operations": operations, "distribution": {"kind": kind}, "loop": {"kind": "closed"},
                "operation_count": count, "interval_seconds": 0.25,
            });
            client.start_phase(&phase.to_string()).expect("a phase");
            assert!(client.wait(PATIENCE));
            client.phase_result().expect("a result")
        };
        let stored = phase(serde_json::json!({"insert": 1.0}), "sequential", 3000);
        assert_eq!((stored.operations, stored.failed), (3000, None));
        let result = phase(
            serde_json::json!({"read": 0.5, "update": 0.5}),
            "uniform",
            20_000,
        );
        assert_eq!(
            (result.failed, result.operations),
            (None, 20_000),
            "{:?}",
            result.first_error
        );
        assert_eq!(
            (result.wrong_values, result.misses),
            (0, 0),
            "{:?}",
            result.first_wrong
        );
        assert!(result.hits > 9000, "{}", result.hits);
    }
}

/// Of an open loop every operation that was due is told of, however slow this host is; flags and a time to live come back
/// over datagrams as they were given.
#[test]
fn an_open_loop_asks_for_all_that_is_due_and_items_have_flags_and_an_end() {
    for (arguments, protocol, batch) in [
        (&[][..], "memcached_text", 1),
        (&["-t", "2", "--access", "erew"], "memcached_text", 1),
        (&[], "batch", 32),
    ] {
        let (server, address) = server(arguments);
        let (_, port) = address.rsplit_once(':').expect("a port");
        let config = serde_json::json!({
            "target": {"kind": "udp", "host": "127.0.0.1", "ports": [port.parse::<u16>().expect("a port")]},
            "protocol": protocol, "batch": batch, "connections": 2, "pipeline": 64, "seed": 7, "verify": true,
            "flags": 4711, "expire_seconds": 1,
            "keys": {"count": 500, "size": {"kind": "fixed", "bytes": 24}},
            "values": {"kind": "fixed", "bytes": 100},
        });
        let client = load::LoadClient::new(&config.to_string()).expect("a client");
        let phase = |mix: serde_json::Value, kind: &str, most: serde_json::Value| {
            let mut phase = serde_json::json!({
                "name": "phase", "operations": mix, "distribution": {"kind": kind}, "interval_seconds": 0.25,
                "loop": {"kind": "open", "arrivals": "constant", "rate_per_second": 10_000.0},
            });
            phase
                .as_object_mut()
                .expect("an object")
                .extend(most.as_object().expect("an object").clone());
            client.start_phase(&phase.to_string()).expect("a phase");
            assert!(client.wait(PATIENCE));
            client.phase_result().expect("a result")
        };
        let inserts = serde_json::json!({"insert": 1.0});
        let stored = phase(
            inserts,
            "sequential",
            serde_json::json!({"operation_count": 500}),
        );
        assert_eq!((stored.operations, stored.failed), (500, None));
        let mix = serde_json::json!({"read": 0.5, "update": 0.5});
        let result = phase(
            mix,
            "uniform",
            serde_json::json!({"duration_seconds": 0.3, "record_latency": true}),
        );
        let due = result.operations + result.errors + result.unsent_operations;
        assert_eq!(
            (&result.failed, due, result.wrong_values),
            (&None, 3000, 0),
            "{:?}",
            result.first_wrong
        );
        assert!(result.hits > 0 && result.lag_p99_seconds.is_some());
        // The client has checked flags; here is that of what was written nothing stays.
        let mut sender = Sender::to(&address);
        let deadline = Instant::now() + PATIENCE;
        for id in 0..500 {
            let key = format!("user{id:020}");
            let mut answer = sender.text(&format!("mg {key} f\r\n"));
            while answer != "EN\r\n" {
                assert_eq!(answer, "HD f4711\r\n");
                assert!(Instant::now() < deadline, "it never ends");
                answer = sender.text(&format!("mg {key} f\r\n"));
            }
        }
        drop(server);
    }
}

/// What an entry says of its length is believed only as far as there are bytes: what is in front of it is carried out, and
/// nothing behind it.
#[test]
fn a_batch_that_lies_about_its_length_is_carried_out_up_to_there() {
    let (server, address) = server(&["-M", "-m", "8"]);
    let mut sender = Sender::to(&address);
    let mut client = server.connect();
    let mut truth = Vec::new();
    push_request(&mut truth, set("a", "first"));
    let mut last = Vec::new();
    push_request(&mut last, set("last", "never"));
    let malformed = Answer::Refused(Refusal::Malformed);
    for head in [
        // Operation, bytes of the key, two zeros, bytes of the value.
        [2, 1, 0, 0, 0xff, 0xff, 0xff, 0xff],
        [2, 1, 0, 0, 0, 0, 0, 0x80],
        [2, 255, 0, 0, 1, 0, 0, 0],
        [2, 0, 0, 0, 1, 0, 0, 0],
        [2, 1, 0, 0, 0xff, 0xff, 0, 0],
        [1, 255, 0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 1, 0, 0, 0],
        [3, 1, 0, 0, 0xff, 0xff, 0xff, 0xff],
        [2, 1, 1, 0, 1, 0, 0, 0],
        [0, 1, 0, 0, 0, 0, 0, 0],
        [0xff; 8],
    ] {
        let entries = [&truth[..], &head, &[0; 8], b"bx", &last].concat();
        let answer = sender.ask(Format::Batch, &entries);
        let (first, rest) = parse_answer(&answer).expect("an answer").expect("one");
        let (second, rest) = parse_answer(rest).expect("an answer").expect("another");
        assert_eq!(
            (first, second, rest.len()),
            (Answer::Done, malformed, 0),
            "{head:?}"
        );
        assert_eq!(
            client.ask(b"get a b last\r\n"),
            b"VALUE a 5 5\r\nfirst\r\nEND\r\n"
        );
    }
    // One that says less than there is: what is left over passes for the next.
    let head = [2, 1, 0, 0, 1, 0, 0, 0];
    let answer = sender.ask(Format::Batch, &[&head[..], &[0; 8], b"bxyz"].concat());
    let (first, rest) = parse_answer(&answer).expect("an answer").expect("one");
    assert_eq!(
        (first, parse_answer(rest)),
        (Answer::Done, Ok(Some((malformed, &[][..]))))
    );
    assert_eq!(client.ask(b"get b\r\n"), b"VALUE b 0 1\r\nx\r\nEND\r\n");
}
