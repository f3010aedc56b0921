//! Streams over io_uring. Where the kernel or the process's rights do not allow it, tests say so and pass.

use net::{Completion, Endpoint, ListenOptions, Listener, Poller, Ring, SendMode, Stream, Waker};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

fn ring(buffers: u16, buffer_bytes: u32) -> Option<Ring> {
    let mut ring = new(buffers, buffer_bytes)?;
    ring.enable().expect("enable");
    Some(ring)
}

/// One that is not enabled.
fn new(buffers: u16, buffer_bytes: u32) -> Option<Ring> {
    match Ring::probe() {
        Ok(()) => Some(Ring::new(buffers, buffer_bytes).expect("a ring")),
        Err(why) => {
            eprintln!("skipped: no io_uring: {why}");
            None
        }
    }
}

/// A stream to give to a ring, and its peer.
fn pair() -> (Stream, TcpStream) {
    let any_port = Endpoint::Tcp(([127, 0, 0, 1], 0).into());
    let listener = Listener::bind(&any_port, ListenOptions::default()).expect("bind");
    let peer = TcpStream::connect(listener.endpoint().to_string()).expect("connect");
    peer.set_read_timeout(Some(PATIENCE)).expect("an option");
    peer.set_nodelay(true).expect("an option");
    let stream = listener.accept().expect("accept").expect("a connection");
    (stream, peer)
}

/// The same over a unix socket: there is room again only when the peer reads.
fn unix_pair(name: &str) -> (Stream, UnixStream) {
    let (path, listener) = unix_listener(name);
    let peer = UnixStream::connect(path).expect("connect");
    let stream = listener.accept().expect("accept").expect("a connection");
    (stream, peer)
}

fn unix_listener(name: &str) -> (PathBuf, Listener) {
    let path = std::env::temp_dir().join(format!("net-ring-{}-{name}.sock", std::process::id()));
    let endpoint = Endpoint::Unix(path.clone());
    let listener = Listener::bind(&endpoint, ListenOptions::default()).expect("bind");
    (path, listener)
}

/// The next completion, waited for.
fn next(ring: &mut Ring) -> Completion {
    loop {
        if let Some(completion) = ring.completion() {
            return completion;
        }
        ring.wait(Some(PATIENCE)).expect("wait");
    }
}

/// What is received until there are `count` bytes or the end, from one stream that does nothing else.
fn receive(ring: &mut Ring, count: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < count {
        match next(ring) {
            Completion::Received { received, .. } => {
                assert_eq!(ring.bytes(&received).len(), received.len());
                all.extend_from_slice(ring.bytes(&received));
                ring.give_back(received);
            }
            Completion::Ended { error: None, .. } => break,
            other => panic!("{other:?}"),
        }
    }
    all
}

/// Bytes that tell where they are.
fn pattern(count: usize) -> Vec<u8> {
    (0..count).map(|place| (place % 251) as u8).collect()
}

#[test]
fn bytes_pass_both_ways_and_the_end_is_seen() {
    let Some(mut ring) = ring(4, 1024) else {
        return;
    };
    let (stream, mut peer) = pair();
    let token = ring.add(stream);
    ring.receive(token);
    for round in 0..3 {
        let said = format!("question {round}");
        peer.write_all(said.as_bytes()).expect("write");
        assert_eq!(receive(&mut ring, said.len()), said.as_bytes());
        let answer = format!("--answer {round}").into_bytes();
        ring.send(token, answer, 2, SendMode::Immediate)
            .expect("idle");
        match next(&mut ring) {
            Completion::Sent { sent, bytes, .. } => {
                assert_eq!(sent.expect("sent"), bytes.len() - 2);
            }
            other => panic!("{other:?}"),
        }
        let mut heard = [0; 8];
        peer.read_exact(&mut heard).expect("read");
        assert_eq!(heard, format!("answer {round}").as_bytes());
    }
    peer.shutdown(Shutdown::Write).expect("shutdown");
    assert!(matches!(
        next(&mut ring),
        Completion::Ended { error: None, .. }
    ));
    ring.remove(token);
    let Completion::Removed {
        token: whose,
        stream,
    } = next(&mut ring)
    else {
        panic!("not removed");
    };
    assert_eq!(whose, token);
    // It is ours again, and still open.
    assert_eq!(stream.write(b"bye").expect("write"), 3);
    drop(stream);
    let mut rest = String::new();
    peer.read_to_string(&mut rest).expect("read");
    assert_eq!(rest, "bye");
}

