//! The binary protocol, against a running server.

use crate::support::Server;
use std::io::{Read, Write};
use std::net::TcpStream;

struct Client(TcpStream);

#[derive(Debug, PartialEq)]
struct Answer {
    opcode: u8,
    status: u16,
    extras: Vec<u8>,
    key: Vec<u8>,
    value: Vec<u8>,
    cas: u64,
}

impl Client {
    fn of(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address()).expect("connect");
        stream
            .set_read_timeout(Some(crate::support::PATIENCE))
            .expect("a timeout");
        Self(stream)
    }

    fn send(&mut self, opcode: u8, cas: u64, extras: &[u8], key: &[u8], value: &[u8]) {
        let mut bytes = vec![0x80, opcode];
        bytes.extend((key.len() as u16).to_be_bytes());
        bytes.extend([extras.len() as u8, 0, 0, 0]);
        bytes.extend(((extras.len() + key.len() + value.len()) as u32).to_be_bytes());
        bytes.extend(u32::from(opcode).to_be_bytes());
        bytes.extend(cas.to_be_bytes());
        self.0
            .write_all(&[&bytes, extras, key, value].concat())
            .expect("send");
    }

    fn answer(&mut self) -> Answer {
        let mut header = [0; 24];
        self.0.read_exact(&mut header).expect("an answer");
        assert_eq!(header[0], 0x81);
        assert_eq!(
            u32::from_be_bytes(header[12..16].try_into().expect("four")),
            u32::from(header[1]),
            "opaque"
        );
        let (extras, key) = (
            header[4] as usize,
            u16::from_be_bytes([header[2], header[3]]) as usize,
        );
        let mut body =
            vec![0; u32::from_be_bytes(header[8..12].try_into().expect("four")) as usize];
        self.0.read_exact(&mut body).expect("a body");
        Answer {
            opcode: header[1],
            status: u16::from_be_bytes([header[6], header[7]]),
            extras: body[..extras].to_vec(),
            key: body[extras..extras + key].to_vec(),
            value: body[extras + key..].to_vec(),
            cas: u64::from_be_bytes(header[16..].try_into().expect("eight")),
        }
    }

    fn ask(&mut self, opcode: u8, cas: u64, extras: &[u8], key: &[u8], value: &[u8]) -> Answer {
        self.send(opcode, cas, extras, key, value);
        self.answer()
    }

    fn set(&mut self, key: &[u8], value: &[u8], flags: u32) -> u64 {
        let answer = self.ask(0x01, 0, &[flags.to_be_bytes(), [0; 4]].concat(), key, value);
        assert_eq!(answer.status, 0);
        answer.cas
    }
}

const NOOP: u8 = 0x0a;

#[test]
fn items_are_stored_and_read() {
    let server = Server::start(&[]);
    let mut client = Client::of(&server);
    let cas = client.set(b"key", b"value", 0xabcd);
    let answer = client.ask(0x00, 0, &[], b"key", &[]);
    assert_eq!(
        (answer.status, &answer.value[..], answer.cas),
        (0, &b"value"[..], cas)
    );
    assert_eq!(answer.extras, 0xabcd_u32.to_be_bytes());
    assert_eq!(client.ask(0x0c, 0, &[], b"key", &[]).key, b"key");
    // Misses: in words, with the key, or not at all.
    let miss = client.ask(0x00, 0, &[], b"none", &[]);
    assert_eq!((miss.status, &miss.value[..]), (1, &b"Not found"[..]));
    let miss = client.ask(0x0c, 0, &[], b"none", &[]);
    assert_eq!(
        (miss.status, &miss.key[..], &miss.value[..]),
        (1, &b"none"[..], &b""[..])
    );
    client.send(0x09, 0, &[], b"none", &[]);
    client.send(0x09, 0, &[], b"key", &[]);
    client.send(NOOP, 0, &[], b"", &[]);
    assert_eq!(client.answer().opcode, 0x09);
    assert_eq!(client.answer().opcode, NOOP);
    // The text protocol sees the same item.
    let mut text = TcpStream::connect(server.address()).expect("connect");
    text.write_all(b"get key\r\n").expect("send");
    let mut answer = [0; 26];
    text.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"VALUE key 43981 5\r\nvalue\r\n");
}

#[test]
fn conditions_are_told_by_their_status() {
    let server = Server::start(&[]);
    let mut client = Client::of(&server);
    let cas = client.set(b"key", b"value", 0);
    let extras = [0; 8];
    for (opcode, cas, key, status) in [
        (0x02, 0, &b"key"[..], 2),
        (0x02, 0, b"new", 0),
        (0x03, 0, b"none", 1),
        (0x03, 0, b"key", 0),
        (0x01, cas + 999, b"key", 2),
        (0x01, 5, b"none", 1),
    ] {
        assert_eq!(
            client.ask(opcode, cas, &extras, key, b"other").status,
            status,
            "{opcode} {key:?}"
        );
    }
    for (opcode, key, status) in [
        (0x0e, &b"key"[..], 0),
        (0x0f, b"key", 0),
        (0x0e, b"none", 5),
    ] {
        assert_eq!(
            client.ask(opcode, 0, &[], key, b"+").status,
            status,
            "{opcode}"
        );
    }
    assert_eq!(client.ask(0x00, 0, &[], b"key", &[]).value, b"+other+");
    assert_eq!(client.ask(0x04, 12345, &[], b"key", &[]).status, 2);
    assert_eq!(client.ask(0x04, 0, &[], b"key", &[]).status, 0);
    assert_eq!(client.ask(0x04, 0, &[], b"key", &[]).status, 1);
}

