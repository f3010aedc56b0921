//! Clients over TLS that behave badly, or are many.

use crate::authority::{BOTH_VERSIONS, TlsServer};
use crate::support::{Client, resident_bytes, shown, tcp};
use rustls::{ClientConnection, version};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// All that comes until the server closes.
fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => said,
    }
}

/// What a client says first.
fn client_hello(tls: &TlsServer) -> Vec<u8> {
    let config = tls.authority.client(&BOTH_VERSIONS, None);
    let name = "cache.test".try_into().expect("a name");
    let mut client = ClientConnection::new(config, name).expect("a client");
    let mut hello = Vec::new();
    client.write_tls(&mut hello).expect("a hello");
    hello
}

#[test]
fn a_plain_client_is_turned_away() {
    let tls = TlsServer::start("plain", &[]);
    let mut stream = tcp(tls.server.address());
    stream.write_all(b"get a\r\n").expect("send");
    // A fatal alert: decode_error (RFC 8446, section 6.2).
    assert_eq!(shown(&rest(stream)), shown(&[21, 3, 3, 0, 2, 2, 50]));
    assert_eq!(tls.connect().statistic("ssl_handshake_errors"), 1);
}

#[test]
fn who_begins_and_says_no_more_is_let_go() {
    let tls = TlsServer::start("silent", &["-o", "ssl_handshake_timeout=1"]);
    let hello = client_hello(&tls);
    let mut served = tls.connect();
    let silent: Vec<_> = [0, 1, hello.len() / 2, hello.len()]
        .map(|length| {
            let mut stream = tcp(tls.server.address());
            stream.write_all(&hello[..length]).expect("send");
            (length, stream)
        })
        .into();
    for (length, stream) in silent {
        let said = rest(stream);
        assert_eq!(
            said.is_empty(),
            length < hello.len(),
            "{length}: {}",
            shown(&said)
        );
    }
    // One that dripped would have no more time; one that is done has all there is.
    assert_eq!(served.statistic("ssl_handshake_errors"), 4);
    assert_eq!(served.statistic("idle_kicks"), 0);
    assert_eq!(served.statistic("curr_connections"), 1);
}

#[test]
fn who_asks_for_nothing_is_let_go() {
    let tls = TlsServer::start("idle", &["-o", "idle_timeout=1"]);
    let mut idle = tls.wire(&tls.authority.client(&BOTH_VERSIONS, None));
    let mut byte = [0];
    // Closed without a word, or with one.
    assert!(matches!(idle.read(&mut byte), Ok(0) | Err(_)));
    assert_eq!(tls.connect().statistic("idle_kicks"), 1);
}

#[test]
fn nonsense_ends_the_one_connection() {
    let tls = TlsServer::start("nonsense", &["-v"]);
    let mut served = tls.connect();
    let hello = client_hello(&tls);
    // Numbers without any order, the same each time.
    let mut state = 1_u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize
    };
    for round in 0..200 {
        let mut stream = tcp(tls.server.address());
        let mut bytes = hello.clone();
        match round % 4 {
            // Within a hello.
            0 => {
                let at = random() % bytes.len();
                bytes[at] ^= 1 + (random() % 255) as u8;
            }
            // After a hello.
            1 => bytes.extend((0..2000).map(|_| random() as u8)),
            // A record of the longest that can be said, and more.
            2 => bytes = [&[22, 3, 1, 0xff, 0xff][..], &[1; 1 << 16]].concat(),
            _ => bytes = (0..500).map(|_| random() as u8).collect(),
        }
        // It may be closed before all of it is there.
        _ = stream.write_all(&bytes);
        _ = stream.shutdown(std::net::Shutdown::Write);
        rest(stream);
    }
    // In a session that was begun well.
    for one in BOTH_VERSIONS {
        let mut wire = tls.wire(&tls.authority.client(&[one], None));
        wire.write_all(b"mn\r\n").expect("send");
        let mut answer = [0; 4];
        wire.read_exact(&mut answer).expect("receive");
        let mut record = vec![23, 3, 3, 0, 100];
        record.resize(105, 7);
        wire.sock.write_all(&record).expect("send");
        // bad_record_mac, encrypted.
        assert!(!rest(wire.sock).is_empty());
    }
    assert_eq!(served.ask(b"get a\r\n"), b"END\r\n");
    assert_eq!(served.statistic("ssl_proto_errors"), 2);
    let refused = served.statistic("ssl_handshake_errors");
    assert!((100..=200).contains(&refused), "{refused}");
    assert_eq!(served.statistic("curr_connections"), 1);
    let mut server = tls.server;
    let line = server.message();
    assert!(
        line.starts_with("rackscope-cached: a client's TLS handshake failed: "),
        "{line}"
    );
}