#[test]
fn a_ring_that_runs_out_of_buffers_goes_on_when_it_gets_them_back() {
    let Some(mut ring) = ring(2, 64) else { return };
    let (stream, mut peer) = pair();
    let token = ring.add(stream);
    ring.receive(token);
    let said = pattern(300_000);
    std::thread::scope(|scope| {
        scope.spawn(|| peer.write_all(&said).expect("write"));
        assert!(receive(&mut ring, said.len()) == said);
    });
}

#[test]
fn where_there_is_no_room_it_is_said_or_waited_for() {
    let Some(mut ring) = ring(2, 64) else { return };
    let (stream, mut peer) = unix_pair("room");
    let token = ring.add(stream);
    let all = pattern(50_000_000);
    // More than both sockets hold.
    ring.send(token, all.clone(), 0, SendMode::Immediate)
        .expect("idle");
    assert!(ring.send(token, vec![1], 0, SendMode::Immediate).is_err());
    let mut at = match next(&mut ring) {
        Completion::Sent { sent, .. } => sent.expect("sent"),
        other => panic!("{other:?}"),
    };
    assert!(0 < at && at < all.len(), "{at} bytes");
    ring.send(token, vec![1], 0, SendMode::Immediate)
        .expect("idle");
    match next(&mut ring) {
        Completion::Sent { sent, bytes, .. } => {
            assert_eq!((sent.expect("sent"), bytes), (0, vec![1]))
        }
        other => panic!("{other:?}"),
    }
    ring.send(token, all.clone(), at, SendMode::Patient)
        .expect("idle");
    ring.wait(Some(Duration::ZERO)).expect("wait");
    assert!(ring.completion().is_none());
    let mut heard = vec![0; all.len()];
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| peer.read_exact(&mut heard).expect("read"));
        while at < all.len() {
            let Completion::Sent { bytes, sent, .. } = next(&mut ring) else {
                panic!("not sent");
            };
            let sent = sent.expect("sent");
            assert!(sent > 0);
            at += sent;
            if at < all.len() {
                ring.send(token, bytes, at, SendMode::Patient)
                    .expect("idle");
            }
        }
        reader.join().expect("read");
    });
    assert!(heard == all);
}

/// Whatever the kernel did meanwhile, only a completion says that it is done with the bytes.
#[test]
fn what_is_sent_is_the_kernel_s_until_its_completion() {
    let Some(mut ring) = ring(2, 64) else { return };
    for mode in [SendMode::Immediate, SendMode::Patient] {
        let (stream, mut peer) = pair();
        let token = ring.add(stream);
        for round in 0..3 {
            ring.send(token, b"bytes".to_vec(), 0, mode).expect("idle");
            if round == 0 {
                ring.submit().expect("submit");
            } else {
                ring.wait(Some(PATIENCE)).expect("wait");
            }
            assert!(ring.idle_stream(token).is_none());
            assert_eq!(
                ring.send(token, b"more".to_vec(), 0, mode),
                Err(b"more".to_vec())
            );
            let Completion::Sent { bytes, sent, .. } = next(&mut ring) else {
                panic!("not sent");
            };
            assert_eq!((&bytes[..], sent.expect("sent")), (&b"bytes"[..], 5));
            assert!(ring.idle_stream(token).is_some());
            assert!(ring.completion().is_none());
        }
        let mut heard = [0; 15];
        peer.read_exact(&mut heard).expect("read");
        assert_eq!(&heard, b"bytesbytesbytes");
        // One that is removed meanwhile.
        ring.receive(token);
        ring.send(token, b"last words".to_vec(), 0, mode)
            .expect("idle");
        ring.remove(token);
        assert!(matches!(next(&mut ring), Completion::Removed { .. }));
        let mut rest = String::new();
        peer.read_to_string(&mut rest).expect("read");
        assert_eq!(rest, "last words");
    }
    let (stream, peer) = unix_pair("immediate");
    let token = ring.add(stream);
    // Twice: there is room for some of it, then for nothing.
    let much = pattern(50_000_000);
    for is_full in [false, true] {
        ring.send(token, much.clone(), 0, SendMode::Immediate)
            .expect("idle");
        let Completion::Sent { bytes, sent, .. } = next(&mut ring) else {
            panic!("not sent");
        };
        assert!(bytes == much);
        assert_eq!(sent.expect("sent") == 0, is_full);
    }
    drop(peer);
    ring.send(token, b"gone".to_vec(), 0, SendMode::Immediate)
        .expect("idle");
    let Completion::Sent { sent, .. } = next(&mut ring) else {
        panic!("not sent");
    };
    sent.expect_err("nobody is there");
}

