//! Clients that send half of what they announced, or do not read what they asked for: all of them together take no
//! more memory than they may.

use crate::authority::TlsServer;
use crate::support::{Client, Server, resident_bytes, shown, tcp};
use rustix::net::sockopt;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

const MIB: usize = 1 << 20;

/// What clients may have, and what a server has beside them and its items, in bytes.
const LIMIT: usize = 64 * MIB;
const BESIDE: usize = 150 * MIB;

const REFUSED: &str = "SERVER_ERROR out of memory reading request\r\n";

fn statistic(client: &mut Client, section: &str, name: &str) -> usize {
    let answer = client.ask(format!("stats{section}\r\n").as_bytes());
    let answer = String::from_utf8(answer).expect("text");
    let line = answer
        .lines()
        .find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
    let value = line.and_then(|value| value.parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in {answer}"))
}

/// Assert that clients have no more than they may, and say how much that is.
fn held(server: &Server, client: &mut Client) -> usize {
    let [held, free] =
        ["read_buf_bytes", "read_buf_bytes_free"].map(|name| statistic(client, "", name));
    assert!(held <= LIMIT, "{held}");
    let resident = resident_bytes(server.pid());
    assert!(resident < LIMIT + BESIDE, "{} MiB", resident / MIB);
    held.saturating_sub(free)
}

/// What comes until the server closes; nothing of it where the kernel says that it was closed with bytes unread.
fn last_words(stream: &mut TcpStream) -> String {
    let mut words = Vec::new();
    match stream.read_to_end(&mut words) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error}"),
    }
    String::from_utf8(words).expect("text")
}

fn start(more: &[&str]) -> Server {
    let arguments = ["-m", "64", "-I", "32m", "-o", "read_buf_mem_limit=64"];
    Server::start(&[&arguments[..], more].concat())
}

/// A thousand clients that send half of a value as long as any may be, and then nothing.
#[test]
fn half_sent_values_are_within_bounds() {
    for kind in [
        &["-t", "1"][..],
        &["-t", "3"],
        &["-t", "2", "--access", "erew", "-I", "20m"],
    ] {
        let server = start(kind);
        let mut client = server.connect();
        let half = vec![b'v'; 300_000];
        let mut streams: Vec<_> = (0..1000).map(|_| server.tcp()).collect();
        let (mut refused, mut words) = (0, 0);
        for (number, stream) in streams.iter_mut().enumerate() {
            let line = format!("set key{number} 0 0 {}\r\n", 16 * MIB);
            let sent = stream
                .write_all(line.as_bytes())
                .and_then(|()| stream.write_all(&half));
            if sent.is_err() {
                refused += 1;
            }
        }
        // All that was sent was read, or refused: what comes next is answered behind it.
        while statistic(&mut client, "", "read_buf_oom") == 0 {}
        let mut open = 0;
        for stream in &mut streams {
            // One that is still open has nothing to say.
            stream.set_nonblocking(true).expect("an option");
            match stream.read(&mut [0; 100]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => open += 1,
                Ok(REFUSED_BYTES) => words += 1,
                Ok(_) | Err(_) => refused += 1,
            }
        }
        assert!(held(&server, &mut client) > LIMIT / 2);
        assert!(open < 1000 && words > 0, "{open} {words} {refused}");
        // Who asks for little is served all the while, and all of it is back when they are gone.
        assert_eq!(
            client.ask(b"set a 0 0 1\r\nx\r\nget a\r\n"),
            b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n"
        );
        drop(streams);
        let begun = Instant::now();
        while held(&server, &mut client) > 8 << 10 {
            assert!(begun.elapsed().as_secs() < 60);
        }
    }
}
const REFUSED_BYTES: usize = REFUSED.len();

/// Hundreds of clients that ask for a value that is longer than what the kernel takes, and read nothing of it.
#[test]
fn unread_replies_are_within_bounds() {
    for kind in [&["-t", "1"][..], &["-t", "3"]] {
        let server = start(kind);
        let mut client = server.connect();
        let value = vec![b'v'; 16 * MIB];
        client.send(format!("set big 0 0 {}\r\n", value.len()).as_bytes());
        client.send(&value);
        assert_eq!(client.ask(b"\r\n"), b"STORED\r\n");
        let mut streams = Vec::new();
        for _ in 0..300 {
            let mut stream = server.tcp();
            sockopt::set_socket_recv_buffer_size(&stream, 4096).expect("an option");
            stream.write_all(b"get big\r\n").expect("send");
            streams.push(stream);
        }
        while statistic(&mut client, "", "cmd_get") < 300 {}
        let refused = statistic(&mut client, "", "response_obj_oom");
        let held_bytes = held(&server, &mut client);
        assert!(
            refused > 200 && held_bytes > LIMIT / 2,
            "{refused} {held_bytes}"
        );
        assert_eq!(client.ask(b"get a\r\n"), b"END\r\n");
        drop(streams);
        let begun = Instant::now();
        while held(&server, &mut client) > 8 << 10 {
            assert!(begun.elapsed().as_secs() < 60);
        }
        // There is memory for the next.
        assert_eq!(client.ask(b"get big\r\n").len(), value.len() + 29);
    }
}

