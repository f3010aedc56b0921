//! The heap and its lossless index: memory that is given back is used again at once.

use super::*;

/// Values of items of 56 bytes, of which three words are the header's.
const SHORT: usize = 12;

/// Items of 64 bytes.
const LONG: usize = 20;

const HEAP: Config = Config {
    mode: Mode::Store,
    log_bytes: 224,
    item_bytes_max: 112,
    ..MODEL.config
};

/// Where another item's bucket has a version of its own.
const TWO_BUCKETS: Config = Config {
    buckets_min: 2,
    buckets_max: 2,
    ..HEAP
};

#[test]
fn a_stored_item_that_changes_where_it_lies() {
    Model {
        config: HEAP,
        fill: |owner| owner.set(KEY, 1, SHORT),
        write: |owner| {
            owner.set(KEY, 2, SHORT);
            owner.done();
        },
        history: &[Some(1), Some(2)],
        ..MODEL
    }
    .check();
}

/// What is behind an item that became shorter is another's at once.
#[test]
fn a_stored_item_that_becomes_shorter() {
    Model {
        config: HEAP,
        fill: |owner| owner.set(KEY, 1, LONG),
        write: |owner| {
            owner.set(KEY, 2, SHORT);
            owner.done();
            owner.set(OTHERS[0], 9, SHORT);
        },
        history: &[Some(1), Some(2)],
        ..MODEL
    }
    .check();
}

/// An item that becomes longer goes to another block, and its own is another's at once.
#[test]
fn a_stored_item_that_moves() {
    Model {
        config: HEAP,
        fill: |owner| {
            owner.set(KEY, 1, SHORT);
            owner.set(OTHERS[0], 9, SHORT);
        },
        write: |owner| {
            owner.set(KEY, 2, LONG);
            owner.done();
            owner.set(OTHERS[1], 8, SHORT);
        },
        history: &[Some(1), Some(2)],
        preemptions: 1,
        ..MODEL
    }
    .check();
}

/// The block of an item that was removed is another bucket's.
#[test]
fn a_stored_item_that_is_removed() {
    Model {
        config: TWO_BUCKETS,
        fill: |owner| owner.set(KEY, 1, SHORT),
        write: |owner| {
            owner.remove(KEY);
            owner.done();
            owner.set_in_bucket(1, 0..1, 40);
        },
        history: &[Some(1), None],
        ..MODEL
    }
    .check();
}

/// Everything is forgotten at once, and memory used again.
#[test]
fn a_stored_item_that_is_flushed() {
    Model {
        config: TWO_BUCKETS,
        fill: |owner| owner.set(KEY, 1, SHORT),
        write: |owner| {
            owner.partition.flush();
            owner.done();
            owner.set_in_bucket(1, 0..1, 40);
        },
        history: &[Some(1), None],
        ..MODEL
    }
    .check();
}

/// Items move so that a longer one has room.
#[test]
fn a_stored_item_that_makes_room_by_moving() {
    Model {
        config: HEAP,
        fill: |owner| {
            owner.set(OTHERS[0], 9, SHORT);
            owner.set(KEY, 1, SHORT);
            owner.set(OTHERS[1], 9, SHORT);
            owner.remove(OTHERS[0]);
        },
        write: |owner| owner.set(OTHERS[2], 8, LONG),
        preemptions: 1,
        ..MODEL
    }
    .check();
}

/// The same where another thread has the lock by then.
#[test]
fn a_stored_item_that_is_removed_beside_another_writer() {
    Model {
        config: TWO_BUCKETS,
        fill: |owner| owner.set(KEY, 1, SHORT),
        write: |owner| owner.remove(KEY),
        write_beside: Some(|owner| owner.set_in_bucket(1, 0..1, 40)),
        history: &[Some(1), None],
        preemptions: 1,
        ..MODEL
    }
    .check();
}

/// The entry of a chain's last bucket takes the place of one that is removed, and that bucket continues another one.
#[test]
fn a_stored_item_whose_entry_moves() {
    Model {
        config: Config {
            buckets_min: 4,
            buckets_max: 4,
            log_bytes: 800,
            ..HEAP
        },
        fill: |owner| {
            owner.set_in_bucket(0, 0..12, 1);
            owner.set_in_bucket(1, 0..12, 1);
            owner.set(KEY, 1, SHORT);
        },
        write: |owner| {
            owner.remove_in_bucket(0, 3..4);
            owner.set_in_bucket(1, 12..13, 1);
        },
        preemptions: 1,
        ..MODEL
    }
    .check();
}
