//! What has arrived before the server looks is carried out to its end, though nothing more comes that would wake it.

use cached::options::Options;
use cached::simulated_server::{ForwardLimits, SimulatedServer};
use mica::Config;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

/// More than a server reads at once, and less than a socket holds.
const BYTES: usize = 150_000;

/// Turns in which nothing more comes.
const TURNS: usize = 50;

fn server() -> SimulatedServer {
    let layout = Config::for_log_bytes(16 << 20);
    let server = SimulatedServer::start(
        &Options::default(),
        layout,
        1,
        ForwardLimits::default(),
        None,
    );
    server.expect("a server of one worker")
}

/// A client that was let in.
fn client(server: &mut SimulatedServer) -> UnixStream {
    let client = server.connect(0, None, None).expect("connect");
    client.set_nonblocking(true).expect("a socket");
    server.turn(0).expect("a turn");
    client
}

/// What a client gets, and whether it was closed then, if all that it sends is there before the server looks.
fn replies(server: &mut SimulatedServer, mut client: &UnixStream, sent: &[u8]) -> (Vec<u8>, bool) {
    client.write_all(sent).expect("a socket holds it all");
    let mut received = Vec::new();
    for _ in 0..TURNS {
        server.turn(0).expect("a turn");
        match client.read_to_end(&mut received) {
            Ok(_) => return (received, true),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    (received, false)
}

#[test]
fn a_burst_longer_than_what_is_read_at_once() {
    let mut server = server();
    let client = client(&mut server);
    let (received, is_closed) = replies(&mut server, &client, &b"mn\r\n".repeat(BYTES / 4));
    assert_eq!(received.len(), BYTES, "as long as the commands");
    assert!(!is_closed);
}

#[test]
fn a_value_longer_than_what_is_read_at_once() {
    let mut server = server();
    // Of lengths that fill the room which is made for them, or not.
    for bytes in (BYTES - 3..BYTES).chain([64 << 10, 96 << 10, 128 << 10]) {
        let client = client(&mut server);
        let value = "v".repeat(bytes);
        let set = format!("set key 0 0 {bytes}\r\n{value}\r\nget key\r\n");
        let (received, _) = replies(&mut server, &client, set.as_bytes());
        let expected = format!("STORED\r\nVALUE key 0 {bytes}\r\n{value}\r\nEND\r\n");
        assert!(received == expected.as_bytes(), "{bytes} bytes");
    }
}

#[test]
fn the_last_of_a_client_that_sends_no_more() {
    let mut server = server();
    for sent in [&b"mn\r\n"[..], &b"mn\r\nset a 0 0 9\r\nabc"[..], &b""[..]] {
        let mut client = client(&mut server);
        client.write_all(sent).expect("send");
        client.shutdown(Shutdown::Write).expect("shut down");
        let (received, is_closed) = replies(&mut server, &client, b"");
        assert!(is_closed, "{sent:?}");
        let expected: &[u8] = if sent.is_empty() { b"" } else { b"MN\r\n" };
        assert_eq!(received, expected);
    }
    assert_eq!(server.held().0, 0, "nothing is held of what was begun");
}

/// What waited for replies to be taken is carried out once they are.
#[test]
fn commands_behind_replies_that_were_not_taken() {
    let mut server = server();
    let mut client = client(&mut server);
    let value = "v".repeat(60_000);
    let set = format!("set key 0 0 60000\r\n{value}\r\n");
    assert_eq!(
        replies(&mut server, &client, set.as_bytes()).0,
        b"STORED\r\n"
    );
    client.write_all(&b"get key\r\n".repeat(100)).expect("send");
    for _ in 0..TURNS {
        server.turn(0).expect("a turn");
    }
    // These come while the server waits for the socket to take what is before them.
    client.write_all(b"mn\r\n").expect("send");
    let mut received = Vec::new();
    for _ in 0..10 * TURNS {
        match client.read_to_end(&mut received) {
            Ok(_) => panic!("closed"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        server.turn(0).expect("a turn");
    }
    let one = format!("VALUE key 0 60000\r\n{value}\r\nEND\r\n");
    assert_eq!(received.len(), 100 * one.len() + b"MN\r\n".len());
    assert!(received.ends_with(b"END\r\nMN\r\n"));
}