#[test]
fn numbers_are_counted() {
    let server = Server::start(&[]);
    let mut client = Client::of(&server);
    let extras = |delta: u64, initial: u64, expiry: u32| {
        [
            &delta.to_be_bytes()[..],
            &initial.to_be_bytes(),
            &expiry.to_be_bytes(),
        ]
        .concat()
    };
    assert_eq!(
        client
            .ask(0x05, 0, &extras(1, 10, u32::MAX), b"n", &[])
            .status,
        1
    );
    let first = client.ask(0x05, 0, &extras(1, 10, 0), b"n", &[]);
    assert_eq!(
        (first.status, &first.value[..]),
        (0, &10_u64.to_be_bytes()[..])
    );
    assert_eq!(
        client.ask(0x05, 0, &extras(5, 0, 0), b"n", &[]).value,
        15_u64.to_be_bytes()
    );
    let last = client.ask(0x06, 0, &extras(50, 0, 0), b"n", &[]);
    assert_eq!(last.value, 0_u64.to_be_bytes());
    assert_eq!(
        client
            .ask(0x06, last.cas + 1, &extras(1, 0, 0), b"n", &[])
            .status,
        2
    );
    client.set(b"word", b"word", 0);
    assert_eq!(
        client.ask(0x05, 0, &extras(1, 0, 0), b"word", &[]).status,
        6
    );
}

#[test]
fn the_rest_of_the_commands_answer_as_they_should() {
    let server = Server::start(&[]);
    let mut client = Client::of(&server);
    assert!(client.ask(0x0b, 0, &[], b"", &[]).value.starts_with(b"1."));
    client.set(b"key", b"value", 7);
    let touched = client.ask(0x1c, 0, &100_u32.to_be_bytes(), b"key", &[]);
    assert_eq!(
        (touched.status, &touched.extras[..], &touched.value[..]),
        (0, &[0, 0, 0, 7][..], &b""[..])
    );
    assert_eq!(
        client
            .ask(0x1d, 0, &100_u32.to_be_bytes(), b"key", &[])
            .value,
        b"value"
    );
    let mut names = Vec::new();
    client.send(0x10, 0, &[], b"", &[]);
    loop {
        let statistic = client.answer();
        if statistic.key.is_empty() {
            break;
        }
        names.push(String::from_utf8(statistic.key).expect("text"));
    }
    assert!(names.iter().any(|name| name == "curr_items"), "{names:?}");
    assert_eq!(client.ask(0x10, 0, &[], b"nonsense", &[]).status, 1);
    assert_eq!(client.ask(0x08, 0, &[], b"", &[]).status, 0);
    assert_eq!(client.ask(0x00, 0, &[], b"key", &[]).status, 1);
    // Not known, with a body, which is skipped.
    assert_eq!(client.ask(0x77, 0, &[1], b"key", b"value").status, 0x81);
    assert_eq!(client.ask(NOOP, 0, &[], b"", &[]).status, 0);
    // Too large: told, skipped, and what was there is gone.
    client.set(b"big", b"small", 0);
    assert_eq!(
        client
            .ask(0x01, 0, &[0; 8], b"big", &vec![b'v'; 2 << 20])
            .status,
        3
    );
    assert_eq!(client.ask(0x00, 0, &[], b"big", &[]).status, 1);
    assert_eq!(client.ask(0x07, 0, &[], b"", &[]).status, 0);
    assert_eq!(client.0.read(&mut [0; 1]).expect("the end"), 0);
}

#[test]
fn what_makes_no_sense_ends_the_connection() {
    let server = Server::start(&[]);
    for (opcode, extras, key) in [
        (0x00, &[0; 4][..], &b"key"[..]),
        (0x01, &[], b"key"),
        (0x04, &[], b""),
    ] {
        let mut client = Client::of(&server);
        assert_eq!(client.ask(opcode, 0, extras, key, b"").status, 4);
        assert_eq!(client.0.read(&mut [0; 1]).expect("the end"), 0);
    }
    let mut client = Client::of(&server);
    client.set(b"key", b"value", 0);
    client
        .0
        .write_all(b"get key with no magic at all\r\n")
        .expect("send");
    assert_eq!(client.0.read(&mut [0; 1]).expect("the end"), 0);
}

/// The text protocol has no such keys, but the two share the items.
#[test]
fn a_key_that_looks_like_an_answer_is_told_encoded() {
    let server = Server::start(&[]);
    let key = b"a b\r\nSTORED";
    let mut client = Client::of(&server);
    client.send(0x01, 0, &[0; 8], key, b"x");
    assert_eq!(client.answer().status, 0);
    let told = server
        .connect()
        .ask(b"mg YSBiDQpTVE9SRUQ= b k v\r\nme YSBiDQpTVE9SRUQ= b\r\n");
    let told = String::from_utf8(told).expect("text");
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[..2], ["VA 1 kYSBiDQpTVE9SRUQ= b", "x"]);
    assert!(
        lines[2].starts_with("ME YSBiDQpTVE9SRUQ= exp=-1 "),
        "{told}"
    );
    assert_eq!(lines.len(), 3);
}

#[test]
fn deletes_are_counted_by_what_they_found() {
    let server = Server::start(&[]);
    let mut client = Client::of(&server);
    let cas = client.set(b"k", b"v", 0);
    assert_eq!(client.ask(0x04, cas + 1, b"", b"k", b"").status, 2);
    assert_eq!(client.ask(0x04, cas, b"", b"k", b"").status, 0);
    // Two that are not there, and one that was another by then, which is neither a hit nor a miss.
    assert_eq!(client.ask(0x04, 0, b"", b"k", b"").status, 1);
    assert_eq!(client.ask(0x04, 0, b"", b"k", b"").status, 1);
    let mut asking = server.connect();
    assert_eq!(asking.statistic("delete_hits"), 1);
    assert_eq!(asking.statistic("delete_misses"), 2);
}