#[test]
fn a_stream_that_pauses_is_read_from_no_more_until_it_is_to_receive() {
    let Some(mut ring) = ring(8, 64) else { return };
    let (stream, mut peer) = pair();
    let token = ring.add(stream);
    ring.receive(token);
    peer.write_all(b"one").expect("write");
    assert_eq!(receive(&mut ring, 3), b"one");
    ring.pause(token);
    ring.submit().expect("submit");
    peer.write_all(b"two").expect("write");
    ring.wait(Some(Duration::ZERO)).expect("wait");
    assert!(ring.completion().is_none());
    // Before the end of the first request was seen, and after.
    ring.receive(token);
    assert_eq!(receive(&mut ring, 3), b"two");
    ring.pause(token);
    ring.receive(token);
    peer.write_all(b"three").expect("write");
    assert_eq!(receive(&mut ring, 5), b"three");
}

#[test]
fn a_removed_stream_is_told_of_no_more_and_its_token_is_free_again() {
    let Some(mut ring) = ring(8, 64) else { return };
    let (stream, mut peer) = pair();
    let token = ring.add(stream);
    ring.receive(token);
    peer.write_all(b"unheard").expect("write");
    // Far more than there is room for: it waits.
    let much = vec![7; 50_000_000];
    ring.send(token, much, 1, SendMode::Immediate)
        .expect("idle");
    loop {
        match next(&mut ring) {
            Completion::Received { received, .. } => ring.give_back(received),
            Completion::Sent { sent, bytes, .. } => {
                assert!(sent.expect("sent") < bytes.len() - 1);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    ring.send(token, vec![7; 1000], 0, SendMode::Patient)
        .expect("idle");
    ring.submit().expect("submit");
    ring.remove(token);
    // Nothing can be asked of it any more.
    ring.receive(token);
    ring.remove(token);
    assert!(ring.idle_stream(token).is_none());
    assert!(ring.send(token, vec![1], 0, SendMode::Immediate).is_err());
    assert!(matches!(next(&mut ring), Completion::Removed { token: whose, .. } if whose == token));
    let (stream, mut peer) = pair();
    assert_eq!(ring.add(stream), token);
    ring.receive(token);
    peer.write_all(b"heard").expect("write");
    assert_eq!(receive(&mut ring, 5), b"heard");
    // A stream that does nothing is removed at once.
    let (stream, _peer) = pair();
    let idle = ring.add(stream);
    ring.remove(idle);
    assert!(matches!(next(&mut ring), Completion::Removed { .. }));
}

#[test]
fn a_ring_that_is_dropped_ends_what_it_does() {
    for elsewhere in [false, true] {
        let Some(mut ring) = ring(8, 64) else { return };
        let (stream, mut peer) = pair();
        let token = ring.add(stream);
        ring.receive(token);
        ring.send(token, vec![7; 50_000_000], 0, SendMode::Patient)
            .expect("idle");
        ring.wait(Some(PATIENCE)).expect("wait");
        if elsewhere {
            // The kernel lets no other thread use it: its memory is left alone then.
            std::thread::spawn(move || drop(ring)).join().expect("drop");
        } else {
            drop(ring);
            // The stream was the ring's, so it is closed.
            let mut rest = Vec::new();
            peer.read_to_end(&mut rest).expect("read");
            assert!(rest.iter().all(|&byte| byte == 7));
        }
    }
    // One that was never used.
    let Some(mut unused) = new(2, 64) else { return };
    let token = unused.add(pair().0);
    unused.receive(token);
    drop(unused);
}

#[test]
fn a_wake_ends_a_wait_once() {
    let Some(mut ring) = new(2, 64) else { return };
    let waker = Waker::for_ring(&mut ring).expect("a waker");
    // Made here, used there.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            ring.enable().expect("enable");
            for _ in 0..3 {
                assert!(matches!(next(&mut ring), Completion::Woken));
                waker.reset();
                ring.wait(Some(Duration::ZERO)).expect("wait");
                assert!(ring.completion().is_none());
                waker.wake();
            }
        });
        waker.wake();
        waiting.join().expect("wait");
    });
}

