use super::*;
use crate::{Interest, Poller};

fn socket() -> DatagramSocket {
    DatagramSocket::bind(([127, 0, 0, 1], 0).into(), false).expect("a free port")
}

#[test]
fn many_datagrams_go_at_once_and_arrive_one_by_one() {
    let (left, right) = (socket(), socket());
    let mut events = crate::Events::with_capacity(8);
    let poller = Poller::new().expect("epoll");
    poller.add(&right, 1, Interest::READ).expect("add");
    let peer = Peer {
        address: right.address(),
        local: None,
    };
    let sent: Vec<u8> = (0..40 * 100 + 7).map(|at| (at / 100) as u8).collect();
    left.send(peer, &sent, 100).expect("room");
    let (mut received, mut datagrams) = (Received::default(), Vec::new());
    while datagrams.len() < 41 {
        poller.wait(&mut events, None).expect("wait");
        right.receive(&mut received).expect("something is there");
        for message in received.messages() {
            assert_eq!(message.peer.address, left.address());
            assert_eq!(message.peer.local, Some([127, 0, 0, 1].into()));
            datagrams.extend(message.datagrams().map(<[u8]>::to_vec));
        }
    }
    assert_eq!(
        datagrams,
        sent.chunks(100).map(<[u8]>::to_vec).collect::<Vec<_>>()
    );
    let nothing = right.receive(&mut received).expect_err("nothing more");
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    assert_eq!(received.messages().count(), 0);
}

#[test]
fn an_address_in_use_is_named() {
    let taken = socket();
    let error = DatagramSocket::bind(taken.address(), false).expect_err("in use");
    assert!(
        error.to_string().contains(&taken.address().to_string()),
        "{error}"
    );
}
