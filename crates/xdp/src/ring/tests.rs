use super::*;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::os::fd::AsFd;

const OFFSETS: XdpRingOffset = XdpRingOffset {
    producer: 0,
    consumer: 64,
    flags: Some(68),
    desc: 128,
};

/// Both ends of a ring in memory that is mapped twice, as it is for the kernel and us.
fn ends(size: u32, start: u32) -> (Producer<u64>, Consumer<u64>) {
    let file = memfd_create("ring", MemfdFlags::CLOEXEC).expect("memory");
    ftruncate(&file, 4096).expect("a page");
    // SAFETY: the file has room for the ring; one end writes and the other reads, as with the kernel.
    let map = || unsafe { Ring::map(file.as_fd(), 0, &OFFSETS, size).expect("a mapping") };
    let ring = map();
    ring.producer().store(start, Relaxed);
    ring.consumer().store(start, Relaxed);
    (Producer::new(ring), Consumer::new(map()))
}

#[test]
fn entries_come_out_in_order_once_submitted_and_make_room_once_released() {
    let (mut producer, mut consumer) = ends(4, u32::MAX - 1);
    assert_eq!(producer.room(1), 4);
    for round in 0..5 {
        for entry in 0..4 {
            assert!(producer.push(round * 4 + entry));
        }
        assert!(!producer.push(99));
        assert_eq!(consumer.pop(), None);
        producer.submit();
        assert_eq!(producer.pending(), 4);
        for entry in 0..4 {
            assert_eq!(consumer.pop(), Some(round * 4 + entry));
        }
        assert_eq!(consumer.pop(), None);
        assert_eq!(producer.room(1), 0);
        consumer.release();
        assert_eq!((producer.room(1), producer.pending()), (4, 0));
    }
}

#[test]
fn an_index_that_cannot_be_yields_nothing() {
    let (mut producer, mut consumer) = ends(4, 7);
    consumer.ring.producer().store(12, Relaxed);
    assert_eq!(consumer.pop(), None);
    // One entry, and two of them read.
    assert!(producer.push(0));
    producer.ring.consumer().store(9, Relaxed);
    assert_eq!(producer.room(4), 0);
}

#[test]
fn the_flag_is_read_as_the_other_side_sets_it() {
    let (producer, consumer) = ends(4, 0);
    assert!(!producer.needs_wakeup());
    let flags = consumer.ring.flags.expect("offsets have flags");
    // SAFETY: mapped while `consumer` lives.
    unsafe { flags.as_ref() }.store(1, Relaxed);
    assert!(producer.needs_wakeup());
}

#[test]
fn two_threads_pass_entries_in_order() {
    let (mut producer, mut consumer) = ends(256, u32::MAX - 1_000);
    // Few enough for threads that have to share a core, and hand over whenever the ring is full or empty.
    const ENTRIES: u64 = 100_000;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut next = 0;
            while next < ENTRIES {
                if producer.push(next) {
                    next += 1;
                } else {
                    std::thread::yield_now();
                }
                if next % 7 == 0 || producer.room(1) == 0 {
                    producer.submit();
                }
            }
            producer.submit();
        });
        let mut expected = 0;
        while expected < ENTRIES {
            match consumer.pop() {
                Some(entry) => {
                    assert_eq!(entry, expected);
                    expected += 1;
                }
                None => {
                    consumer.release();
                    std::thread::yield_now();
                }
            }
        }
    });
}