#[test]
fn a_wait_ends_when_its_time_is_over() {
    let Some(mut ring) = ring(2, 64) else { return };
    ring.wait(Some(Duration::from_millis(1))).expect("wait");
    assert!(ring.completion().is_none());
}

#[test]
fn more_requests_than_the_kernel_takes_at_a_time_are_done_too() {
    let Some(mut ring) = ring(64, 64) else { return };
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).expect("descriptors");
    let (path, listener) = unix_listener("many");
    let mut peers = Vec::new();
    for number in 0..1500_u32 {
        let mut peer = UnixStream::connect(&path).expect("connect");
        peer.write_all(&number.to_le_bytes()).expect("write");
        peers.push(peer);
        let token = ring.add(listener.accept().expect("accept").expect("a connection"));
        assert_eq!(token, u64::from(number));
        ring.receive(token);
        ring.send(token, b"welcome".to_vec(), 0, SendMode::Immediate)
            .expect("idle");
    }
    let (mut heard, mut sent) = (0, 0);
    while heard < peers.len() || sent < peers.len() {
        match next(&mut ring) {
            Completion::Received { token, received } => {
                assert_eq!(ring.bytes(&received), (token as u32).to_le_bytes());
                ring.give_back(received);
                heard += 1;
            }
            Completion::Sent { sent: done, .. } => {
                assert_eq!(done.expect("sent"), 7);
                sent += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    for token in 0..peers.len() as u64 {
        ring.send(token, b" and bye".to_vec(), 0, SendMode::Immediate)
            .expect("idle");
    }
    for _ in 0..peers.len() {
        assert!(matches!(next(&mut ring), Completion::Sent { .. }));
    }
    for token in 0..peers.len() as u64 {
        assert!(ring.idle_stream(token).is_some());
        ring.remove(token);
    }
    for _ in 0..peers.len() {
        assert!(matches!(next(&mut ring), Completion::Removed { .. }));
    }
    for peer in &mut peers {
        let mut rest = String::new();
        peer.read_to_string(&mut rest).expect("read");
        assert_eq!(rest, "welcome and bye");
    }
}

#[test]
fn what_one_ring_received_is_nothing_to_another() {
    let (Some(mut one), Some(mut other)) = (ring(2, 64), ring(2, 64)) else {
        return;
    };
    let (stream, mut peer) = pair();
    let token = one.add(stream);
    one.receive(token);
    peer.write_all(b"secret").expect("write");
    let Completion::Received { received, .. } = next(&mut one) else {
        panic!("nothing received");
    };
    assert_eq!(other.bytes(&received), b"");
    // Nor does it become the other's by being given to it.
    other.give_back(received);
    let (stream, mut peer) = pair();
    let token = other.add(stream);
    other.receive(token);
    let said = pattern(10_000);
    peer.write_all(&said).expect("write");
    assert!(receive(&mut other, said.len()) == said);
}

#[test]
fn a_stream_of_a_ring_may_be_written_to_and_a_reset_is_an_error() {
    let Some(mut ring) = ring(2, 64) else { return };
    let (stream, mut peer) = pair();
    let token = ring.add(stream);
    ring.receive(token);
    let stream = ring.idle_stream(token).expect("it is there");
    assert_eq!(stream.write(b"direct").expect("write"), 6);
    let mut heard = [0; 6];
    peer.read_exact(&mut heard).expect("read");
    // Bytes that the peer has not read when it closes make that a reset.
    assert_eq!(stream.write(b"unread").expect("write"), 6);
    let mut events = net::Events::with_capacity(1);
    let poller = Poller::new().expect("epoll");
    poller
        .add(peer.as_fd(), 0, net::Interest::READ)
        .expect("add");
    poller.wait(&mut events, Some(PATIENCE)).expect("wait");
    drop(peer);
    match next(&mut ring) {
        Completion::Ended { error, .. } => {
            assert_eq!(error.expect("a reset").kind(), ErrorKind::ConnectionReset);
        }
        other => panic!("{other:?}"),
    }
}
