//! DRAM latency: a chain of loads, each of which must end before the next can begin.
//!
//! As lmbench's `lat_mem_rd` and Google's multichase: every node of a working set holds the place of the next one, in
//! an order that is one random cycle over all nodes, so no prefetcher can run ahead.

use std::time::Duration;

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::memory::{self, huge_page_bytes};
use crate::team::{Rounds, run_together};
use crate::{Error, Result};
use mapping::Words;

/// Bytes from one node to the next: two cache lines, because a common prefetcher fetches lines in pairs.
pub const STRIDE_BYTES: usize = 128;
const STRIDE_WORDS: usize = STRIDE_BYTES / size_of::<u64>();
/// Loads in one round.
const LOADS_PER_ROUND: u64 = 200_000;
/// The order is the same on every host and every time.
const SEED: u64 = 0x5241_434b;

/// What a latency measurement found.
#[derive(Debug)]
pub struct Latency {
    /// Loads of each round and its time.
    pub rounds: Rounds<Chase>,
    /// Bytes of the working set, rounded down to whole nodes.
    pub working_set_bytes: u64,
    /// Of those, bytes that huge pages backed; `None` where the kernel does not say. Without huge pages the latency
    /// of a large working set includes page walks.
    pub huge_page_bytes: Option<u64>,
}

/// Chases a random cycle over `working_set_bytes` on `core`, for `budget`. The amount of a round is loads. Refuses a
/// working set that holds fewer than two nodes.
pub fn measure_latency(core: usize, working_set_bytes: usize, budget: Duration) -> Result<Latency> {
    let nodes = working_set_bytes / STRIDE_BYTES;
    if nodes < 2 {
        return Err(Error::Argument(format!(
            "a working set of {working_set_bytes} bytes is too small to chase through: at least {} are needed",
            2 * STRIDE_BYTES
        )));
    }
    let rounds = run_together(&[core], budget, |_| Chase::new(nodes), Chase::walk)?;
    Ok(Latency {
        working_set_bytes: (nodes * STRIDE_BYTES) as u64,
        huge_page_bytes: huge_page_bytes(rounds.states.iter().map(|chase| &chase.buffer)),
        rounds,
    })
}

/// A working set and where in it the chain has come to.
#[derive(Debug)]
pub struct Chase {
    /// The first word of each node is the index of the next node's first word.
    buffer: Words,
    position: u64,
}

impl Chase {
    fn new(nodes: usize) -> Result<Self> {
        let mut buffer = memory::zeroed(nodes * STRIDE_WORDS)?;
        link_single_cycle(&mut buffer, nodes);
        let mut chase = Self {
            buffer,
            position: 0,
        };
        // Once round brings into the caches what they can hold; the last node leads back to the first.
        chase.follow(nodes as u64);
        Ok(chase)
    }

    fn walk(&mut self) -> u64 {
        self.follow(LOADS_PER_ROUND);
        LOADS_PER_ROUND
    }

    fn follow(&mut self, loads: u64) {
        // The check of the index is predicted and off the chain of dependent loads.
        for _ in 0..loads {
            self.position = self.buffer[self.position as usize];
        }
    }
}

/// Links `nodes` nodes into one random cycle by Sattolo's algorithm ("An algorithm to generate a random cyclic
/// permutation", 1986): a shuffle in which no element may stay where it is.
fn link_single_cycle(buffer: &mut [u64], nodes: usize) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    for node in 0..nodes {
        buffer[node * STRIDE_WORDS] = (node * STRIDE_WORDS) as u64;
    }
    for last in (1..nodes).rev() {
        // Multiply and shift: uniform enough for any number of nodes that fits in memory.
        let other = ((u128::from(random.next_u64()) * last as u128) >> 64) as usize;
        buffer.swap(last * STRIDE_WORDS, other * STRIDE_WORDS);
    }
}

#[cfg(test)]
mod tests;
