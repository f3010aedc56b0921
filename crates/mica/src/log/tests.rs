use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

#[test]
fn what_is_fetched_ahead_follows_the_length_of_items() {
    let log = Log::new(1 << 16, Hasher::new(1)).expect("a small log");
    let reach = || log.shared.reach.load(Relaxed);
    for (bytes, expected) in [(63, 62), (23, 22), (131, 130), (100_000, 255), (1, 0)] {
        for _ in 0..64 {
            log.shared.note_length(bytes);
        }
        assert_eq!(reach(), expected, "items of {bytes} bytes");
    }
    for _ in 0..64 {
        log.shared.note_length(100);
    }
    log.shared.note_length(1000);
    assert!((100..130).contains(&reach()), "one long item among many");
}

proptest! {
    #[test]
    fn keys_are_compared_whole(one in prop::collection::vec(any::<u8>(), 0..40), at in any::<prop::sample::Index>(), with in 1..=255_u8) {
        prop_assert!(is_same(&one, &one));
        prop_assert!(one.is_empty() || !is_same(&one, &one[1..]));
        let mut other = one.clone();
        if let Some(byte) = (!one.is_empty()).then(|| &mut other[at.index(one.len())]) {
            *byte ^= with;
            prop_assert!(!is_same(&one, &other));
        }
    }

    /// Items lie where nothing else that is alive does, whole, and are told from those that were dropped until
    /// two bits of the lap no longer can.
    #[test]
    fn a_log_against_a_queue(capacity in 100..2000_usize, sizes in prop::collection::vec(3..50_usize, 1..400)) {
        let mut log = Log::new(capacity, Hasher::new(1)).expect("a small log");
        let mut queue = VecDeque::new();
        let mut dropped: Vec<Address> = Vec::new();
        for bytes in sizes {
            while let Some(oldest) = log.oldest_in_the_way(bytes) {
                let (address, bytes) = queue.pop_front().expect("there is an oldest");
                prop_assert_eq!(oldest, address);
                log.drop_oldest(bytes);
                dropped.push(address);
            }
            let address = log.claim(bytes);
            prop_assert!(address.offset() + bytes <= capacity);
            for &(other, other_bytes) in &queue {
                prop_assert!(other.offset() + other_bytes <= address.offset() || address.offset() + bytes <= other.offset());
                prop_assert!(other < address);
            }
            queue.push_back((address, bytes));
            for &(address, _) in &queue {
                prop_assert_eq!(log.address(address.position()), address);
                prop_assert!(crate::index::Items::is_alive(&log, address.position()));
            }
            for address in dropped.iter().filter(|address| address.lap() + 2 >= log.tail().lap()) {
                prop_assert!(!crate::index::Items::is_alive(&log, address.position()));
            }
        }
    }
}
