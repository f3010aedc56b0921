use super::*;

/// Every number another one, so that none is taken for its neighbour.
fn numbered(first: u64) -> Statistics {
    Statistics {
        items: first,
        bytes: first + 1,
        items_stored: first + 2,
        evictions: first + 4,
        bucket_evictions: first + 8,
        expired: first + 16,
        overwritten: first + 32,
        deleted: first + 64,
        reinserted: first + 128,
        refused: first + 256,
    }
}

#[test]
fn what_happened_since_is_counted_and_what_is_held_is_held_now() {
    let mut later = numbered(1000);
    later += numbered(3);
    let expected = Statistics {
        items: 1003,
        bytes: 1005,
        ..numbered(1000)
    };
    // The sum less one of its parts is the other part; what is held is not a count.
    assert_eq!(later.since(&numbered(3)), expected);
    assert_eq!(
        later.since(&later),
        Statistics {
            items: 1003,
            bytes: 1005,
            ..Statistics::default()
        }
    );
}
