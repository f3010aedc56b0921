use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn every_place_is_taken_once(bound in 1_u64..3000, seed in any::<u64>()) {
        let scramble = Scramble::new(seed);
        let mut places: Vec<u64> = (0..bound).map(|number| scramble.permute(number, bound)).collect();
        places.sort_unstable();
        prop_assert!(places.into_iter().eq(0..bound));
    }
}

#[test]
fn neighbours_are_scattered() {
    let scramble = Scramble::new(1);
    let bound = 1 << 20;
    let places: Vec<u64> = (0..1000)
        .map(|number| scramble.permute(number, bound))
        .collect();
    let quarters = places.iter().fold([0; 4], |mut quarters, place| {
        quarters[(place * 4 / bound) as usize] += 1;
        quarters
    });
    assert!(
        quarters.iter().all(|&count| (190..310).contains(&count)),
        "{quarters:?}"
    );
}
