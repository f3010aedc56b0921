use super::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

#[test]
fn tokens_and_readiness_come_back() {
    let mut events = Events::with_capacity(8);
    let poller = Poller::new().expect("epoll");
    let (left, mut right) = UnixStream::pair().expect("pair");
    poller
        .add(&left, u64::MAX - 1, Interest::READ)
        .expect("add");
    assert!(
        poller
            .wait(&mut events, Some(Duration::ZERO))
            .expect("wait")
            .is_empty()
    );
    right.write_all(b"x").expect("write");
    for timeout in [None, Some(Duration::from_secs(5))] {
        let found = poller.wait(&mut events, timeout).expect("wait");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].token(), u64::MAX - 1);
        assert!(found[0].is_readable() && !found[0].is_writable() && !found[0].is_closed());
    }
    poller
        .modify(&left, 3, Interest::READ.or(Interest::WRITE))
        .expect("modify");
    let found = poller.wait(&mut events, None).expect("wait");
    assert_eq!(found[0].token(), 3);
    assert!(found[0].is_readable() && found[0].is_writable());
    poller.remove(&left).expect("remove");
    assert!(
        poller
            .wait(&mut events, Some(Duration::ZERO))
            .expect("wait")
            .is_empty()
    );
    drop(right);
    let mut rest = Vec::new();
    (&left).read_to_end(&mut rest).expect("read");
    assert_eq!(rest, b"x");
}

#[test]
fn a_closed_peer_is_readable_and_closed() {
    let mut events = Events::with_capacity(8);
    let poller = Poller::new().expect("epoll");
    let (left, right) = UnixStream::pair().expect("pair");
    poller.add(&left, 1, Interest::READ).expect("add");
    drop(right);
    let found = poller.wait(&mut events, None).expect("wait");
    assert!(found[0].is_readable() && found[0].is_read_closed() && found[0].is_closed());
}

#[test]
fn an_edge_is_told_once() {
    let mut events = Events::with_capacity(8);
    let poller = Poller::new().expect("epoll");
    let (left, mut right) = UnixStream::pair().expect("pair");
    poller
        .add(&left, 1, Interest::READ.or(Interest::EDGE))
        .expect("add");
    for _ in 0..2 {
        right.write_all(b"x").expect("write");
        assert_eq!(poller.wait(&mut events, None).expect("wait").len(), 1);
        assert!(
            poller
                .wait(&mut events, Some(Duration::ZERO))
                .expect("wait")
                .is_empty()
        );
    }
    right.shutdown(std::net::Shutdown::Write).expect("shutdown");
    let found = poller.wait(&mut events, None).expect("wait");
    assert!(found[0].is_read_closed() && !found[0].is_closed());
}

#[test]
fn every_way_to_wait_waits_at_least_as_long_as_asked() {
    let mut events = Events::with_capacity(1);
    let poller = Poller::new().expect("epoll");
    let (left, mut right) = UnixStream::pair().expect("pair");
    poller.add(&left, 7, Interest::READ).expect("add");
    let timeout = Duration::from_micros(300);
    let start = Instant::now();
    assert_eq!(
        poller
            .wait_ppoll(&mut events.buffer, timeout)
            .expect("wait"),
        0
    );
    assert!(start.elapsed() >= timeout);
    let start = Instant::now();
    assert_eq!(
        poller
            .wait_precisely(&mut events.buffer, timeout)
            .expect("wait"),
        0
    );
    assert!(start.elapsed() >= timeout);
    right.write_all(b"x").expect("write");
    assert_eq!(
        poller
            .wait_ppoll(&mut events.buffer, timeout)
            .expect("wait"),
        1
    );
    assert_eq!(events.buffer[0].token(), 7);
}
