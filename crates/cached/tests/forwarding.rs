//! Commands on keys of several workers, pipelined on one connection.

use crate::authority::TlsServer;
use crate::support::{Client, Server};
use std::io::Write;
use std::time::{Duration, Instant};

const DIVIDED: [&str; 2] = ["erew", "crew"];
const WORKERS: &str = "3";

/// Numbers that only look random (a linear congruential generator, Knuth's).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Commands on a few keys, of which each worker has some: no reply depends on what only one server knows.
fn script(seed: u64, commands: usize) -> Vec<u8> {
    let mut numbers = Numbers(seed);
    let mut script = Vec::new();
    for _ in 0..commands {
        let (key, other) = (numbers.below(40), numbers.below(40));
        let value_bytes = match numbers.below(60) {
            0 => 40_000 + numbers.below(40_000),
            1 => 3000,
            _ => numbers.below(40),
        };
        let value = "v".repeat(value_bytes);
        let line = match numbers.below(26) {
            0..5 => format!("get k{key}"),
            5 => format!("get k{key} k{other} missing k{key}"),
            6 => format!("gat 0 k{key} k{other}"),
            7..12 => format!("set k{key} {other} 0 {value_bytes}\r\n{value}"),
            12 => format!("set k{key} 0 0 {value_bytes} noreply\r\n{value}"),
            13 => format!("append k{key} 0 0 1\r\n+"),
            14 => format!("set k{key} 0 0 2\r\n{}", 10 + other),
            15 => format!("incr k{key} {other}"),
            16 => format!("delete k{key}"),
            17 => format!("touch k{key} 0"),
            18 => format!("mg k{key} v f s k O{other}"),
            19 => format!("mg k{key} v q k\r\nmn"),
            20 => format!("ms k{key} {value_bytes} T0 F{other}\r\n{value}"),
            21 => format!("ma k{key} N0 J5 v"),
            22 => format!("md k{key} q"),
            // Mistakes, and what is too large, keep their places.
            23 => format!("set k{key} 0 0 5\r\n1234567\r\nnonsense {other}\r\nset k{key} x"),
            24 => format!("mg azE= b k s v\r\nversion\r\nget {}", "k".repeat(251)),
            _ if other == 0 => "flush_all".to_owned(),
            _ => format!("mg k{key} s\r\nmn"),
        };
        script.extend(line.as_bytes());
        script.extend(b"\r\n");
    }
    script
}

/// What a client is replied that sends `script` in pieces, without waiting.
fn transcript(client: &mut Client, script: &[u8], seed: u64) -> Vec<u8> {
    const END: &[u8] = b"VALUE the-end 0 1\r\n.\r\nEND\r\n";
    let mut numbers = Numbers(seed);
    client.ask(b"set the-end 0 0 1\r\n.\r\n");
    let mut rest = script;
    while !rest.is_empty() {
        let most = [5, 500, 100_000][numbers.below(3)];
        let (piece, behind) = rest.split_at(rest.len().min(1 + numbers.below(most)));
        client.send(piece);
        rest = behind;
    }
    client.send(b"set the-end 0 0 1\r\n.\r\nget the-end\r\n");
    client.until(END)
}

#[test]
fn a_pipelined_mix_is_replied_as_by_one_worker() {
    for seed in 0..4 {
        // So that no reply fills the client's and the server's sockets while the client sends.
        let script = script(seed, 400);
        let expected = transcript(&mut Server::start(&["-t", "1"]).connect(), &script, seed);
        for mode in DIVIDED {
            let arguments = ["-t", WORKERS, "--access", mode];
            let server = Server::start(&arguments);
            let replies = transcript(&mut server.connect(), &script, seed);
            assert!(
                replies == expected,
                "{mode}, seed {seed}: {}",
                difference(&replies, &expected)
            );
            assert!(server.connect().statistic("forwards") > 50);
            let tls = TlsServer::start("forwarding", &arguments);
            let replies = transcript(&mut tls.connect(), &script, seed);
            assert!(
                replies == expected,
                "{mode}, TLS, seed {seed}: {}",
                difference(&replies, &expected)
            );
        }
    }
}

fn difference(one: &[u8], other: &[u8]) -> String {
    let at = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let around = |bytes: &[u8]| {
        let around = &bytes[at.saturating_sub(80)..bytes.len().min(at + 80)];
        around.escape_ascii().to_string()
    };
    format!("from byte {at} on\n{}\n{}", around(one), around(other))
}

