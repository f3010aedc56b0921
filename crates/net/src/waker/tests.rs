use super::*;
use std::time::Duration;

#[test]
fn a_wake_ends_a_wait_once() {
    let mut events = crate::Events::with_capacity(4);
    let poller = Poller::new().expect("epoll");
    let waker = Waker::new(&poller, 9).expect("eventfd");
    std::thread::scope(|scope| {
        scope.spawn(|| waker.wake());
        assert_eq!(poller.wait(&mut events, None).expect("wait")[0].token(), 9);
    });
    waker.wake();
    waker.reset();
    assert!(
        poller
            .wait(&mut events, Some(Duration::ZERO))
            .expect("wait")
            .is_empty()
    );
}
