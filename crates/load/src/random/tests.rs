use super::*;

#[test]
fn streams_repeat_with_their_seed_and_differ_by_every_part() {
    let first = |seed, parts| Random::new(seed, parts).next();
    assert_eq!(first(1, [2, 3]), first(1, [2, 3]));
    let streams = [
        first(1, [2, 3]),
        first(2, [2, 3]),
        first(1, [3, 3]),
        first(1, [2, 4]),
        first(1, [3, 2]),
    ];
    let distinct: std::collections::HashSet<u64> = streams.into();
    assert_eq!(distinct.len(), streams.len());
}
