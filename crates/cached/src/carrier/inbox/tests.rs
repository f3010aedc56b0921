use super::*;
use net::{DatagramSocket, Peer, Poller};

/// However many there are for a worker that does not look.
#[test]
fn datagrams_wait_within_a_bound() {
    let poller = Poller::new().expect("epoll");
    let waker = Waker::new(&poller, 0).expect("an eventfd");
    let (inbox, messages) = Inbox::new(Arc::new(waker));
    let local = ([127, 0, 0, 1], 0).into();
    let socket = Arc::new(DatagramSocket::bind(local, false).expect("a port"));
    let peer = Peer {
        address: socket.address(),
        local: None,
    };
    let forward =
        |command_bytes| inbox.forward(ForwardedDatagram::of(command_bytes, peer, &socket));
    let sent = (0..100_000).filter(|_| forward(1000)).count();
    assert!((1000..DATAGRAM_BYTES_MAX / 1000).contains(&sent), "{sent}");
    // As long as one may be: the server's other messages have room all the same.
    assert!(!forward(65_000));
    inbox.send(Message::End);
    for number in 0..=sent {
        let message = messages.next().expect("a message");
        assert_eq!(matches!(message, Message::End), number == sent);
    }
    assert!(messages.next().is_err());
    // There is room again, for as many.
    assert_eq!((0..100_000).filter(|_| forward(1000)).count(), sent);
}
