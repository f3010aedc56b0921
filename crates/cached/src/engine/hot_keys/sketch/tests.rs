use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

/// Keys that are frequent and such that are not, of which some share a hash.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(
        prop_oneof![3 => 0..6_u8, 2 => 0..60_u8, 1 => any::<u8>()],
        0..2000,
    )
}

fn name(number: u8) -> Vec<u8> {
    // One of them is empty, one as long as keys are.
    let bytes = usize::from(number);
    vec![number; if bytes > KEY_BYTES_MAX { 5 } else { bytes }]
}

fn hash(number: u8, hashes: u64) -> u64 {
    u64::from(number)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(7)
        % hashes
}

proptest! {
    #[test]
    fn bounds_hold(
        stream in stream(),
        capacity in 1..80_usize,
        hashes in prop_oneof![Just(1_u64), Just(16), Just(u64::MAX)],
        cleared_at in prop::option::of(0..2000_usize),
    ) {
        let mut sketch = SpaceSaving::new(capacity);
        let mut truth = HashMap::<Vec<u8>, u64>::new();
        let mut noted = 0_u64;
        for (at, &number) in stream.iter().enumerate() {
            if cleared_at == Some(at) {
                sketch.clear();
                truth.clear();
                noted = 0;
            }
            sketch.add(hash(number, hashes), &name(number));
            *truth.entry(name(number)).or_default() += 1;
            noted += 1;
        }
        let counted: Vec<_> = sketch.counted().collect();
        prop_assert!(counted.len() <= capacity);
        prop_assert!(counted.is_sorted_by(|one, next| one.count >= next.count));
        prop_assert_eq!(counted.iter().map(|one| one.count).sum::<u64>(), noted);
        for one in &counted {
            let true_count = truth.get(one.key).copied().unwrap_or(0);
            prop_assert!(one.count - one.error <= true_count && true_count <= one.count, "{one:?}: {true_count}");
            prop_assert!(one.error <= noted / capacity as u64);
        }
        for (key, &true_count) in &truth {
            if !counted.iter().any(|one| one.key == key) {
                prop_assert!(true_count <= noted / capacity as u64);
                prop_assert!(true_count <= sketch.unseen_max());
            }
        }
        prop_assert!(sketch.unseen_max() <= noted / capacity as u64);
    }

    /// Where there is a counter for each, every count is exact.
    #[test]
    fn few_keys_are_counted_exactly(stream in prop::collection::vec(0..20_u8, 0..500)) {
        let mut sketch = SpaceSaving::new(20);
        for &number in &stream {
            sketch.add(hash(number, u64::MAX), &name(number));
        }
        for one in sketch.counted() {
            let true_count = stream.iter().filter(|&&number| name(number) == one.key).count();
            prop_assert_eq!((one.count, one.error), (true_count as u64, 0));
        }
    }
}

#[test]
fn what_is_longer_than_keys_are_is_left_out() {
    let mut sketch = SpaceSaving::new(2);
    sketch.add(1, &[b'x'; KEY_BYTES_MAX + 1]);
    assert_eq!(sketch.counted().count(), 0);
    sketch.add(1, &[b'x'; KEY_BYTES_MAX]);
    assert_eq!(
        sketch.counted().next().map(|one| one.key.len()),
        Some(KEY_BYTES_MAX)
    );
}
