use super::*;
use proptest::prelude::*;

#[test]
fn keys_become_readable_in_order() {
    let space = KeySpace::new(10, 1);
    assert_eq!([space.claim(), space.claim(), space.claim()], [10, 11, 12]);
    space.acknowledge(11);
    space.acknowledge(12);
    assert_eq!(space.readable(), 10);
    space.acknowledge(10);
    assert_eq!(space.readable(), 13);
    space.acknowledge(3);
    assert_eq!(space.readable(), 13);
}

#[test]
fn a_full_window_gives_the_newest_key_again() {
    let space = KeySpace::new(10, 1);
    for id in 10..10 + 1024 {
        assert_eq!(space.claim(), id);
    }
    assert_eq!(space.claim(), 9);
    space.acknowledge(10);
    assert_eq!(space.claim(), 10 + 1024);
}

proptest! {
    #[test]
    fn any_order_of_acknowledgements_ends_with_all_readable(order in Just((5..205_u64).collect::<Vec<_>>()).prop_shuffle()) {
        let space = KeySpace::new(5, 200);
        for _ in &order {
            space.claim();
        }
        let mut acknowledged = std::collections::BTreeSet::new();
        for id in order {
            space.acknowledge(id);
            acknowledged.insert(id);
            let expected = (5..).find(|id| !acknowledged.contains(id));
            prop_assert_eq!(Some(space.readable()), expected);
        }
    }
}

#[test]
fn threads_lose_no_acknowledgement() {
    let space = KeySpace::new(0, 64);
    let work = || {
        let claims = (0..20_000).map(|_| {
            let id = space.claim();
            space.acknowledge(id);
            id
        });
        claims.collect::<std::collections::BTreeSet<_>>()
    };
    let claimed = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        let sets = workers.into_iter().map(|worker| worker.join().unwrap());
        sets.fold(std::collections::BTreeSet::new(), |all, set| &all | &set)
    });
    // A thread that is held up long enough fills the window: the others then claim keys that are there already.
    let expected: std::collections::BTreeSet<_> = (0..space.readable()).collect();
    assert!(space.readable() > 0);
    assert_eq!(claimed, expected);
}
