use proptest::prelude::*;

use super::*;
use crate::team::usable_cores;

proptest! {
    #[test]
    fn the_chain_meets_every_node_once_before_it_returns(nodes in 2_usize..3000) {
        let mut words = vec![0; nodes * STRIDE_WORDS];
        link_single_cycle(&mut words, nodes);
        let mut met = vec![false; nodes];
        let mut position = 0;
        for _ in 0..nodes {
            prop_assert_eq!(position % STRIDE_WORDS, 0);
            prop_assert!(!std::mem::replace(&mut met[position / STRIDE_WORDS], true));
            position = words[position] as usize;
        }
        prop_assert_eq!(position, 0);
    }
}

#[test]
fn a_walk_goes_as_far_as_it_says() {
    let nodes = 1000;
    let mut chase = Chase::new(nodes).unwrap();
    assert_eq!(chase.position, 0);
    let loads = chase.walk();
    let mut expected = 0;
    for _ in 0..loads % nodes as u64 {
        expected = chase.buffer[expected as usize];
    }
    assert_eq!(chase.position, expected);
}

#[test]
fn working_set_is_whole_nodes() {
    let core = usable_cores().unwrap()[0];
    let result = measure_latency(core, 10 * STRIDE_BYTES + 1, Duration::ZERO).unwrap();
    assert_eq!(result.working_set_bytes, 10 * STRIDE_BYTES as u64);
    assert!(
        result
            .rounds
            .rounds
            .iter()
            .all(|round| round.amount == LOADS_PER_ROUND)
    );
    assert!(matches!(
        measure_latency(core, 2 * STRIDE_BYTES - 1, Duration::ZERO),
        Err(Error::Argument(_))
    ));
}
