use super::*;

#[test]
fn a_write_is_seen_by_those_who_looked_before_or_during_it() {
    let versions = Versions::new();
    let seen = versions.begin(5).expect("nobody writes");
    let other = versions.begin(6).expect("nobody writes");
    let writing = versions.write(5);
    assert!(versions.begin(5).is_none());
    assert!(!versions.is_unchanged(5, seen));
    drop(writing);
    assert!(!versions.is_unchanged(5, seen));
    assert!(versions.is_unchanged(6, other));
    let seen = versions.begin(5).expect("it was written");
    assert!(versions.is_unchanged(5, seen));
}

#[test]
fn two_buckets_of_one_stripe_are_written_once() {
    let versions = Versions::new();
    drop(versions.write_two(3, 3 + STRIPES));
    drop(versions.write_two(3, 4));
    assert!(versions.begin(3).is_some() && versions.begin(4).is_some());
}

#[test]
fn a_write_to_all_buckets_is_seen_in_each() {
    let versions = Versions::new();
    let seen = versions.begin(7).expect("nobody writes");
    let writing = versions.write_all();
    assert!(versions.begin(7).is_none() && versions.begin(8).is_none());
    drop(writing);
    assert!(versions.begin(7).is_some() && !versions.is_unchanged(7, seen));
}

#[test]
fn where_nobody_reads_nothing_is_noted() {
    let versions = Versions::unread();
    drop(versions.write_two(3, 4));
    assert!(versions.begin(3).is_none());
}