#[test]
fn more_of_a_handshake_than_any_client_says_is_refused() {
    let tls = TlsServer::start("long", &[]);
    // The beginning of a hello of 60 kB, in records of 1 kB.
    let mut stream = tcp(tls.server.address());
    let mut hello = vec![1, 0, 0xea, 0x60];
    hello.resize(60_000, 0);
    for piece in hello.chunks(1000) {
        let mut record = vec![22, 3, 1, (piece.len() >> 8) as u8, piece.len() as u8];
        record.extend_from_slice(piece);
        if stream.write_all(&record).is_err() {
            break;
        }
    }
    rest(stream);
    assert_eq!(tls.connect().statistic("ssl_handshake_errors"), 1);
}

#[test]
fn a_flood_of_small_records_is_answered_as_it_comes() {
    let tls = TlsServer::start("flood", &[]);
    let mut other = tls.connect();
    let mut wire = tls.wire(&tls.authority.client(&[&version::TLS13], None));
    wire.conn.set_buffer_limit(None);
    let question = b"get abc\r\n";
    for _ in 0..3000 {
        for byte in question {
            // Each in a record of its own.
            wire.conn.writer().write_all(&[*byte]).expect("encrypt");
        }
    }
    wire.flush().expect("send");
    assert_eq!(other.ask(b"get a\r\n"), b"END\r\n");
    let mut answers = vec![0; 3000 * 5];
    wire.read_exact(&mut answers).expect("receive");
    assert_eq!(answers, b"END\r\n".repeat(3000));
}

#[test]
fn a_client_that_never_reads_is_held_back_and_stalls_nobody() {
    let tls = TlsServer::start("greedy", &[]);
    let mut other = tls.connect();
    let value = "v".repeat(100_000);
    other.ask(format!("set big 0 0 {}\r\n{value}\r\n", value.len()).as_bytes());
    let mut greedy = tls.wire(&tls.authority.client(&BOTH_VERSIONS, None));
    let count = 1000;
    greedy
        .write_all("get big\r\n".repeat(count).as_bytes())
        .expect("send");
    while other.statistic("conn_stalls") == 0 {}
    let resident = resident_bytes(tls.server.pid());
    assert!(
        resident < 60 << 20,
        "{resident} bytes for one client that does not read"
    );
    for _ in 0..100 {
        assert_eq!(other.ask(b"get none\r\n"), b"END\r\n");
    }
    // It gets every answer once it reads.
    let answer = format!("VALUE big 0 {}\r\n{value}\r\nEND\r\n", value.len());
    let mut received = vec![0; answer.len()];
    for number in 0..count {
        greedy.read_exact(&mut received).expect("receive");
        assert!(
            received == answer.as_bytes(),
            "answer {number}: {}",
            shown(&received)
        );
    }
    drop(greedy);
    while other.statistic("curr_connections") > 1 {}
}

#[test]
fn a_client_that_goes_away_within_a_value_leaves_nothing_behind() {
    let tls = TlsServer::start("half", &[]);
    let mut other = tls.connect();
    for value_bytes in [10, 100_000, 1_000_000] {
        let mut wire = tls.wire(&tls.authority.client(&BOTH_VERSIONS, None));
        write!(wire, "set half 0 0 {value_bytes}\r\n").expect("send");
        wire.write_all(&vec![b'x'; value_bytes / 2]).expect("send");
    }
    while other.statistic("curr_connections") > 1 {}
    assert_eq!(other.ask(b"get half\r\n"), b"END\r\n");
    assert_eq!(other.statistic("curr_items"), 0);
}

#[test]
fn an_idle_client_costs_little_more_than_its_keys() {
    let tls = TlsServer::start("idle-memory", &["-c", "1001"]);
    let config = tls.authority.client(&[&version::TLS13], None);
    let connect = || {
        let mut client = Client::over(tls.wire(&Arc::clone(&config)));
        assert_eq!(client.ask(b"get a\r\n"), b"END\r\n");
        client
    };
    let first = connect();
    let before = resident_bytes(tls.server.pid());
    let count = 500;
    let clients: Vec<_> = (0..count).map(|_| connect()).collect();
    let each = (resident_bytes(tls.server.pid()) - before) / count;
    assert!(each < 6 << 10, "{each} bytes a client");
    drop((first, clients));
}
