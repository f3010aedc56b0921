//! Several workers, in each mode of access to what they hold.

use crate::support::{Client, Server};
use wire::memcached::partition_map::owner;

const MODES: [&str; 3] = ["crcw", "crew", "erew"];

fn each_mode(test: impl Fn(&Server)) {
    for mode in MODES {
        test(&Server::start(&["-t", "3", "--access", mode]));
    }
}

#[test]
fn no_increment_is_lost_between_workers() {
    each_mode(|server| {
        let (clients, rounds, keys) = (6, 300, 5);
        let mut first = server.connect();
        for key in 0..keys {
            first.ask(format!("set n{key} 0 0 1\r\n0\r\n").as_bytes());
        }
        std::thread::scope(|scope| {
            for _ in 0..clients {
                scope.spawn(|| {
                    let mut client = server.connect();
                    let burst: String = (0..keys)
                        .map(|key| format!("incr n{key} 1 noreply\r\n"))
                        .collect();
                    for _ in 0..rounds {
                        client.ask(burst.as_bytes());
                    }
                });
            }
        });
        let expected = format!("{}\r\n", clients * rounds);
        for key in 0..keys {
            assert_eq!(
                first.ask(format!("incr n{key} 0\r\n").as_bytes()),
                expected.as_bytes()
            );
        }
        assert_eq!(first.statistic("incr_hits"), clients * rounds * keys + keys);
    });
}

#[test]
fn what_one_worker_stores_flushes_and_counts_the_others_see() {
    each_mode(|server| {
        // Connections go to the workers in turn.
        let mut clients = [server.connect(), server.connect(), server.connect()];
        for (number, client) in clients.iter_mut().enumerate() {
            client.ask(format!("set k{number} 0 0 1\r\n{number}\r\n").as_bytes());
        }
        for client in &mut clients {
            assert_eq!(
                client.ask(b"get k0 k1 k2\r\n"),
                b"VALUE k0 0 1\r\n0\r\nVALUE k1 0 1\r\n1\r\nVALUE k2 0 1\r\n2\r\nEND\r\n"
            );
        }
        assert_eq!(clients[0].statistic("get_hits"), 9);
        assert_eq!(clients[1].statistic("curr_connections"), 3);
        assert_eq!(clients[1].statistic("curr_items"), 3);
        clients[2].ask(b"flush_all\r\n");
        assert_eq!(clients[1].ask(b"get k0 k1 k2\r\n"), b"END\r\n");
        assert_eq!(clients[0].statistic("curr_items"), 0);
        assert_eq!(clients[0].statistic("cmd_flush"), 1);
    });
}

/// A connection moves between workers in the middle of a burst, of a line of keys, and with answers that the client
/// does not read yet.
#[test]
fn a_burst_for_all_workers_is_answered_in_order() {
    each_mode(|server| {
        let mut client = server.connect();
        let value = "v".repeat(20_000);
        let (mut stores, mut reads, mut line) = (String::new(), String::new(), "get".to_owned());
        let mut expected = String::new();
        for number in 0..200 {
            stores.push_str(&format!("set k{number} 7 0 20000\r\n{value}\r\n"));
            reads.push_str(&format!("get k{number}\r\nmg k{number} s\r\n"));
            line.push_str(&format!(" k{number}"));
            expected.push_str(&format!(
                "VALUE k{number} 7 20000\r\n{value}\r\nEND\r\nHD s20000\r\n"
            ));
        }
        assert_eq!(client.ask(stores.as_bytes()), b"STORED\r\n".repeat(200));
        // Four megabytes of answers, of which the client reads none before it has asked for the last.
        assert!(client.ask(reads.as_bytes()) == expected.as_bytes());
        let all = client.ask([line.as_bytes(), b"\r\n"].concat().as_slice());
        assert_eq!(
            all.len(),
            200 * ("VALUE k 7 20000\r\n".len() + 20_002) + 490 + 5
        );
        assert!(
            client
                .ask_slowly(b"get k0 k1 k2\r\nstats partitions\r\n")
                .len()
                > 60_000
        );
    });
}

