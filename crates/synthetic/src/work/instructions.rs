//! A known number of instructions, by how long they take on this core when nothing disturbs it.

use ceiling::clock::thread_cpu;
use std::hint::black_box;
use std::time::Duration;

/// How fast this host executes the kernel.
#[derive(Debug)]
pub(super) struct Instructions {
    blocks_per_microsecond: f64,
    instructions_per_block: f64,
}

/// About 40 microseconds.
const TRIAL_BLOCKS: u64 = 2000;
const TRIALS: usize = 500;

impl Instructions {
    /// Time the kernel by the CPU time of this thread; the best trial is the undisturbed one.
    pub fn calibrate() -> Self {
        let best = (0..TRIALS)
            .map(|_| {
                let start = thread_cpu();
                black_box(ceiling::instructions::execute_mix(TRIAL_BLOCKS));
                thread_cpu().saturating_sub(start)
            })
            .min()
            .unwrap_or_default()
            .max(Duration::from_nanos(1));
        Self {
            blocks_per_microsecond: TRIAL_BLOCKS as f64 / (best.as_secs_f64() * 1e6),
            instructions_per_block: ceiling::instructions::execute_mix(1) as f64,
        }
    }

    pub fn execute(&self, microseconds: u64) {
        let blocks = (microseconds as f64 * self.blocks_per_microsecond).round() as u64;
        black_box(ceiling::instructions::execute_mix(blocks));
    }

    pub fn per_microsecond(&self) -> f64 {
        self.blocks_per_microsecond * self.instructions_per_block
    }
}
