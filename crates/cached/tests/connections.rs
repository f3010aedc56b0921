//! Who is connected.

use crate::authority::{BOTH_VERSIONS, TlsServer};
use crate::support::{Client, Folder, Server, tcp};
use std::collections::BTreeMap;
use std::io::Write;

/// What `stats conns` tells of each, by descriptor.
fn connections(client: &mut Client) -> Vec<BTreeMap<String, String>> {
    let answer = String::from_utf8(client.ask(b"stats conns\r\n")).expect("text");
    let mut found = BTreeMap::<String, BTreeMap<String, String>>::new();
    for line in answer.lines().filter(|&line| line != "END") {
        let line = line.strip_prefix("STAT ").expect("a statistic");
        let (name, value) = line.split_once(' ').expect("a value");
        let (descriptor, name) = name.split_once(':').expect("a descriptor");
        let before = found
            .entry(descriptor.to_owned())
            .or_default()
            .insert(name.to_owned(), value.to_owned());
        assert_eq!(before, None, "{answer}");
    }
    found.into_values().collect()
}

#[test]
fn each_is_told_with_where_it_is_and_what_it_waits_for() {
    for kind in [
        &["-t", "1"][..],
        &["-t", "3"],
        &["-t", "3", "--access", "erew"],
        &["-t", "2", "--access", "crew"],
    ] {
        let server = Server::start(kind);
        let mut client = server.connect();
        // Where each worker has keys of its own it goes from one to the other, and is one all the same.
        client.ask(
            b"set a 0 0 1\r\n1\r\nset b 0 0 1\r\n2\r\nset c 0 0 1\r\n3\r\nset d 0 0 1\r\n4\r\n",
        );
        let others: Vec<_> = (0..4).map(|_| server.tcp()).collect();
        let mut expected: Vec<_> = others
            .iter()
            .map(|stream| format!("tcp:{}", stream.local_addr().expect("an address")))
            .collect();
        expected.sort();
        // Connections are taken on in their time.
        let mut found = connections(&mut client);
        while found.len() < 5 {
            found = connections(&mut client);
        }
        assert_eq!(found.len(), 5);
        for one in &found {
            assert_eq!(one["listen_addr"], format!("tcp:{}", server.address()));
            assert_eq!(one["state"], "conn_read");
            let seconds: u32 = one["secs_since_last_cmd"].parse().expect("a number");
            assert!(seconds < 20, "{one:?}");
        }
        let mut told: Vec<_> = found.iter().map(|one| one["addr"].clone()).collect();
        told.retain(|address| expected.contains(address));
        told.sort();
        assert_eq!(told, expected);
        drop(others);
        while connections(&mut client).len() > 1 {}
    }
}

#[test]
fn one_that_does_not_read_is_told_apart() {
    let tls = TlsServer::start("writing", &["-p", "0", "-l", "127.0.0.1,notls:127.0.0.1:0"]);
    let [_, plain] = tls.server.addresses() else {
        panic!("{:?}", tls.server.addresses());
    };
    let mut client = Client::connect(plain);
    let value = "v".repeat(100_000);
    client.ask(format!("set big 0 0 {}\r\n{value}\r\n", value.len()).as_bytes());
    let questions = "get big\r\n".repeat(1000);
    let mut one = tcp(plain);
    one.write_all(questions.as_bytes()).expect("send");
    let mut other = tls.wire(&tls.authority.client(&BOTH_VERSIONS, None));
    other.write_all(questions.as_bytes()).expect("send");
    let addresses = [&one, &other.sock]
        .map(|stream| format!("tcp:{}", stream.local_addr().expect("an address")));
    loop {
        let found = connections(&mut client);
        let writing = found.iter().filter(|one| one["state"] == "conn_mwrite");
        let writing: Vec<_> = writing.map(|one| &one["addr"]).collect();
        if addresses.iter().all(|address| writing.contains(&address)) {
            assert_eq!((found.len(), writing.len()), (3, 2));
            break;
        }
    }
}

#[test]
fn a_unix_socket_has_no_peers() {
    let folder = Folder::new("conns");
    let path = folder.path("socket");
    let server = Server::start(&["-s", &path]);
    let mut client = server.connect();
    let found = connections(&mut client);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["addr"], format!("unix:{path}"));
    assert_eq!(found[0]["listen_addr"], format!("unix:{path}"));
}
