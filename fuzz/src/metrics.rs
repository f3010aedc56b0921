//! What the cache engine answers to whoever asks for its metrics over HTTP.

use cached::control::server::Server;
use cached::options::Options;
use rustix::net::sockopt;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

/// Longer than it takes a server that works.
const PATIENCE: Duration = Duration::from_secs(8);

/// Every client that says all that it has to say is answered, in HTTP, and told the metrics where it asked for them.
pub fn run(data: &[u8]) {
    static SERVER: OnceLock<SocketAddr> = OnceLock::new();
    let address = SERVER.get_or_init(|| {
        let options = Options {
            port: 0,
            memory_mebibytes: 1,
            metrics: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            ..Options::default()
        };
        let server = Server::start(&options).expect("a server");
        let address = server.metrics().expect("an address");
        // It is there until the process ends.
        std::mem::forget(server);
        address
    });
    let mut client = TcpStream::connect(address).expect("a connection");
    client.set_read_timeout(Some(PATIENCE)).expect("an option");
    // Many connections a second: none of them is to keep its port.
    sockopt::set_socket_linger(&client, Some(Duration::ZERO)).expect("an option");
    // It may hang up when it has read enough.
    let is_sent = client.write_all(data).is_ok() && client.shutdown(Shutdown::Write).is_ok();
    let mut answer = Vec::new();
    let is_read = client.read_to_end(&mut answer).is_ok();
    // More than a head is not read to its end, which resets the connection.
    if data.len() >= 1 << 10 && !(is_sent && is_read) {
        return;
    }
    let answer = String::from_utf8(answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let length = head
        .split_once("Content-Length: ")
        .map(|(_, length)| length.parse());
    assert_eq!(length, Some(Ok(body.len())), "{head}");
    let first = String::from_utf8_lossy(data);
    let mut words = first
        .lines()
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace();
    let status = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => "HTTP/1.0 200 OK\r\n",
        (Some("GET"), Some(_)) => "HTTP/1.0 404 ",
        _ => "HTTP/1.0 400 ",
    };
    assert!(
        head.starts_with(status),
        "{head} to {}",
        data.escape_ascii()
    );
    assert!(!status.contains("200") || body.contains("rackscope_cached_uptime"));
}
