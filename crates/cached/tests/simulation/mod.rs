//! The whole server from a seed: clients that send and read in pieces, workers that take their turns in any order, TLS and io_uring,
//! time, memory that runs out, restarts. What is replied is checked against what memcached's semantics allow.

mod datagrams;
mod dialect;
mod history;
mod late;
mod link;
mod scene;
mod world;

use scene::{Random, scene};
use world::World;

/// In the short suite; the long one takes more by `RACKSCOPE_STEPS`.
const STEPS: u64 = 20_000;
/// Of one scene.
const STEPS_OF_A_SCENE: u64 = 1_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn every_reply_of_a_simulated_server_can_be_explained() {
    let first = number("PROPTEST_RNG_SEED").unwrap_or(1);
    let steps = number("RACKSCOPE_STEPS").unwrap_or(STEPS);
    let (mut hits, mut restarts, mut refusals, mut operations) = (0, 0, 0, 0);
    let mut forwards = 0;
    for seed in
        (0..steps.div_ceil(STEPS_OF_A_SCENE)).map(|index| first.wrapping_mul(1_000_003) + index)
    {
        let scene = scene(&mut Random(seed));
        let said = format!("{scene:?}");
        let mut world = World::new(scene, seed).expect("a server");
        if let Err(error) = world.run(STEPS_OF_A_SCENE) {
            panic!("seed {seed}: {error}\n{said}");
        }
        hits += world.hits;
        restarts += world.restarts;
        refusals += world.refusals;
        operations += world.operations;
        forwards += world.forwards;
    }
    println!(
        "{operations} operations, {hits} hits, {restarts} restarts, {refusals} refusals, {forwards} forwards"
    );
    assert!(operations > steps / 20 && hits > steps / 100 && restarts > 0 && refusals > 0);
    assert!(forwards > steps / 100);
}