#[test]
fn the_binary_protocol_moves_too() {
    // No-op, to wait for; and what a quiet set of key `key:N` looks like.
    let set = |number: u8| {
        let mut bytes = vec![0x80, 0x11, 0, 5, 8, 0, 0, 0, 0, 0, 0, 14];
        bytes.extend_from_slice(&[0; 12 + 8]);
        bytes.extend_from_slice(&[b'k', b'e', b'y', b':', number, number]);
        bytes
    };
    let get = |number: u8| {
        let mut bytes = vec![0x80, 0x00, 0, 5, 0, 0, 0, 0, 0, 0, 0, 5];
        bytes.extend_from_slice(&[0, 0, 0, number, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(&[b'k', b'e', b'y', b':', number]);
        bytes
    };
    each_mode(|server| {
        let mut client = server.connect();
        for number in 0..100 {
            client.send(&set(number));
        }
        for number in 0..100 {
            client.send(&get(number));
            let answer = client.take(24 + 4 + 1);
            assert_eq!((answer[15], answer[28]), (number, number), "{answer:?}");
        }
    });
}

#[test]
fn a_client_that_knows_the_map_reaches_each_worker_by_its_port() {
    for mode in ["crew", "erew"] {
        let server = Server::start(&["-t", "2", "--access", mode]);
        let map = server.connect().ask(b"stats partitions\r\n");
        let map = String::from_utf8(map).expect("text");
        let told = |name: &str| {
            let line = map
                .lines()
                .find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
            line.unwrap_or_else(|| panic!("no {name} in {map}"))
                .to_owned()
        };
        assert_eq!(
            (told("access"), told("hash"), told("workers")),
            (mode.into(), "crc32".into(), "2".into())
        );
        let mut own: Vec<Client> = (0..2)
            .map(|worker| {
                Client::connect(&format!("127.0.0.1:{}", told(&format!("{worker}:port"))))
            })
            .collect();
        for number in 0..100 {
            let key = format!("key{number}");
            let client = &mut own[owner(key.as_bytes(), 2)];
            assert_eq!(
                client.ask(format!("set {key} 0 0 1\r\nx\r\n").as_bytes()),
                b"STORED\r\n"
            );
            assert_eq!(
                client.ask(format!("get {key}\r\n").as_bytes()),
                format!("VALUE {key} 0 1\r\nx\r\nEND\r\n").as_bytes()
            );
        }
    }
    let map = Server::start(&["-t", "2"])
        .connect()
        .ask(b"stats partitions\r\n");
    assert_eq!(
        map,
        b"STAT access crcw\r\nSTAT hash crc32\r\nSTAT workers 1\r\nEND\r\n"
    );
}

#[test]
fn workers_ports_follow_the_one_asked_for() {
    // It is the first address's, where that has one: no port here is 2 or 3.
    let server = Server::start(&[
        "-p",
        "1",
        "-l",
        "127.0.0.1:0",
        "-t",
        "2",
        "--access",
        "erew",
    ]);
    let map = String::from_utf8(server.connect().ask(b"stats partitions\r\n")).expect("text");
    let ports: Vec<u16> = map
        .lines()
        .filter_map(|line| line.split_once(":port ")?.1.parse().ok())
        .collect();
    assert_eq!(ports.len(), 2, "{map}");
    assert!(ports.iter().all(|&port| port > 3), "{map}");
}

/// The load generator knows the map: each of its connections is one to each worker, and none is ever moved.
#[test]
fn a_load_that_knows_the_map_goes_straight_to_the_owners() {
    for (mode, depth, keys) in [("erew", 1, 1), ("crew", 8, 1), ("erew", 4, 10)] {
        let server = Server::start(&["-t", "2", "--access", mode]);
        let mut client = server.connect();
        let map = String::from_utf8(client.ask(b"stats partitions\r\n")).expect("text");
        let own_ports: Vec<u16> = map
            .lines()
            .filter_map(|line| line.split_once(":port ")?.1.parse().ok())
            .collect();
        let (host, port) = server.address().split_once(':').expect("an address");
        let config = serde_json::json!({
            "target": {"kind": "tcp", "host": host, "port": port.parse::<u16>().expect("a port"), "own_ports": own_ports},
            "protocol": "memcached_text", "connections": 5, "pipeline": depth, "multiget": keys, "seed": 7, "verify": true,
            "keys": {"count": 2000, "size": {"kind": "fixed", "bytes": 24}}, "values": {"kind": "fixed", "bytes": 100},
        });
        let load = load::LoadClient::new(&config.to_string()).expect("a client");
        let phase = |operations: serde_json::Value,
                     kind: &str,
                     count: u64,
                     control: serde_json::Value| {
            let phase = serde_json::json!({
                "name": "phase", "operations": operations, "distribution": {"kind": kind}, "loop": control,
                "operation_count": count, "interval_seconds": 0.25,
            });
            load.start_phase(&phase.to_string()).expect("a phase");
            assert!(load.wait(crate::support::PATIENCE));
            load.phase_result().expect("a result")
        };
        let closed = || serde_json::json!({"kind": "closed"});
        let open = || serde_json::json!({"kind": "open", "arrivals": "poisson", "rate_per_second": 50_000.0});
        let before = client.statistic("moves");
        assert_eq!(
            phase(
                serde_json::json!({"insert": 1.0}),
                "sequential",
                2000,
                closed()
            )
            .failed,
            None
        );
        for control in [closed(), open()] {
            let mix = serde_json::json!({"read": 0.6, "update": 0.3, "read_modify_write": 0.1});
            let result = phase(mix, "uniform", 10_000, control);
            assert_eq!((result.failed, result.operations), (None, 10_000));
            assert_eq!(
                (result.wrong_values, result.misses),
                (0, 0),
                "{:?}",
                result.first_wrong
            );
        }
        // But for the questions for statistics, which visit all workers.
        assert_eq!(client.statistic("moves") - before, 1);
    }
}