#[test]
fn ten_thousand_halves_of_commands_are_held() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if limit.maximum.is_some_and(|most| most < 10_500) {
        eprintln!("skipped: a process may not have so many descriptors here");
        return;
    }
    let more = rustix::process::Rlimit {
        current: limit.maximum,
        ..limit
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, more).expect("descriptors");
    let server = start(&["-c", "12000", "-t", "2"]);
    let mut client = server.connect();
    let mut streams: Vec<_> = (0..10_000).map(|_| tcp(server.address())).collect();
    for (number, stream) in streams.iter_mut().enumerate() {
        let text = format!("set key{number} 0 0 5\r\nval");
        let halves = [text.as_bytes(), b"get some", &[0x80, 1, 0, 4]];
        stream.write_all(halves[number % 3]).expect("send");
    }
    assert!(held(&server, &mut client) < 16 * MIB);
    for (number, stream) in streams.iter_mut().enumerate() {
        match number % 3 {
            0 => stream.write_all(b"ue\r\n").expect("send"),
            1 => stream.write_all(b"thing\r\n").expect("send"),
            _ => continue,
        }
        let mut answer = [0; 8];
        let expected: &[u8] = if number % 3 == 0 {
            b"STORED\r\n"
        } else {
            b"END\r\n"
        };
        let answer = &mut answer[..expected.len()];
        stream.read_exact(answer).expect("an answer");
        assert_eq!(answer, expected);
    }
    assert_eq!(statistic(&mut client, "", "read_buf_oom"), 0);
}

/// Each protocol has its words for it, and TLS carries them.
#[test]
fn a_client_is_told_before_it_is_closed() {
    let arguments = ["-o", "read_buf_mem_limit=1", "-I", "8m", "-m", "64"];
    let server = Server::start(&arguments);
    let value = vec![b'v'; 4 * MIB];
    let line = format!("get a\r\nset key 0 0 {}\r\n", value.len());
    let mut stream = server.tcp();
    stream.write_all(line.as_bytes()).expect("send");
    // It may be closed before all of it is sent.
    _ = stream.write_all(&value[..2 * MIB]);
    let words = last_words(&mut stream);
    assert!(format!("END\r\n{REFUSED}").starts_with(&words), "{words}");

    let mut header = vec![0x80, 1, 0, 3, 8, 0, 0, 0];
    header.extend((11 + value.len() as u32).to_be_bytes());
    header.extend([0; 12 + 8]);
    header.extend(b"key");
    let mut stream = server.tcp();
    stream.write_all(&header).expect("send");
    _ = stream.write_all(&value[..2 * MIB]);
    let mut answer = Vec::new();
    // Where it was closed with bytes unread, the kernel may throw the answer away.
    _ = stream.read_to_end(&mut answer);
    if !answer.is_empty() {
        assert_eq!(
            (answer[0], &answer[6..8]),
            (0x81, &[0, 0x82][..]),
            "{}",
            shown(&answer)
        );
        assert_eq!(&answer[24..], b"out of memory reading request");
    }
    let mut client = server.connect();
    assert_eq!(statistic(&mut client, "", "read_buf_oom"), 2);
    assert_eq!(
        statistic(&mut client, " settings", "read_buf_mem_limit"),
        MIB
    );

    let tls = TlsServer::start("client-memory", &arguments);
    let mut wire = tls.wire(&tls.authority.client(&crate::authority::BOTH_VERSIONS, None));
    wire.write_all(line.as_bytes()).expect("send");
    _ = wire.write_all(&value[..2 * MIB]);
    let mut client = tls.connect();
    while statistic(&mut client, "", "read_buf_oom") == 0 {}
    assert_eq!(client.ask(b"get a\r\n"), b"END\r\n");
}

/// Where none is asked for, there is one that lets each client send and read the largest items.
#[test]
fn there_is_a_limit_unless_it_is_taken_away() {
    for (arguments, mebibytes) in [
        (&["-m", "64"][..], 64),
        (&["-m", "1024"], 256),
        (&["-m", "200", "-I", "50m"], 150),
        (&["-m", "64", "-o", "read_buf_mem_limit=7"], 7),
        (&["-m", "64", "-o", "read_buf_mem_limit=0"], 0),
    ] {
        let server = Server::start(arguments);
        let limit = statistic(&mut server.connect(), " settings", "read_buf_mem_limit");
        assert_eq!(limit, mebibytes * MIB, "{arguments:?}");
    }
    let (status, _, message) = crate::support::run(&["-o", "read_buf_mem_limit=much"]);
    assert_eq!(status, Some(2));
    assert!(message.contains("read_buf_mem_limit=MIB"), "{message}");
}
