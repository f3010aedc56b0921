use super::*;
use crate::team::usable_cores;

#[test]
fn amount_is_a_known_multiple_of_the_blocks() {
    assert_eq!(kernel::execute_mix(20), 2 * kernel::execute_mix(10));
    assert_eq!(kernel::execute_chain(20), 2 * kernel::execute_chain(10));
}

#[test]
fn every_core_counts_its_instructions() {
    let cores = usable_cores().unwrap();
    let result = measure_instruction_rate(&cores, Duration::ZERO).unwrap();
    let each = kernel::execute_mix(1) * BLOCKS_PER_ROUND * cores.len() as u64;
    assert!(
        result
            .rounds
            .rounds
            .iter()
            .all(|round| round.amount == each)
    );
}

#[test]
fn the_clock_needs_a_counted_chain() {
    let core = usable_cores().unwrap()[0];
    let clock = measure_core_clock(core, Duration::ZERO).unwrap();
    assert_eq!(clock.is_some(), kernel::EXACT);
}
