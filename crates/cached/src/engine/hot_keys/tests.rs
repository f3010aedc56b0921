use super::*;
use mica::Hasher;
use proptest::prelude::*;

fn note_all(hot: &HotKeys, keys: &[Vec<u8>], burst: usize) {
    let hasher = Hasher::new(5);
    for keys in keys.chunks(burst) {
        hot.sample(keys.len(), |number| hasher.key(&keys[number]));
    }
}

#[test]
fn one_of_64_is_looked_at_whatever_the_bursts() {
    let keys: Vec<Vec<u8>> = (0..200_000_u32)
        .map(|number| (number % 2).to_string().into_bytes())
        .collect();
    for burst in [1, 2, 31, 64, 1000] {
        let hot = HotKeys::with_seed(10, 0x5eed);
        note_all(&hot, &keys, burst);
        let (hottest, noted) = hottest([&hot].into_iter(), 10);
        // Five standard deviations of a binomial distribution, each of them.
        assert!((2848..3402).contains(&noted), "{noted}");
        assert_eq!(hottest.len(), 2);
        for one in hottest {
            assert!((1366..1759).contains(&one.at_least), "{one:?}");
            assert!(one.count().abs_diff(100_000) <= 3 * one.error(), "{one:?}");
        }
    }
}

#[test]
fn what_has_no_key_is_not_counted_and_nobody_waits() {
    let hot = HotKeys::new(1);
    note_all(&hot, &vec![Vec::new(); 10_000], 10);
    assert_eq!(hottest([&hot].into_iter(), 10), (Vec::new(), 0));
    let reading = hot.lock();
    note_all(&hot, &vec![b"a".to_vec(); 10_000], 10);
    assert_eq!(reading.noted, 0);
    drop(reading);
    note_all(&hot, &vec![b"a".to_vec(); 10_000], 10);
    assert!(hottest([&hot].into_iter(), 1).1 > 0);
    hot.reset();
    assert_eq!(hottest([&hot].into_iter(), 10), (Vec::new(), 0));
}

#[test]
fn keys_are_told_as_one_word() {
    assert_eq!(
        encoded(b"user:1/a b~c-d_e.f\0\xff"),
        "user%3A1%2Fa%20b~c-d_e.f%00%FF"
    );
}

proptest! {
    /// Bounds hold for sketches that are put together, and the truth is between them.
    #[test]
    fn bounds_hold_over_workers(
        streams in prop::collection::vec(prop::collection::vec(prop_oneof![3 => 0..5_u16, 1 => 0..2000_u16], 0..3000), 1..4),
    ) {
        let mut truth = HashMap::<Vec<u8>, u64>::new();
        let workers: Vec<HotKeys> = streams.iter().map(|stream| {
            let hot = HotKeys::new(1);
            for number in stream {
                let key = number.to_string().into_bytes();
                let mut sketch = hot.lock();
                sketch.keys.add(Hasher::new(1).key(&key).hash(), &key);
                sketch.noted += 1;
                *truth.entry(key).or_default() += 1;
            }
            hot
        }).collect();
        let (all, noted) = hottest(workers.iter(), usize::MAX);
        prop_assert_eq!(noted, streams.iter().map(|stream| stream.len() as u64).sum::<u64>());
        for one in &all {
            let true_count = truth[&one.key];
            prop_assert!(one.at_least <= true_count && true_count <= one.at_most, "{one:?}: {true_count}");
            prop_assert!(one.at_most - one.at_least <= noted / COUNTERS_MIN as u64 + workers.len() as u64);
        }
        prop_assert!(all.is_sorted_by(|one, next| one.at_most >= next.at_most));
        for (key, &true_count) in &truth {
            prop_assert!(true_count <= noted / COUNTERS_MIN as u64 || all.iter().any(|one| one.key == *key));
        }
    }
}
