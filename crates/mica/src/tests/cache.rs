//! The circular log and its lossy index.

use super::*;

#[test]
fn an_item_that_changes_where_it_lies() {
    Model {
        write: |owner| {
            owner.set(KEY, 2, BYTES);
            owner.done();
            owner.set(KEY, 3, BYTES);
            owner.done();
        },
        history: &[Some(1), Some(2), Some(3)],
        ..MODEL
    }
    .check();
}

/// The whole item is written, whose header takes more than a word.
#[test]
fn an_item_with_flags_that_changes_where_it_lies() {
    Model {
        fill: |owner| owner.set_flagged(KEY, 1, BYTES),
        write: |owner| {
            owner.set_flagged(KEY, 2, BYTES);
            owner.done();
        },
        history: &[Some(1), Some(2)],
        ..MODEL
    }
    .check();
}

/// Its value is changed where it lies, and its CAS number with that.
#[test]
fn an_item_that_is_edited() {
    Model {
        write: |owner| {
            owner.edit(KEY, 2);
            owner.done();
        },
        history: &[Some(1), Some(2)],
        ..MODEL
    }
    .check();
}

/// A hit is noted in an item that then changes.
#[test]
fn an_item_that_was_just_read() {
    Model {
        write: |owner| {
            assert_eq!(owner.get(KEY, NOW + 100), Some(1));
            owner.set(KEY, 2, BYTES);
            owner.done();
        },
        history: &[Some(1), Some(2)],
        ..MODEL
    }
    .check();
}

/// An item that becomes longer goes to the tail.
#[test]
fn an_item_that_moves_to_the_tail() {
    Model {
        write: |owner| {
            owner.set(KEY, 2, BYTES - 1);
            owner.done();
        },
        history: &[Some(1), Some(2)],
        ..MODEL
    }
    .check();
}

/// The same where the tail is about to pass the old item: the new one is written over it, and what was there is not
/// missed.
#[test]
fn an_item_that_is_written_over_itself() {
    Model {
        fill: |owner| {
            owner.set(KEY, 1, BYTES);
            owner.set(OTHERS[0], 9, BYTES);
            owner.set(OTHERS[1], 9, BYTES);
        },
        write: |owner| owner.set_flagged(KEY, 2, BYTES - 4),
        history: &[Some(1), Some(2)],
        preemptions: 1,
        ..MODEL
    }
    .check();
}

/// An item that is read shortly before its turn is written again at the tail, over itself.
#[test]
fn an_item_that_is_kept() {
    Model {
        config: Config {
            eviction: Eviction::LeastRecentlyUsed,
            ..MODEL.config
        },
        fill: |owner| {
            owner.set(KEY, 1, BYTES);
            owner.set(OTHERS[0], 9, BYTES);
            owner.set(OTHERS[1], 9, BYTES);
        },
        write: |owner| assert_eq!(owner.get(KEY, NOW), Some(1)),
        preemptions: 1,
        ..MODEL
    }
    .check();
}

/// The tail passes an item whose bucket is not written: the head tells.
#[test]
fn an_item_that_makes_room() {
    Model {
        fill: |owner| {
            owner.set(KEY, 1, BYTES);
            owner.set(OTHERS[0], 9, BYTES);
            owner.set(OTHERS[1], 9, BYTES);
        },
        write: |owner| owner.set(OTHERS[2], 8, BYTES),
        history: &[Some(1), None],
        asks: true,
        ..MODEL
    }
    .check();
}

/// What is written over an item may look like a header with any length.
#[test]
fn an_item_whose_length_is_overwritten() {
    Model {
        config: Config {
            log_bytes: 168,
            item_bytes_max: 84,
            ..MODEL.config
        },
        fill: |owner| {
            owner.set(OTHERS[0], 9, BYTES);
            owner.set(KEY, 1, BYTES);
            owner.set(OTHERS[1], 9, BYTES);
        },
        write: |owner| {
            // Where the other item was, and the first word of the key's.
            let mut value = value(9, BYTES + 8);
            value[BYTES..].copy_from_slice(&[KEY.len() as u8, 0, 0, 0, 0, 0, 127, KEY[0]]);
            owner.set_contents(OTHERS[2], &Contents::of(&value));
        },
        history: &[Some(1), None],
        asks: true,
        ..MODEL
    }
    .check();
}

/// The slot of an item that was removed is another key's.
#[test]
fn an_item_that_is_removed() {
    Model {
        write: |owner| {
            owner.remove(KEY);
            owner.done();
            owner.set(OTHERS[0], 9, BYTES);
        },
        history: &[Some(1), None],
        ..MODEL
    }
    .check();
}

#[test]
fn an_item_that_is_removed_and_stored_again() {
    Model {
        write: |owner| {
            owner.remove(KEY);
            owner.done();
            owner.set(KEY, 2, BYTES);
            owner.done();
        },
        history: &[Some(1), None, Some(2)],
        preemptions: 1,
        ..MODEL
    }
    .check();
}

#[test]
fn an_item_that_is_flushed_and_stored_again() {
    Model {
        write: |owner| {
            owner.partition.flush();
            owner.set(KEY, 2, BYTES);
        },
        history: &[Some(1), None, Some(2)],
        ..MODEL
    }
    .check();
}

/// Lookups one after the other do not go back, nor what several readers see.
#[test]
fn lookups_of_two_readers() {
    Model {
        write: |owner| owner.set(KEY, 2, BYTES),
        history: &[Some(1), Some(2)],
        readers: 2,
        preemptions: 1,
        ..MODEL
    }
    .check();
}

#[test]
fn one_lookup_behind_another() {
    Model {
        write: |owner| owner.set(KEY, 2, BYTES),
        history: &[Some(1), Some(2)],
        lookups: 2,
        ..MODEL
    }
    .check();
}

/// Its entry is the oldest of a full bucket.
#[test]
fn an_item_whose_entry_makes_room() {
    Model {
        config: Config {
            log_bytes: 4 * ITEM_BYTES,
            ..MODEL.config
        },
        fill: |owner| {
            owner.set(KEY, 1, BYTES);
            owner.set_in_bucket(0, 0..11, 1);
        },
        write: |owner| owner.set_in_bucket(0, 11..12, 1),
        history: &[Some(1), None],
        ..MODEL
    }
    .check();
}

/// The bucket is split: the key belongs to the other one from now on.
#[test]
fn a_key_that_moves_to_another_bucket() {
    split(true).check();
}

#[test]
fn a_key_that_stays_in_a_bucket_that_is_split() {
    split(false).check();
}

fn split(moves: bool) -> Model {
    Model {
        config: Config {
            buckets_max: 2,
            ..MODEL.config
        },
        fill: |owner| {
            owner.set(KEY, 1, BYTES);
            owner.set_in_bucket(0, 0..9, 1);
        },
        write: |owner| {
            owner.set_in_bucket(0, 9..10, 1);
            assert_eq!(owner.partition.shared.index.buckets(), 2);
        },
        seed: (0..)
            .find(|&seed| Hasher::new(seed).key(KEY).bucket_bits() % 2 == usize::from(moves))
            .expect("half of them"),
        preemptions: 1,
        ..MODEL
    }
}
