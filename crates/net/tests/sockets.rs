//! Streams and listeners over both kinds of socket.
use net::{Endpoint, Error, Events, Interest, ListenOptions, Listener, Poller, Stream};
use std::io::{ErrorKind, IoSlice};
use std::path::PathBuf;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);

fn any_port() -> Endpoint {
    Endpoint::Tcp(([127, 0, 0, 1], 0).into())
}

fn socket_path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("net-{}-{name}.sock", std::process::id()))
}

fn pair(endpoint: &Endpoint) -> (Listener, Stream, Stream) {
    let listener = Listener::bind(endpoint, ListenOptions::default()).expect("bind");
    let client = Stream::connect(listener.endpoint(), PATIENCE).expect("connect");
    let mut events = Events::with_capacity(1);
    let poller = Poller::new().expect("epoll");
    poller.add(&listener, 0, Interest::READ).expect("add");
    assert_eq!(
        poller
            .wait(&mut events, Some(PATIENCE))
            .expect("wait")
            .len(),
        1
    );
    let server = listener.accept().expect("accept").expect("a connection");
    (listener, client, server)
}

#[test]
fn bytes_pass_both_ways_and_the_end_is_seen() {
    for endpoint in [any_port(), Endpoint::Unix(socket_path("bytes"))] {
        let (listener, client, server) = pair(&endpoint);
        assert!(listener.accept().expect("accept").is_none());
        let mut buffer = [0; 64];
        let nothing = client.read(&mut buffer).expect_err("nothing sent yet");
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock);

        let slices = [
            IoSlice::new(b"one "),
            IoSlice::new(b""),
            IoSlice::new(b"two"),
        ];
        assert_eq!(client.write_vectored(&slices).expect("write"), 7);
        let mut events = Events::with_capacity(1);
        let poller = Poller::new().expect("epoll");
        poller.add(&server, 1, Interest::READ).expect("add");
        poller.wait(&mut events, Some(PATIENCE)).expect("wait");
        assert_eq!(server.read(&mut buffer).expect("read"), 7);
        assert_eq!(&buffer[..7], b"one two");

        rustix::net::shutdown(&client, rustix::net::Shutdown::Write).expect("shutdown");
        poller.wait(&mut events, Some(PATIENCE)).expect("wait");
        assert_eq!(server.read(&mut buffer).expect("read"), 0);
        assert_eq!(server.write(b"bye").expect("write"), 3);
    }
}

#[test]
fn a_full_peer_blocks_and_a_gone_peer_is_an_error_not_a_signal() {
    let (_listener, client, server) = pair(&any_port());
    let chunk = [7; 65_536];
    let full = loop {
        if let Err(error) = client.write(&chunk) {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    drop(server);
    let gone = loop {
        match client.write(&chunk) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(error) => break error,
            Ok(_) => {}
        }
    };
    assert!(
        matches!(
            gone.kind(),
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
        ),
        "{gone}"
    );
}

#[test]
fn connecting_where_nobody_listens_names_the_place() {
    let listener = Listener::bind(&any_port(), ListenOptions::default()).expect("bind");
    let closed = listener.endpoint().clone();
    drop(listener);
    let message = Stream::connect(&closed, PATIENCE)
        .expect_err("closed")
        .to_string();
    assert!(
        message.starts_with(&format!("cannot connect to {closed}: ")),
        "{message}"
    );

    let missing = Endpoint::Unix(socket_path("missing"));
    let message = Stream::connect(&missing, PATIENCE)
        .expect_err("missing")
        .to_string();
    assert!(message.contains("No such file"), "{message}");

    let long = Endpoint::Unix(PathBuf::from("/".repeat(200)));
    let message = Stream::connect(&long, PATIENCE)
        .expect_err("too long")
        .to_string();
    assert!(message.contains("too long"), "{message}");
}

#[test]
fn a_connection_that_is_not_answered_times_out() {
    let path = socket_path("backlog");
    let endpoint = Endpoint::Unix(path);
    let options = ListenOptions {
        backlog: 1,
        ..ListenOptions::default()
    };
    let _listener = Listener::bind(&endpoint, options).expect("bind");
    let mut waiting = Vec::new();
    let error = loop {
        match Stream::connect(&endpoint, Duration::from_millis(20)) {
            Ok(stream) => waiting.push(stream),
            Err(error) => break error,
        }
        assert!(waiting.len() < 100, "the backlog never filled");
    };
    assert!(matches!(error, Error::ConnectTimeout(..)), "{error}");
}

#[test]
fn an_address_in_use_is_refused_unless_shared() {
    let first = Listener::bind(&any_port(), ListenOptions::default()).expect("bind");
    let taken = first.endpoint().clone();
    let message = Listener::bind(&taken, ListenOptions::default())
        .expect_err("in use")
        .to_string();
    assert!(
        message.starts_with(&format!("cannot listen on {taken}: ")),
        "{message}"
    );

    let shared = ListenOptions {
        reuse_port: true,
        ..ListenOptions::default()
    };
    let first = Listener::bind(&any_port(), shared).expect("bind");
    Listener::bind(first.endpoint(), shared).expect("the port is shared");
}

#[test]
fn a_unix_socket_that_was_left_behind_is_replaced_but_not_one_in_use_nor_a_file() {
    let path = socket_path("left");
    let endpoint = Endpoint::Unix(path.clone());
    drop(std::os::unix::net::UnixListener::bind(&path).expect("bind"));
    assert!(path.exists());
    let listener = Listener::bind(&endpoint, ListenOptions::default()).expect("replaced");
    Listener::bind(&endpoint, ListenOptions::default()).expect_err("in use");
    Stream::connect(&endpoint, PATIENCE).expect("still the first");
    drop(listener);
    assert!(!path.exists());

    std::fs::write(&path, "precious").expect("write");
    Listener::bind(&endpoint, ListenOptions::default()).expect_err("not a socket");
    assert_eq!(std::fs::read(&path).expect("read"), b"precious");
    std::fs::remove_file(&path).expect("remove");
}

#[test]
fn names_resolve_or_say_why_not() {
    let found = Endpoint::resolve("127.0.0.1", 80).expect("an address");
    assert_eq!(found, [Endpoint::Tcp(([127, 0, 0, 1], 80).into())]);
    let message = Endpoint::resolve("no such host", 80)
        .expect_err("a bad name")
        .to_string();
    assert!(
        message.starts_with("cannot resolve host \"no such host\": "),
        "{message}"
    );
}