#[test]
fn short_commands_leave_their_connection_where_it_is() {
    for mode in DIVIDED {
        let server = Server::start(&["-t", WORKERS, "--access", mode]);
        let mut client = server.connect();
        let (before, moves) = (client.statistic("forwards"), client.statistic("moves"));
        let mut burst = String::new();
        for number in 0..300 {
            burst.push_str(&format!("set k{number} 0 0 1\r\nx\r\nget k{number}\r\n"));
        }
        let expected: String = (0..300)
            .map(|number| format!("STORED\r\nVALUE k{number} 0 1\r\nx\r\nEND\r\n"))
            .collect();
        assert_eq!(client.ask(burst.as_bytes()), expected.as_bytes());
        // A read behind the connection's own write goes after it.
        assert!(client.statistic("forwards") - before > 300);
        // But for the questions for statistics.
        assert!(client.statistic("moves") - moves <= 6);
    }
}

#[test]
fn a_client_that_quits_gets_what_it_asked_for_before() {
    for mode in DIVIDED {
        let server = Server::start(&["-t", WORKERS, "--access", mode]);
        let mut client = server.connect();
        let burst: String = (0..50).map(|number| format!("mg k{number}\r\n")).collect();
        client.send(format!("{burst}quit\r\nget a\r\n").as_bytes());
        assert_eq!(client.rest(), b"EN\r\n".repeat(50));
    }
}

/// It asks for much and reads nothing: little is held for it, and others are served meanwhile. All is replied to once it
/// reads.
#[test]
fn a_client_that_does_not_read_is_waited_for() {
    for mode in DIVIDED {
        let server = Server::start(&["-t", WORKERS, "--access", mode]);
        let mut other = server.connect();
        let value = "v".repeat(30_000);
        for number in 0..30 {
            other.ask(format!("set k{number} 0 0 {}\r\n{value}\r\n", value.len()).as_bytes());
        }
        let (bursts, keys) = (60, 30);
        let burst: String = (0..keys)
            .map(|number| format!("mg k{number} v\r\n"))
            .collect();
        let mut silent = server.connect();
        // Replies of 54 MB, of which sockets hold a few.
        silent.send(burst.repeat(bursts).as_bytes());
        for _ in 0..500 {
            assert_eq!(other.ask(b"get a\r\n"), b"END\r\n");
        }
        let held = other.statistic("read_buf_bytes");
        assert!(held < 4 << 20, "{held} bytes are held");
        let reply = format!("VA {}\r\n{value}\r\n", value.len());
        for _ in 0..bursts * keys {
            assert!(silent.take(reply.len()) == reply.as_bytes());
        }
        assert_eq!(other.statistic("response_obj_oom"), 0);
    }
}

#[test]
fn clients_that_hang_up_leave_nothing_behind() {
    for mode in DIVIDED {
        let server = Server::start(&["-t", WORKERS, "--access", mode]);
        let mut client = server.connect();
        let burst: String = (0..100)
            .map(|number| format!("set k{number} 0 0 2 noreply\r\nab\r\nget k{number}\r\n"))
            .collect();
        for round in 0..300 {
            let mut stream = server.tcp();
            stream.write_all(burst.as_bytes()).expect("send");
            drop(stream);
            if round % 20 == 0 {
                // New connections get the tokens of those that are gone, and none of their replies.
                assert_eq!(
                    server.connect().ask(b"mg a\r\nmg b\r\nmg c\r\n"),
                    b"EN\r\nEN\r\nEN\r\n"
                );
            }
        }
        let begun = Instant::now();
        while client.statistic("curr_connections") > 1 {
            assert!(begun.elapsed() < Duration::from_secs(60));
        }
        let held = client.statistic("read_buf_bytes") - client.statistic("read_buf_bytes_free");
        assert!(held < 64 << 10, "{held} bytes are held");
        assert_eq!(
            client.ask(b"get k99\r\n"),
            b"VALUE k99 0 2\r\nab\r\nEND\r\n"
        );
    }
}

/// What a connection sent before `flush_all` is gone, wherever it was stored.
#[test]
fn a_flush_comes_after_what_was_sent_before() {
    for mode in DIVIDED {
        let server = Server::start(&["-t", WORKERS, "--access", mode]);
        let mut client = server.connect();
        let sets: String = (0..20)
            .map(|number| format!("set k{number} 0 0 1\r\nx\r\n"))
            .collect();
        let gets: String = (0..20).map(|number| format!("get k{number}\r\n")).collect();
        let expected = [
            "STORED\r\n".repeat(20),
            "OK\r\n".into(),
            "END\r\n".repeat(20),
        ]
        .concat();
        for _ in 0..50 {
            let burst = format!("{sets}flush_all\r\n{gets}");
            assert_eq!(client.ask(burst.as_bytes()), expected.as_bytes());
        }
    }
}
