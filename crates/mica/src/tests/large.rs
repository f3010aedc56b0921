//! Items that are too large for the log, which readers do not see.

use super::*;

/// Items of more than a 64th of this are large.
const ALL_BYTES: usize = 64 * 80;
const LARGE: usize = 40;

fn config() -> Config {
    Config {
        large_bytes: 160,
        item_bytes_max: 120,
        log_bytes: ALL_BYTES,
        ..MODEL.config
    }
}

/// While there is a large item, the owner is asked.
#[test]
fn an_item_that_becomes_large() {
    Model {
        config: config(),
        write: |owner| {
            owner.set(KEY, 2, LARGE);
            owner.done();
        },
        history: &[Some(1), Some(2)],
        asks: true,
        ..MODEL
    }
    .check();
}

/// Who sees that there is none any more sees what the log has in its place, whichever writer found that out.
#[test]
fn an_item_that_is_no_longer_large() {
    Model {
        config: config(),
        fill: |owner| owner.set(KEY, 1, LARGE),
        write: |owner| {
            owner.set(KEY, 2, BYTES);
            owner.done();
        },
        write_beside: Some(|owner| assert_eq!(owner.get(OTHERS[0], NOW), None)),
        history: &[Some(1), Some(2)],
        asks: true,
        preemptions: 1,
        ..MODEL
    }
    .check();
}
